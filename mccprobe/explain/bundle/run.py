"""A run directory of `why` or `bisect`, read for a bug report: result, request, options, and its own files.

<run of bisect>/  run.json result.json journal.jsonl unit/
<run of why>/     run.json result.json bisect/<as above> where/ reduced/
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from mccprobe.base.errors import BadReport, CompilerNotFound, MccprobeError
from mccprobe.base.paths import read_file, require_plain_folder
from mccprobe.bisection.passes.options import BisectOptions
from mccprobe.bisection.passes.request import digest_of
from mccprobe.report.bug_report import bisect_part
from mccprobe.targets import registry
from mccprobe.targets.flags.datafile import shorten
from mccprobe.targets.llvm.command import link_options, mllvm_value, split_arguments
from mccprobe.targets.llvm.inherited import VARIABLES
from mccprobe.targets.protocol import Toolchain, Wanted

READ_VERSIONS = (1, 2)  # of run.json and result.json
MOST_DOCUMENT_BYTES = 256 << 20  # of run.json and result.json: some kilobytes
REDUCED = "reduced"  # folder of a run in which `mccprobe reduce` works
_ASKED = (
    "toolchain", "compiler", "version", "source", "source_sha256", "args", "flags", "inputs", "link_args",
    "reference_args", "oracle",
)  # fmt: skip


_ASKED_LATELY = ("environment", "configuration", "stdin")  # a run of an earlier mccprobe does not say


@dataclass(frozen=True)
class FinishedRun:
    """What a report is made from.

    root: as named; own: the run directory of the bisection (root itself, or root/bisect).
    request: as run.json describes it; options: of the bisection. where: the user's working directory.
    """

    root: Path
    own: Path
    result: dict[str, Any]
    request: dict[str, Any]
    options: BisectOptions
    where: Path

    @property
    def source(self) -> Path:
        return Path(self.request["source"])

    @property
    def flags(self) -> tuple[tuple[str, ...], ...]:
        """Driver arguments of each flag of the bad build."""
        return tuple(tuple(flag) for flag in self.request["flags"])

    @property
    def bad_args(self) -> tuple[str, ...]:
        return (*self.request["args"], *(argument for flag in self.flags for argument in flag))

    @property
    def flag_names(self) -> tuple[str, ...]:
        """The flags as `--flag` takes them."""
        return tuple(mllvm_value(flag) or " ".join(flag) for flag in self.flags)

    @property
    def reference_link_args(self) -> tuple[str, ...]:
        """What only links in the reference build."""
        own: tuple[str, ...] = tuple(self.request["link_args"])
        if self.options.reference is None:
            return own
        given = link_options(split_arguments(shlex.split(self.options.reference)))
        return given if self.options.reference_exact else (*own, *given)

    @property
    def inputs(self) -> tuple[Path, ...]:
        """Further sources, objects and archives."""
        return tuple(self.where / name for name in self.request["inputs"])

    @property
    def inherited(self) -> dict[str, str]:
        """Variables of the environment that were in every compile."""
        return dict(self.request.get("environment") or {})

    @property
    def configuration(self) -> Path | None:
        """The file whose options the compiler read by itself."""
        named = self.request.get("configuration")
        return Path(named) if named else None

    @property
    def stdin(self) -> Path | None:
        """What the program read from standard input."""
        named = self.request.get("stdin")
        return Path(named) if named else None

    @property
    def culprit(self) -> dict[str, Any]:
        """The culprit of the result, {} without one."""
        return dict(bisect_part(self.result).get("culprit") or {})

    def rebuilt_options(self) -> BisectOptions:
        """The options of the bisection that the result tells of: with its flags and its very compiler."""
        target = registry.target(str(self.request["toolchain"]))
        changed: dict[str, Any] = {"flags": self.flag_names, "toolchain": target.name}
        if target.path_option:
            changed[target.path_option] = str(self.request["compiler"])
        return replace(self.options, **changed)

    def reduced(self) -> Path | None:
        """The reduced source, if there is one that was verified."""
        named = self.result.get("reduced")
        for path in (Path(named) if named else None, *sorted((self.root / REDUCED).glob("best.*"))):
            if path is not None and path.is_file():
                return path
        return None

    def require_same_source(self) -> None:
        """Raise BadReport when the source is not the one of the run any more."""
        if digest_of(self.source) != self.request["source_sha256"]:
            raise BadReport(
                f"{self.source} changed since the run", hint="run again: the report would be of another program"
            )

    def toolchain(self, cache: Path) -> Toolchain:
        """The compiler of the run. Raises ToolchainError when it is not here any more."""
        compiler, name = str(self.request["compiler"]), str(self.request["toolchain"])
        if not Path(compiler).is_file():
            raise CompilerNotFound(compiler, (), hint="the compiler of the run is not here any more")
        target = registry.target(name)
        options = {target.path_option or "compiler": compiler}
        if self.options.musa_path:
            options["musa_path"] = self.options.musa_path
        return target.find(Wanted(cache, (str(self.source),), shipped=True, options=options)).toolchain


def _document(path: Path) -> dict[str, Any]:
    try:
        document = json.loads(read_file(path, MOST_DOCUMENT_BYTES, follow=False).decode("utf-8", "surrogateescape"))
    except OSError as error:
        raise BadReport(
            f"{path}: {error.strerror or error}", hint="name the run directory of mccprobe why or bisect, finished"
        ) from error
    except (ValueError, RecursionError) as error:
        raise BadReport(f"{path}: not JSON: {shorten(str(error), 200)}") from error
    if not isinstance(document, dict):
        raise BadReport(f"{path}: not what mccprobe writes")
    return document


def open_run(root: Path) -> FinishedRun:
    """Read a finished run. Raises BadReport, UnsafeRunFolder."""
    require_plain_folder(root)
    result = _document(root / "result.json")
    asked = _document(root / "run.json")
    for name, document in (("result.json", result), ("run.json", asked)):
        if document.get("schema_version") not in READ_VERSIONS:
            raise BadReport(
                f"{root / name}: format {shorten(repr(document.get('schema_version')))}; this mccprobe reads 1 and 2",
                hint="another version of mccprobe wrote it",
            )
    of_why = "minimal_flag_sets" in result
    try:
        bisect = _checked_result(bisect_part(result))
        plain = asked["options"]
        options = BisectOptions.from_dict(plain["bisect"] if of_why else plain, str(root / "run.json"))
        known = asked["request"]
        request = _checked_request({key: known[key] for key in _ASKED} | {key: known.get(key) for key in _ASKED_LATELY})
        if bisect:
            request["flags"] = [_argv(name, request["flags"]) for name in bisect["flags"]]
    except (KeyError, TypeError, AttributeError, ValueError, MccprobeError) as error:
        raise BadReport(f"{root / 'run.json'}: not what mccprobe writes: {shorten(str(error), 200)}") from error
    own = root / "bisect" if of_why else root
    where = Path(bisect.get("working_directory") or ".")
    return FinishedRun(root.absolute(), own.absolute(), result, request, options, where)


def _texts(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(item, str) for item in value)


def _checked_request(request: dict[str, Any]) -> dict[str, Any]:
    """Raises TypeError for what a run does not write: it may come from somewhere else."""
    for key in ("toolchain", "compiler", "version", "source", "source_sha256"):
        if not isinstance(request[key], str):
            raise TypeError(f"request.{key} is no text")
    for key in ("args", "inputs", "link_args"):
        if not _texts(request[key]):
            raise TypeError(f"request.{key} is no list of texts")
    environment = request["environment"]
    if environment is not None and not (isinstance(environment, dict) and _texts(list(environment.values()))):
        raise TypeError("request.environment is no object of texts")
    if not set(environment or {}) <= set(VARIABLES):
        raise TypeError("request.environment holds other variables than it may")
    if not isinstance(request["configuration"], str | None):
        raise TypeError("request.configuration is no text")
    if not isinstance(request["stdin"], str | None):
        raise TypeError("request.stdin is no text")
    flags = request["flags"]
    if not isinstance(flags, list) or not all(flag and _texts(flag) for flag in flags):
        raise TypeError("request.flags is no list of arguments")
    return request


def _checked_result(bisect: dict[str, Any]) -> dict[str, Any]:
    """The same for the bisection of a result; {} where there is none."""
    if bisect and not _texts(bisect["flags"]):
        raise TypeError("flags of the result are no list of texts")
    for key, kind in (("culprit", dict), ("working_directory", str)):
        if not isinstance(bisect.get(key), kind | None):
            raise TypeError(f"{key} of the result")
    return bisect


def _argv(name: str, flags: Sequence[Sequence[str]]) -> list[str]:
    """Driver arguments of a flag that the result names by its argv in one string. Raises ValueError."""
    for argv in flags:
        if " ".join(argv) == name:
            return list(argv)
    words = shlex.split(name)  # a member of a bundle: one or two words
    if not words:
        raise ValueError("flags of the result: a flag without a word")
    return words
