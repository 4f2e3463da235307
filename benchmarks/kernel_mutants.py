"""Mutants: kernels with one fault put in on purpose, and which check sees it. Makes kernels/MUTANTS.md.

    python benchmarks/kernel_mutants.py [--write] [NAME...]

tests/kernels/mutants/mutants.toml has them as data, with what is expected. Each is built for the stand-in and goes
through the gate (one seed, legacy cases, up to the first wrong one) and through the laboratory; the kernels
without a fault go the same way and must come out clean. Exits 1 if anything came out otherwise than the data say.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from mccprobe.oracle.kernel.spec import KernelSpec, load_kernel
from mccprobe.oracle.verdict import Verdict
from mccprobe.targets.flags.datafile import Table, read_toml
from mccprobe.targets.sim.build import sim_sdk
from mccprobe.targets.sim.toolchain import SimToolchain
from mccprobe.tuning.check.check import GateReport, check_kernel
from mccprobe.tuning.lab.explain import rule_of
from mccprobe.tuning.lab.session import LabReport, lab_kernel

ROOT = Path(__file__).resolve().parent.parent
KERNELS = ROOT / "kernels"
DATA = ROOT / "tests" / "kernels" / "mutants" / "mutants.toml"
TABLE = KERNELS / "MUTANTS.md"
CHECK = {  # what `mccprobe check` sees by itself
    "numbers": "a wrong element",
    "trap": "the emulator ends the program",
    "rule": "the gate's rules on launches",
    "compiler": "the source does not compile",
}
LAB = {
    "lab": "a broken rule of the machine that `check --lab` names; the numbers are right",
    "doubt": "`check --lab` names what no document allows; the numbers are right",
}
SURVIVES = {  # by what is true of the mutant
    "equivalent": "no result can differ",
    "slower": "right, and only slower",
    "unseen": "a fault that nothing here sees",
}
SEED = 1
TIMEOUT_S = 120.0  # of one case; the largest takes seconds
BANKS = 1.2  # a mutant with so many times the bank cycles of its kernel is told apart by the counter


@dataclass(frozen=True)
class Mutant:
    """A kernel, and one text of one of its files that is replaced.

    file: below kernels/. find: occurs exactly once there. caught: a key of CHECK, LAB or SURVIVES. told: a part of
    what the check says. why: for a survivor. quick: also part of the test suite.
    """

    name: str
    kernel: str
    file: str
    kind: str
    what: str
    find: str
    replacement: str
    caught: str
    told: str = ""
    why: str = ""
    defines: tuple[tuple[str, str], ...] = ()
    quick: bool = False

    @property
    def survives(self) -> bool:
        return self.caught in SURVIVES


@dataclass(frozen=True)
class Seen:
    """What came of one kernel. check: key of CHECK, "" if it passed. banks: cycles over the least, None without any."""

    check: str
    check_text: str
    lab: Verdict
    rules: tuple[str, ...]
    doubts: tuple[str, ...]
    banks: float | None

    @property
    def caught(self) -> str:
        """A key of CHECK or LAB, "" for a survivor; "unclear" if the laboratory has no answer."""
        if self.check or self.lab is Verdict.GOOD:
            return self.check
        return "lab" if self.rules else "doubt" if self.doubts else "unclear"


def load_mutants() -> tuple[Mutant, ...]:
    """The data file. Raises BadDataFile."""
    top = read_toml(DATA)
    found = tuple(_mutant(entry) for entry in top.tables("mutant"))
    top.finish()
    return found


def _mutant(table: Table) -> Mutant:
    kernel = table.text("kernel")
    defines = tuple(table.texts("defines"))
    mutant = Mutant(
        name=table.text("name"),
        kernel=kernel,
        file=table.text("file", f"{kernel}/{kernel}.mu"),
        kind=table.text("kind"),
        what=table.text("what"),
        find=table.text("find"),
        replacement=table.text("replacement", ""),
        caught=table.choice("caught", [*CHECK, *LAB, *SURVIVES]),
        told=table.text("told", ""),
        why=table.text("why", ""),
        defines=tuple((name, value) for name, _, value in (text.partition("=") for text in defines)),
        quick=table.boolean("quick", False),
    )
    table.finish()
    if mutant.survives is not bool(mutant.why):
        table.fail("why", "a survivor needs one, and only a survivor")
    return mutant


def mutated(mutant: Mutant, text: str) -> str:
    """`text` of its file with the fault in. Raises ValueError unless there is exactly one place for it."""
    if text.count(mutant.find) != 1:
        raise ValueError(f"{mutant.name}: {text.count(mutant.find)} places in {mutant.file}, expected 1")
    return text.replace(mutant.find, mutant.replacement)


def place(kernel: str, folder: Path, mutant: Mutant | None = None) -> KernelSpec:
    """A copy of the kernel below `folder`, with the fault in."""
    for name in ("common", kernel):
        shutil.copytree(KERNELS / name, folder / name)
    if mutant is not None:
        source = folder / mutant.file
        source.write_text(mutated(mutant, source.read_text()))
    return load_kernel(folder / kernel)


def judge(spec: KernelSpec, defines: Sequence[tuple[str, str]], toolchain: SimToolchain, folder: Path) -> Seen:
    """Through the gate and through the laboratory."""
    given, build = dict(defines), folder / "build"
    gate = check_kernel(
        spec, toolchain, seeds=(SEED,), defines=given, folder=build, timeout_s=TIMEOUT_S, stop_at_bad=True
    )
    check, text = gate_answer(gate)
    if gate.failure is not None:
        return Seen(check, text, Verdict.UNRESOLVED, (), (), None)
    lab = lab_kernel(spec, toolchain, defines=given, folder=build, seed=SEED, timeout_s=TIMEOUT_S)
    return Seen(check, text, lab.verdict, kinds(lab, "error"), kinds(lab, "doubt"), bank_cycles(lab))


def gate_answer(report: GateReport) -> tuple[str, str]:
    """A key of CHECK with the reason, ("", "") if it passed."""
    if report.passed:
        return "", ""
    if report.failure is not None:
        error = next((line for line in report.failure.detail.splitlines() if "error:" in line), report.failure.reason)
        return "compiler", error.partition("error: ")[2] or error
    if report.verdict is Verdict.BAD:
        return "numbers", report.reasons()[0]
    for case in report.cases:
        if case.result.verdict is Verdict.UNRESOLVED and not case.result.refused:
            return "trap", f"{case.planned.case.name}: {case.result.reason}"
    return "rule", report.reasons()[0]


def kinds(report: LabReport, severity: str) -> tuple[str, ...]:
    """What the laboratory found, in the words of its rules."""
    return tuple(dict.fromkeys(rule_of(f).title for f in report.merged.findings if f.severity == severity))


def bank_cycles(report: LabReport) -> float | None:
    ideal = sum(use.ideal for use in report.merged.banks)
    return sum(use.cycles for use in report.merged.banks) / ideal if ideal else None


def fault_of(mutant: Mutant, seen: Seen) -> str:
    """What differs from the data, "" if nothing does."""
    expected = "" if mutant.survives else mutant.caught
    if seen.caught != expected:
        return f"{mutant.name}: expected {mutant.caught}, seen {seen.caught or 'nothing'} ({said(seen)})"
    return "" if mutant.told in said(seen) else f"{mutant.name}: {mutant.told!r} is not in {said(seen)!r}"


def said(seen: Seen) -> str:
    return "; ".join(text for text in (seen.check_text, *seen.rules, *seen.doubts) if text)


# --- the page ----------------------------------------------------------------------------------------


def counts(mutants: Iterable[Mutant]) -> str:
    """The shares, from the data alone: the test compares them with the page."""
    found = Counter(mutant.caught for mutant in mutants)
    total, check, lab = found.total(), sum(found[key] for key in CHECK), sum(found[key] for key in LAB)
    wrong = total - found["equivalent"] - found["slower"]
    lines = [
        f"{total} mutants. `mccprobe check` catches {check} ({check / total:.1%}), {found['numbers']} of them "
        f"({found['numbers'] / total:.1%}) by numbers. With `check --lab` {check + lab} ({(check + lab) / total:.1%}).",
        f"{total - check - lab} survive. {found['equivalent']} of these cannot give another result and "
        f"{found['slower']} are right but slower. Of the {wrong} that are faults, check and laboratory together catch "
        f"{check + lab} ({(check + lab) / wrong:.1%}) and miss {found['unseen']}.",
        "",
        "| caught by | mutants | means |",
        "| --- | --- | --- |",
        *(f"| {key} | {found[key]} | {text} |" for key, text in {**CHECK, **LAB}.items()),
        *(f"| none: {key} | {found[key]} | {text} |" for key, text in SURVIVES.items()),
    ]
    return "\n".join(lines)


def row(mutant: Mutant, seen: Seen, banks: float | None) -> str:
    """A line of the table. banks: of the kernel without the fault."""
    lab = "; ".join([*seen.rules, *(f"doubt: {text}" for text in seen.doubts)]) or "no rule broken"
    if seen.banks and banks and seen.banks / banks >= BANKS:
        lab += f"; bank cycles {seen.banks:.2f} times the least, {banks:.2f} without the fault"
    lab = "not built" if seen.check == "compiler" else lab
    check = seen.check_text or "passes"
    kernel = " ".join([mutant.kernel, *(f"{name}={value}" for name, value in mutant.defines)])
    cells = (f"`{mutant.name}`", kernel, mutant.kind, mutant.what, mutant.caught, check, lab)
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def page(mutants: Sequence[Mutant], seen: dict[str, Seen], originals: dict[tuple[object, ...], Seen]) -> str:
    """kernels/MUTANTS.md."""
    survivors = [mutant for mutant in mutants if mutant.survives]
    return "\n".join(
        [
            "# Mutants of the kernels",
            "",
            "Kernels with one fault put in on purpose, and which check sees it. This page is made by",
            "`benchmarks/kernel_mutants.py --write` from `tests/kernels/mutants/mutants.toml`. All runs are on the",
            f"stand-in (`sim`, simulated): seed {SEED}, legacy cases and those that the gate adds, up to the first "
            "wrong",
            "one. The laboratory watches the cases that are small enough for it.",
            "",
            counts(mutants),
            "",
            f"The {len(originals)} kernels (with their parameters) that they are made of pass the check and break no "
            "rule.",
            "",
            "| mutant | kernel | kind | what | caught by | `mccprobe check` | `check --lab` |",
            "| --- | --- | --- | --- | --- | --- | --- |",
            *(row(one, seen[one.name], originals[one.kernel, one.defines].banks) for one in mutants),
            "",
            "## Why the survivors survive",
            "",
            *(f"- `{mutant.name}` ({mutant.caught}): {mutant.why}" for mutant in survivors),
            "",
        ]
    )


# --- all of them -------------------------------------------------------------------------------------


class Results:
    """What came of each kernel, kept in a file from one run to the next if there is one."""

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._known = json.loads(path.read_text()) if path and path.is_file() else {}
        sdk = sim_sdk(Path(os.environ.get("MCCPROBE_CACHE") or Path.home() / ".cache" / "mccprobe"))
        self._toolchain = SimToolchain(sdk.mcc, sdk)

    def of(self, mutant: Mutant, *, original: bool = False) -> Seen:
        """Of the mutant, or of its kernel without the fault."""
        key = json.dumps([mutant.kernel, mutant.defines, *([] if original else [mutant.find, mutant.replacement])])
        if key not in self._known:
            with tempfile.TemporaryDirectory() as name:
                spec = place(mutant.kernel, Path(name), None if original else mutant)
                found = judge(spec, mutant.defines, self._toolchain, Path(name))
            self._known[key] = asdict(replace(found, check_text=found.check_text.replace(name, ".")))
            if self._path:
                self._path.write_text(json.dumps(self._known, indent=1))
        entry = self._known[key]
        return Seen(
            **{**entry, "lab": Verdict(entry["lab"]), "rules": tuple(entry["rules"]), "doubts": tuple(entry["doubts"])}
        )


def tell(name: str, seen: Seen, fault: str) -> list[str]:
    """One line of progress; the fault as a list of at most one."""
    print(f"{name}: {seen.caught or 'nothing'}: {said(seen)}{' <-- ' + fault if fault else ''}", flush=True)
    return [fault] if fault else []


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--write", action="store_true", help=f"write {TABLE.relative_to(ROOT)}")
    parser.add_argument("--results", type=Path, metavar="FILE", help="keep results here; those in it are not run again")
    options = parser.parse_args()
    mutants = [one for one in load_mutants() if not options.names or one.name in options.names]
    if unknown := set(options.names) - {one.name for one in mutants}:
        parser.error(f"no mutant {', '.join(sorted(unknown))}")
    if options.write and options.names:
        parser.error("--write needs all of them")
    results = Results(options.results)
    originals: dict[tuple[object, ...], Seen] = {}
    seen: dict[str, Seen] = {}
    faults = []
    for mutant in mutants:
        if (mutant.kernel, mutant.defines) not in originals:
            found = originals[mutant.kernel, mutant.defines] = results.of(mutant, original=True)
            faults += tell(f"  {mutant.kernel}", found, f"{mutant.kernel} has no fault" if found.caught else "")
        found = seen[mutant.name] = results.of(mutant)
        faults += tell(mutant.name, found, fault_of(mutant, found))
    if options.write and not faults:
        TABLE.write_text(page(mutants, seen, originals))
    print("\n".join(["", *faults]) if faults else counts(mutants))
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
