"""`mccprobe overlay`: a kernel before and after a change of one SDK header.

    folder/include/<header>   the patched copy, which compiles find first
    folder/overlay.patch      the change as a diff
    folder/before/, after/    the two builds
    folder/question.md        for the report; it holds the diff and never the header

Flow: the header that the kernel reads (by the compiler) -> the change, exactly once -> proof that the patched copy is
read and the SDK's own is not -> resources and gate of both builds -> `OverlayReport`. The SDK is only read.
The host program is built with the SDK's own header both times: it judges.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mccprobe import __version__
from mccprobe.base.errors import InputError, SourceDoesNotCompile, ToolchainError, UsageError
from mccprobe.build.device_source import SourceOptions
from mccprobe.build.store import disk_errors
from mccprobe.inspection.host_elf import SIM_HEADING
from mccprobe.inspection.resources import ReportRequest, ResourceReport, report_on
from mccprobe.objects.model.frames import flat_row
from mccprobe.oracle.kernel.spec import KernelSpec
from mccprobe.oracle.verdict import Verdict
from mccprobe.targets import registry
from mccprobe.targets.mcc.architecture import DEFAULT_ARCH
from mccprobe.targets.mcc.toolchain import MccPaths
from mccprobe.targets.protocol import Toolchain
from mccprobe.tuning.check.check import DEFAULT_SEEDS, CheckedCase, GateReport, check_kernel
from mccprobe.tuning.overlay.change import Replacement, apply_once, difference
from mccprobe.tuning.overlay.header import dependencies, find_header, quoted_beside, require_rule

NOT_COMPARED = frozenset({"heading", "name", "target", "source_format", "origin", "demangled", "occupancy_model"})


@dataclass(frozen=True)
class OverlayRequest:
    """header: as it is included. folder: of this run alone."""

    kernel: KernelSpec
    toolchain: Toolchain
    header: str
    changes: Sequence[Replacement]
    folder: Path
    cache: Path
    mcc: MccPaths = field(default_factory=MccPaths)
    flags: Sequence[Sequence[str]] = ()
    defines: Mapping[str, str] | None = None
    cases: str = "legacy"
    seeds: Sequence[int] = DEFAULT_SEEDS
    arch: str = DEFAULT_ARCH
    timeout_s: float = 300.0
    compile_timeout_s: float = 300.0


@dataclass(frozen=True)
class Change:
    """One number of one kernel, before and after."""

    kernel: str
    metric: str
    before: Any
    after: Any

    def to_dict(self) -> dict[str, Any]:
        return {"kernel": self.kernel, "metric": self.metric, "before": self.before, "after": self.after}


@dataclass(frozen=True)
class Side:
    """One build: its resources and its gate."""

    resources: ResourceReport
    gate: GateReport

    def to_dict(self) -> dict[str, Any]:
        built = self.gate.built
        return {
            "verdict": self.gate.verdict.value,
            "worst_error": self.gate.worst_error,
            "reasons": self.gate.reasons(),
            "cases": len(self.gate.cases),
            "device_object": built.device_object if built else None,
            "kernels": [kernel.to_dict() for kernel in self.resources.kernels],
            "warnings": list(self.resources.warnings),
        }


@dataclass(frozen=True)
class OverlayReport:
    """header_sha256: of the SDK's file. diff: the change. heading: of a stand-in, "" otherwise."""

    request: OverlayRequest
    compiler: str
    header_path: Path
    header_sha256: str
    diff: str
    before: Side
    after: Side
    changes: tuple[Change, ...]
    heading: str

    @property
    def same_code(self) -> bool | None:
        """True if both builds have one and the same device code; None if one was not built."""
        built = (self.before.gate.built, self.after.gate.built)
        return built[0].device_object == built[1].device_object if built[0] and built[1] else None

    @property
    def conclusion(self) -> str:
        """What the two builds say, and no more."""
        before, after = self.before.gate.verdict, self.after.gate.verdict
        if self.after.gate.failure is not None:
            return "the kernel does not compile with the change"
        if self.same_code:
            return "the change does not reach this kernel: both builds have the same device code"
        if after is Verdict.BAD:
            return f"with the change the kernel is wrong (before: {before})"
        if after is Verdict.UNRESOLVED:
            return f"with the change the kernel could not be judged (before: {before})"
        if before is not Verdict.GOOD:
            return f"with the change the kernel passes; before it was {before}"
        return (
            "the kernel passes with the change as without it; that these cases need no more does not show "
            "that no other code does"
        )

    def to_dict(self) -> dict[str, Any]:
        """The document of `--json` (reports/overlay.schema.json)."""
        request = self.request
        return {
            "schema_version": 1,
            "tool_version": __version__,
            "status": "ok",
            "kernel": request.kernel.name,
            "toolchain": request.toolchain.name,
            "simulated": request.toolchain.simulated,
            "compiler": self.compiler,
            "header": request.header,
            "header_path": str(self.header_path),
            "header_sha256": self.header_sha256,
            "applied": len(request.changes),
            "diff": self.diff,
            "flags": [" ".join(flag) for flag in request.flags],
            "defines": dict(request.defines or {}),
            "before": self.before.to_dict(),
            "after": self.after.to_dict(),
            "changes": [change.to_dict() for change in self.changes],
            "same_code": self.same_code,
            "verdict": self.after.gate.verdict.value,
            "conclusion": self.conclusion,
            "folder": str(request.folder),
        }


