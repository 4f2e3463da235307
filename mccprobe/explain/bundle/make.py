"""A bug report as a folder and an archive, made from a finished run.

    <folder>/
      report.md        the text (its style and language are options)
      repro.sh         the whole program and its check in one script
      source/          the user's files, as they lie to each other; the reduced source where there is one
      bitcode/         before the first optimisation, compiled from source/
      where/           code before and after the pass, where `why` found it
      commands.json    every command; options for mccprobe
      journal.jsonl    every trial
      bundle.json      what `mccprobe recheck` reads
    <folder>.tar.gz    the same; equal input gives equal bytes

Everything is made in a temporary folder from scrubbed text, repro.sh is run once in an empty one, and
every file is searched for private names once more before anything is written for the user.
"""

from __future__ import annotations

import hashlib
import json
import platform
import shlex
import shutil
import tempfile
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mccprobe import __version__
from mccprobe.base.console import json_text
from mccprobe.base.errors import MccprobeError, UsageError
from mccprobe.base.files import remove_dead_drafts, replace_folder
from mccprobe.base.process import RunSpec, run
from mccprobe.build.store import disk_errors
from mccprobe.explain.bundle.archive import write_archive
from mccprobe.explain.bundle.build import (
    PROGRAM,
    add_bitcode,
    carried_configuration,
    carried_environment,
    make_repro,
    try_repro,
)
from mccprobe.explain.bundle.making import Making, add_sources, is_text, machine_names, search_once_more, user_files
from mccprobe.explain.bundle.repro import Repro, repro_script
from mccprobe.explain.bundle.run import open_run
from mccprobe.explain.bundle.sources import lay_out, map_paths
from mccprobe.report.bug_report import bisect_part, build_document
from mccprobe.report.bug_report_blocks import BundleFacts
from mccprobe.report.bug_report_words import load_words, plain_text
from mccprobe.report.render_bug import render
from mccprobe.report.scrub import Removed, Scrubber
from mccprobe.targets import registry
from mccprobe.targets.llvm.inherited import mapped

SCHEMA_VERSION = 1
HERE = "{bundle}"  # stands for the bundle's folder in the options that recheck reads


@dataclass(frozen=True)
class BundleChoices:
    """How the report is written."""

    style: str = "llvm"
    language: str = "en"
    scrub: bool = True
    dry_run: bool = False


@dataclass(frozen=True)
class Written:
    """What was written. repro_exit: of repro.sh, None when it was not run (repro_text says why)."""

    folder: Path
    archive: Path
    title: str
    simulated: bool
    repro_exit: int | None
    repro_text: str
    removed: tuple[Removed, ...]
    left_out: tuple[str, ...]
    files: tuple[str, ...]
    dry_run: bool

    def to_dict(self, tool_version: str) -> dict[str, Any]:
        """The `--json` document (reports/bug-report.schema.json): what was removed by kind, never the names."""
        kinds: Counter[str] = Counter()
        for item in self.removed:
            kinds[item.kind] += item.times
        return {
            "schema_version": SCHEMA_VERSION,
            "tool_version": tool_version,
            "status": "done",
            "folder": str(self.folder),
            "archive": str(self.archive),
            "title": self.title,
            "simulated": self.simulated,
            "repro": {"exit": self.repro_exit, "text": self.repro_text},
            "removed": dict(kinds),
            "left_out": list(self.left_out),
            "files": list(self.files),
            "dry_run": self.dry_run,
        }


def write_bug_report(
    root: Path,
    out: Path,
    choices: BundleChoices,
    *,
    cache: Path,
    tell: Callable[[str], None],
    show: Callable[[Sequence[Removed]], None],
) -> Written:
    """Write the report of the run in `root` to the folder `out` and to `out`.tar.gz.

    show: called with everything that was removed before the first byte is written. Raises BadReport,
    UsageError when `out` holds something else.
    """
    finished = open_run(root)
    finished.require_same_source()
    _require_free(out)
    scrubber = Scrubber(machine_names(finished, cache), True) if choices.scrub else Scrubber((), False)
    toolchain = None
    missing = ""
    try:
        toolchain = finished.toolchain(cache)
    except MccprobeError as error:
        missing = error.message
    with tempfile.TemporaryDirectory(prefix="mccprobe-report-") as temporary:
        staging = Path(temporary) / out.name
        staging.mkdir()
        making = Making(finished, staging, scrubber, lay_out(user_files(finished)), toolchain)
        tell("collecting the source")
        reduced = add_sources(making)
        tell("building the reference once more")
        repro, bad = make_repro(making, Path(temporary))
        making.add("repro.sh", repro_script(repro).encode("utf-8", "surrogateescape"), "repro.sh")
        (staging / "repro.sh").chmod(0o755)
        no_bitcode = add_bitcode(making, Path(temporary)) if toolchain else missing
        _add_evidence(making)
        tell("running repro.sh in an empty folder")
        exit_status, text = try_repro(making, Path(temporary), missing)
        _add_commands(making, repro, bad)
        title = _add_report(making, choices, reduced, exit_status, text, no_bitcode, repro)
        _add_bundle(making, repro, title, bad)
        search_once_more(making)
        show(scrubber.removed())
        files = tuple(sorted(path.relative_to(staging).as_posix() for path in staging.rglob("*") if path.is_file()))
        archive = out.with_name(f"{out.name}.tar.gz")
        if not choices.dry_run:
            tell(f"writing {out}")
            with disk_errors(out):
                _replace(staging, out)
                write_archive(out, archive)
    return Written(
        out,
        archive,
        title,
        repro.simulated,
        exit_status,
        text,
        tuple(scrubber.removed()),
        tuple(making.left_out),
        files,
        choices.dry_run,
    )


