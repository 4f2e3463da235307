"""What a kernel's host program says about one run, judged by kernel.toml as well as by itself.

The contract is in kernels/README.md. The program's own verdict is not enough: a program with a wider
tolerance, another shape or input of zeros would pass everything. So each of them is read and compared.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from mccprobe.base.process import RunResult
from mccprobe.oracle.checks import SKIP_STATUS, document_doubt, finite_number, json_document
from mccprobe.oracle.kernel.expression import ExpressionError
from mccprobe.oracle.kernel.spec import Case, KernelSpec
from mccprobe.oracle.verdict import Verdict

TOLERANCE_SLACK = 1e-6  # relative: the program prints nine digits
MAX_ZERO_SHARE = 0.5  # above it the input is as good as empty
NEEDED = ("m", "n", "k", "input", "zero_share")  # of the contract: without them nobody knows what was run
MEASUREMENT = "mccprobe_measure"  # entry of kernels whose cases are no shapes: M blocks of N threads with K steps
INPUTS = ("random", "zero")
MAX_TOLD = 600  # characters of what a program says when it ends without its document
UNSUPPORTED = "no kernel takes this shape"  # the contract's words for a shape that the dispatch refuses


@dataclass(frozen=True)
class HostAnswer:
    """One run of a host program.

    launches: kernel -> launches, None if the program does not report them. zero_share: of the input
    elements, None if not reported. milliseconds: of each repeat. refused: no kernel takes the shape.
    """

    verdict: Verdict
    reason: str
    max_err: float | None = None
    tolerance: float | None = None
    launches: dict[str, int] | None = None
    zero_share: float | None = None
    milliseconds: tuple[float, ...] = ()
    device: str = ""
    refused: bool = False
    document: dict[str, Any] = field(default_factory=dict, compare=False, repr=False)


def read_answer(kernel: KernelSpec, case: Case, result: RunResult, *, seed: int | None = None) -> HostAnswer:
    """Judge one run. GOOD only if program and kernel.toml agree on it; a doubt is UNRESOLVED.

    seed: that was asked for, None if the caller does not care.
    """
    limit = case_tolerance(kernel, case)
    if result.returncode is None or result.timed_out:
        return HostAnswer(Verdict.UNRESOLVED, result.describe(), tolerance=limit)
    document = json_document(result.stdout)
    if document is None:
        return HostAnswer(Verdict.UNRESOLVED, _without_document(result), tolerance=limit)
    answer = HostAnswer(
        *_verdict(kernel, case, document, result, limit, seed),
        max_err=finite_number(document.get("max_err")),
        tolerance=limit if limit is not None else finite_number(document.get("tolerance")),
        launches=_launches(document.get("launches")),
        zero_share=finite_number(document.get("zero_share")),
        milliseconds=_milliseconds(document.get("milliseconds")),
        device=str(document.get("device") or ""),
        refused=result.returncode == SKIP_STATUS and document.get("reason") == UNSUPPORTED,
        document=document,
    )
    return answer


def case_tolerance(kernel: KernelSpec, case: Case) -> float | None:
    """The bound of kernel.toml on max_err; None where there is none, or a relative one."""
    if kernel.tolerance is None or kernel.tolerance.kind != "absolute":
        return None
    try:
        limit = kernel.tolerance.limit(case)
    except (ExpressionError, OverflowError):  # a shape of the command line that the formula was not tried on
        return None
    return limit if math.isfinite(limit) and limit >= 0 else None


def _verdict(
    kernel: KernelSpec, case: Case, document: dict[str, Any], result: RunResult, limit: float | None, seed: int | None
) -> tuple[Verdict, str]:
    status = int(result.returncode or 0)
    if status == SKIP_STATUS:
        return Verdict.UNRESOLVED, str(document.get("reason") or "the host program cannot tell")
    if status not in (0, 1):
        return Verdict.UNRESOLVED, f"the host program ends with {result.describe()}"
    said = Verdict.GOOD if status == 0 else Verdict.BAD
    doubt = document_doubt(document, status, seed=seed) or _doubt(kernel, case, document)
    if doubt:
        return Verdict.UNRESOLVED, doubt
    error, own = finite_number(document.get("max_err")), finite_number(document.get("tolerance"))
    numbers = _numbers(document, error)
    wrong = finite_number(document.get("mismatches"))
    if error is not None and error < 0:
        return Verdict.UNRESOLVED, f"{numbers}: no error is below 0"
    within = error is not None and limit is not None and error <= limit
    if said is Verdict.GOOD:
        if error is None and (limit is not None or "max_err" in document):
            return Verdict.UNRESOLVED, "exit 0 without a finite max_err to hold against the tolerance of kernel.toml"
        if limit is not None and not within:
            return Verdict.BAD, f"{numbers}: above {limit:.6g} of kernel.toml; the program itself allows {own}"
        if wrong:
            return Verdict.UNRESOLVED, f"{numbers}: exit 0 all the same"
        return said, numbers
    if limit is None:
        return said, numbers
    if within and own is not None and own < limit * (1 - TOLERANCE_SLACK):
        return (
            Verdict.UNRESOLVED,
            f"{numbers}: within {limit:.6g} of kernel.toml, but the program allows only {own:.6g}",
        )
    if within and wrong == 0:
        return Verdict.UNRESOLVED, f"{numbers}: exit 1 all the same"
    return said, numbers


def _doubt(kernel: KernelSpec, case: Case, document: dict[str, Any]) -> str:
    """Why a verdict would be about something else than this case, "" if it is not."""
    missing = [name for name in NEEDED if name not in document]
    if missing:
        return f"the host program does not say {', '.join(missing)} (mccprobe help kernels)"
    for name, asked in (("m", case.m), ("n", case.n), ("k", case.k)):
        if document[name] != asked:
            return f"the host program ran {name} = {document[name]}, not {asked}"
    share = finite_number(document.get("zero_share"))
    if document["zero_share"] is not None and (share is None or not 0 <= share <= 1):
        return f"the host program says zero_share = {document['zero_share']}, which is no share"
    if document["input"] not in INPUTS:
        return f"the host program says input = {document['input']}, not {' or '.join(INPUTS)}"
    for name in ("mismatches", "elements"):
        count = document.get(name)
        if count is not None and (type(count) is not int or count < 0):
            return f"the host program says {name} = {count}, which is no count"
    compared = document.get("elements")
    if compared is not None and kernel.entry != MEASUREMENT and compared < case.m * case.n:
        return f"the host program compared only {compared} of {case.m * case.n} elements"
    if document.get("input") == "zero" or (share is not None and share > MAX_ZERO_SHARE):
        return "all-zero input: any kernel that writes zeros passes it"
    return ""


def _numbers(document: dict[str, Any], error: float | None) -> str:
    told = "not finite" if error is None else f"{error:.4g}"
    wrong, elements = document.get("mismatches"), document.get("elements")
    counted = elements is not None and wrong is not None
    return f"{wrong}/{elements} wrong, max_err {told}" if counted else f"max_err {told}"


def _without_document(result: RunResult) -> str:
    lines = result.stderr_text.strip().splitlines()
    at = next((number for number, line in enumerate(lines) if "TRAP" in line), len(lines) - 1)
    told = " ".join(filter(None, ["".join(lines[at : at + 1]), _indented(lines[at + 1 :])]))[:MAX_TOLD]
    if result.returncode == SKIP_STATUS:
        return f"invalid program: {told}" if told else "exit 125 (cannot tell)"
    return f"{result.describe()} without the JSON document of the contract" + (f": {told}" if told else "")


def _indented(lines: Sequence[str]) -> str:
    """What belongs to the line before: which lanes did what."""
    return "; ".join(line.strip() for line in itertools.takewhile(lambda line: line.startswith("  "), lines))


def _launches(value: object) -> dict[str, int] | None:
    if not isinstance(value, dict) or not all(type(count) is int and count >= 0 for count in value.values()):
        return None
    return {str(name): count for name, count in value.items() if count}


def _milliseconds(value: object) -> tuple[float, ...]:
    numbers = [finite_number(entry) for entry in value] if isinstance(value, list) else []
    return () if None in numbers else tuple(number for number in numbers if number is not None)