def overlay(request: OverlayRequest, tell: Callable[[CheckedCase], None] = lambda case: None) -> OverlayReport:
    """Do it all. Raises InputError, PatchDoesNotApply, SourceDoesNotCompile, ToolchainError, UsageError."""
    toolchain, folder = request.toolchain, request.folder
    if not registry.target(toolchain.name).sdk_headers:  # the others' headers are mccprobe's own
        raise UsageError(
            f"an overlay of {toolchain.name} would change mccprobe's own headers, not an SDK's",
            hint="--toolchain mcc or sim",
        )
    if Path(request.header).is_absolute() or ".." in Path(request.header).parts:
        raise UsageError(f"--header {request.header}: expected a name as it stands in #include <...>")
    require_rule(folder, "choose another place with -o DIR")
    for source in request.kernel.sources:
        require_rule(source, "rename it")
    with disk_errors(folder):
        folder.mkdir(parents=True, exist_ok=True)
    original, _ = _header_of(request, ())
    text = _read(original)
    changed = apply_once(text, request.changes, str(original))
    include = folder / "include"
    copy = include / request.header
    with disk_errors(copy):
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_text(changed, encoding="utf-8", errors="surrogateescape", newline="")
    added = [(f"-I{include}",)]
    if quoted_beside(original, text):
        added.append((f"-I{original.parent}",))
    read, others = _header_of(request, added)
    if read.resolve() != copy.resolve() or original.resolve() in others:
        still, how = (original, " beside") if read.resolve() == copy.resolve() else (read, ", not")
        raise ToolchainError(
            f"the compile still reads {still}{how} the patched copy {copy}",
            hint="an #include with quotes, one by another name, or an option of kernel.toml comes before the overlay",
        )
    diff = difference(text, changed, request.header)
    with disk_errors(folder):
        (folder / "overlay.patch").write_text(diff, encoding="utf-8", errors="surrogateescape")
    before = _side(request, (), folder / "before", tell)
    if (failure := before.gate.failure) is not None:
        raise SourceDoesNotCompile(
            f"{request.kernel.name} does not compile with the SDK's own header: {failure.reason}",
            detail=failure.detail,
            hint="ran: " + " ".join(failure.command),
        )
    after = _side(request, added, folder / "after", tell)
    return OverlayReport(
        request,
        toolchain.identify().version,
        original,
        hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest(),
        diff,
        before,
        after,
        tuple(_changes(before.resources, after.resources)),
        SIM_HEADING if toolchain.simulated else "",
    )


def _read(header: Path) -> str:
    try:
        with header.open(encoding="utf-8", errors="surrogateescape", newline="") as file:
            return file.read()
    except OSError as error:
        raise InputError(f"{header}: {error.strerror or error}") from error


def _options(request: OverlayRequest, added: Sequence[Sequence[str]]) -> list[str]:
    """Compile options of the kernel's own sources, with `added` behind them as the gate puts it."""
    defines = [f"-D{name}={value}" for name, value in sorted((request.defines or {}).items())]
    flat = [word for flag in (*request.flags, *added) for word in flag]
    return [*request.kernel.compile_args, *defines, *flat]


def _header_of(request: OverlayRequest, added: Sequence[Sequence[str]]) -> tuple[Path, set[Path]]:
    """The one file that all sources of the kernel read as this header, as the compiler spells it, and all files that
    they read, without links. Sources that do not read the header do not count."""
    options = [f"--offload-arch={request.arch}", *_options(request, added)]
    missing: list[InputError] = []
    found: dict[Path, Path] = {}
    others: set[Path] = set()

    def included() -> list[Path]:
        probe = request.folder / "included.mu"
        with disk_errors(probe):
            probe.write_text(f"#include <{request.header}>\n", encoding="utf-8", errors="surrogateescape")
        try:
            return dependencies(request.toolchain, options, probe, request.folder)
        except SourceDoesNotCompile:  # the header wants others before it
            return []

    for source in request.kernel.sources:
        try:
            read = dependencies(request.toolchain, options, source, request.folder)
            others |= {path.resolve() for path in read}
            header = find_header(read, request.header, source, included)
            found.setdefault(header.resolve(), header)
        except InputError as error:
            if error.code != InputError.code:  # it did not compile
                raise
            missing.append(error)
    if not found:
        raise missing[0]
    if len(found) > 1:
        files = ", ".join(map(str, found.values()))
        raise InputError(f"the sources read {len(found)} different files {request.header}: {files}")
    return next(iter(found.values())), others


def _side(
    request: OverlayRequest, added: Sequence[Sequence[str]], folder: Path, tell: Callable[[CheckedCase], None]
) -> Side:
    toolchain = request.toolchain
    gate = check_kernel(
        request.kernel,
        toolchain,
        cases=request.cases,
        seeds=request.seeds,
        flags=[*map(tuple, request.flags), *map(tuple, added)],
        defines=request.defines,
        folder=folder,
        timeout_s=request.timeout_s,
        compile_timeout_s=request.compile_timeout_s,
        arch=request.arch,
        tell=tell,
    )
    if gate.failure is not None:
        return Side(ResourceReport(()), gate)
    source = SourceOptions(toolchain.name, request.mcc, request.arch, tuple(_options(request, added)), request.cache)
    return Side(report_on(ReportRequest(request.kernel.sources, source=source)), gate)


def _changes(before: ResourceReport, after: ResourceReport) -> list[Change]:
    """Every number that differs, kernel by kernel of the same name."""
    rows = {kernel.kernel.name: (kernel.title, flat_row(kernel)) for kernel in before.kernels}
    found = []
    for kernel in after.kernels:
        title, old = rows.get(kernel.kernel.name, (kernel.title, {}))
        found += [
            Change(title, name, old.get(name), value)
            for name, value in flat_row(kernel).items()
            if name not in NOT_COMPARED and value != old.get(name)
        ]
    return found