# -- the other files --------------------------------------------------------------------------------------


def _add_evidence(making: Making) -> None:
    """The journal, and what `why` wrote about the pass."""
    journal = making.run.own / "journal.jsonl"
    if journal.is_file():
        making.add("journal.jsonl", journal.read_bytes(), "journal.jsonl")
    where = making.run.root / "where"
    listed = ((making.run.result.get("where") or {}).get("files") or {}).values()
    for path in sorted({Path(name) if Path(name).is_absolute() else where / name for name in listed}):
        if path.is_file() and path.is_relative_to(making.run.root):
            making.add(f"where/{path.name}", path.read_bytes(), "where")


def _add_commands(making: Making, repro: Repro, bad: Mapping[str, Any]) -> None:
    finished = making.run
    document = {
        "schema_version": SCHEMA_VERSION,
        "simulated": repro.simulated,
        "compiler": {"name": repro.compiler, "version": finished.request.get("version")},
        "builds": {
            build.name: [["COMPILER", *repro.driver_args, *argv] for argv in commands]
            for build, commands in repro.builds()
        },
        "check": [part.replace(PROGRAM, "./bad") for part in repro.check.command],
        "as_run": _shown_sides(making),
        "bad": dict(bad),
    }
    making.add("commands.json", json_text(document).encode("utf-8", "surrogateescape"), "commands.json")


def _shown_sides(making: Making) -> dict[str, Any]:
    """The commands of both sides with the bundle's file names and the compiler's own name."""
    finished, layout = making.run, making.layout
    names = {str(finished.source): layout.place(finished.source)}
    names |= {name: layout.place(finished.where / name) for name in finished.request["inputs"]}
    names |= {str(finished.stdin): layout.place(finished.stdin)} if finished.stdin else {}
    names[finished.request["compiler"]] = Path(finished.request["compiler"]).name
    carried = carried_environment(finished, layout)
    names |= {f"{name}={value}": f"{name}={carried[name]}" for name, value in finished.inherited.items()}
    sides = bisect_part(finished.result).get("reproduce") or {}
    return {side: [[names.get(part, part) for part in argv] for argv in argvs] for side, argvs in sides.items()}


def _options(making: Making) -> dict[str, Any]:
    """The bisection's options with the bundle's files, for `mccprobe recheck`."""
    finished, layout = making.run, making.layout
    request = finished.request

    def place(value: str) -> str:
        name = layout.place(finished.where / value)
        return f"{HERE}/{name}" if name.startswith("source") else name

    args = [*map_paths(request["args"], place), *map_paths(request["link_args"], place)]
    if request["oracle"][0] != "kernel":
        args += [place(str(path)) for path in finished.inputs]
    values = finished.options.to_dict()
    values |= {"file": place(str(finished.source)), "flags": list(finished.flag_names), "args": args}
    values |= {"toolchain": "auto", "compiler": None, "mcc": None, "musa_path": None, "run_in": None}
    values["stdin"] = place(str(finished.stdin)) if finished.stdin else None
    if request["oracle"][0] == "command":
        words = [place(part) if (finished.where / part).is_file() else part for part in request["oracle"][1]]
        values["oracle"] = shlex.join(words)
    return values


def _environment(making: Making) -> dict[str, str]:
    """Variables of the environment that were in every compile, for `mccprobe recheck`."""
    carried = carried_environment(making.run, making.layout)

    def place(name: str) -> str:
        return f"{HERE}/{name}" if name == "source" or name.startswith("source/") else name

    return mapped(carried, place, lambda args: map_paths(args, place))


