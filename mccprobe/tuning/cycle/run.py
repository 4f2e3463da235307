"""One round of work on a kernel in one go: health, gate, timing, resources, and one summary.

What the article's run_official_loop and test_cycle did. Every part that could not be done has its reason;
nothing is timed that did not pass, and a failed part does not hide the others.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mccprobe.base.console import json_text
from mccprobe.base.errors import MccprobeError
from mccprobe.build.device_source import SourceOptions
from mccprobe.inspection.resources import ReportRequest, ResourceReport, report_on
from mccprobe.objects.model.resources import Options
from mccprobe.oracle.verdict import Verdict
from mccprobe.targets import registry
from mccprobe.targets.mcc.toolchain import MccPaths
from mccprobe.targets.protocol import Toolchain
from mccprobe.tuning.bench.session import BenchReport, BenchSettings, Contender, Hooks, bench_kernels
from mccprobe.tuning.check.check import GateReport

SUMMARY = "summary.json"
LATEST = "latest_summary.json"  # beside the runs: the newest one's summary, as the article's logs/ has it


@dataclass(frozen=True)
class CycleReport:
    """What one round found. resources: None if there are none, and resources_reason says why."""

    contender: Contender
    bench: BenchReport
    resources: ResourceReport | None
    resources_reason: str
    run_directory: Path

    @property
    def gate(self) -> GateReport | None:
        return self.bench.gates[0] if self.bench.gates else None

    @property
    def verdict(self) -> Verdict:
        """The gate's; UNRESOLVED if it did not come to it."""
        return self.gate.verdict if self.gate is not None else Verdict.UNRESOLVED

    @property
    def passed(self) -> bool:
        """Right, and timed."""
        return self.verdict is Verdict.GOOD and not self.bench.refused

    def to_dict(self) -> dict[str, Any]:
        resources = None
        if self.resources is not None:
            document = self.resources.to_dict()
            resources = {name: document[name] for name in ("units", "kernels", "told", "warnings")}
        return {
            "kernel": self.contender.kernel.name,
            "verdict": self.verdict.value,
            "passed": self.passed,
            **self.bench.to_dict(),
            "resources": resources,
            "resources_reason": self.resources_reason or None,
            "run_directory": str(self.run_directory),
        }


def run_cycle(
    contender: Contender,
    toolchain: Toolchain,
    settings: BenchSettings,
    paths: MccPaths,
    cache: Path,
    folder: Path,
    hooks: Hooks,
) -> CycleReport:
    """Do the round below `folder`."""
    bench = bench_kernels([contender], toolchain, settings, folder / "build", hooks)
    hooks.stage("resources")
    resources, reason = _resources(contender, toolchain, settings, paths, cache)
    return CycleReport(contender, bench, resources, reason, folder)


def _resources(
    contender: Contender, toolchain: Toolchain, settings: BenchSettings, paths: MccPaths, cache: Path
) -> tuple[ResourceReport | None, str]:
    if "report" not in registry.target(toolchain.name).offers:
        return None, f"no resource report with {toolchain.name}"
    flags = [word for flag in contender.flags for word in flag]
    defines = [f"-D{name}={value}" for name, value in contender.defines]
    args = (*contender.kernel.compile_args, *defines, *flags)
    source = SourceOptions(toolchain.name, paths, settings.arch, args, cache)
    try:
        found = report_on(ReportRequest((contender.kernel.folder,), Options(), source, None, count_instructions=True))
    except MccprobeError as error:
        return None, error.message
    return found, ""


def write_summary(document: dict[str, Any], folder: Path) -> Path:
    """summary.json of the round and the newest one beside it, each by a rename. Raises RunDirectoryUnusable.

    What a killed round had not finished beside the runs is removed.
    """
    from mccprobe.base.files import remove_dead_drafts
    from mccprobe.build.store import write_synced

    remove_dead_drafts(folder.parent)
    text = json_text(document).encode("utf-8", "surrogateescape")
    path = folder / SUMMARY
    write_synced(path, text)
    write_synced(folder.parent / LATEST, text)
    return path