def _add_report(
    making: Making,
    choices: BundleChoices,
    reduced: tuple[int, int] | None,
    exit_status: int | None,
    text: str,
    no_bitcode: str,
    repro: Repro,
) -> str:
    """Write report.md last of all texts: it lists the others. Returns the title, scrubbed."""
    finished = making.run
    scrubber = making.scrubber
    result = dict(finished.result)
    if "minimal_flag_sets" not in result:
        result["reproduce"] = _shown_sides(making)
    elif result.get("bisect"):
        result["bisect"] = {**result["bisect"], "reproduce": _shown_sides(making)}
    where = result.get("where") or {}
    if where.get("reproducer"):  # its inputs lie in the bundle's where/
        inside = f"{finished.root}/where/"
        argvs = [[part.replace(inside, "where/") for part in argv] for argv in where["reproducer"]]
        result["where"] = {**where, "reproducer": argvs}
    result = scrubber.value(result)
    result["source"] = repro.source
    result["bad_args"] = scrubber.value(list(finished.bad_args))
    compiler_text = toolkit = ""
    if making.toolchain is not None:
        version = run(RunSpec([*making.toolchain.driver, "--version"], timeout_s=60.0))
        compiler_text = scrubber.text(version.stdout_text.strip())
        described = making.toolchain.identify().resolved.parent.parent / "version.json"
        if registry.target(str(finished.request["toolchain"])).sdk_headers and described.is_file():
            toolkit = scrubber.text(described.read_text("utf-8", "replace").strip())
    making.files.sort(key=lambda entry: entry[0])
    kinds: Counter[str] = Counter()
    for item in scrubber.removed():
        kinds[item.kind] += item.times
    names = [("report.md", "report.md"), *making.files, ("bundle.json", "bundle.json")]
    data = (making.staging / repro.source).read_bytes() if (making.staging / repro.source).is_file() else b""
    source = data.decode("utf-8", "replace") if is_text(data) else ""
    facts = BundleFacts(
        compiler_name=repro.compiler,
        compiler_text=compiler_text,
        machine=f"{platform.system()} {platform.machine()}",
        toolkit=toolkit,
        repro_exit=exit_status,
        repro_text=text,
        reduced=reduced,
        source_name=repro.source,
        source_text=source,
        files=tuple(names),
        left_out=tuple(making.left_out),
        no_bitcode=scrubber.text(no_bitcode),
        removed=dict(kinds) if choices.scrub else None,
    )
    words = load_words(choices.language)
    document = build_document(result, facts, words, choices.style)
    rendered = render(document, choices.style)
    (making.staging / "report.md").write_bytes(rendered.encode("utf-8", "backslashreplace"))
    return plain_text(document.title)


def _add_bundle(making: Making, repro: Repro, title: str, bad: Mapping[str, Any]) -> None:
    finished = making.run
    bisect = bisect_part(finished.result)
    digests = {
        path.relative_to(making.staging).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(making.staging.rglob("*"))
        if path.is_file()
    }
    document = {
        "schema_version": SCHEMA_VERSION,
        "tool_version": __version__,
        "title": title,
        "toolchain": repro.toolchain,
        "simulated": repro.simulated,
        "compiler": {"name": repro.compiler, "version": finished.request.get("version")},
        "status": bisect.get("status"),
        "culprit": bisect.get("culprit"),
        "failure_rate": bisect.get("failure_rate"),
        "bad": {**bad, "text": (bisect.get("oracle") or {}).get("bad", "")},
        "expected": {
            "sha256": hashlib.sha256(repro.check.expected).hexdigest() if repro.check.kind == "reference" else None,
            "status": repro.check.expected_status,
        },
        "options": _options(making),
        "environment": _environment(making),
        "configuration": carried_configuration(finished, making.layout),
        "files": digests,
    }
    text = json.dumps(making.scrubber.value(document), indent=2, sort_keys=True) + "\n"
    (making.staging / "bundle.json").write_text(text, "utf-8")


# -- where it goes ------------------------------------------------------------------------------------------


def _require_free(out: Path) -> None:
    if out.exists() and not (out / "bundle.json").is_file() and (not out.is_dir() or any(out.iterdir())):
        raise UsageError(f"{out} is not empty and no bug report", hint="choose another folder with -o DIR")


def _replace(staging: Path, out: Path) -> None:
    """Put the finished folder in its place; a report that was there goes."""
    out.parent.mkdir(parents=True, exist_ok=True)
    remove_dead_drafts(out.parent)
    with replace_folder(out) as fresh:
        shutil.copytree(staging, fresh, dirs_exist_ok=True)
        fresh.chmod(0o755)
