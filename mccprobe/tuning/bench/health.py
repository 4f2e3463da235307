"""Is the device fit to be measured? Asked first, as the article's gpu_health_check does (section 24).

An S4000 that has throttled gives under 40 TFLOPS where a healthy one gives about 73. The value is measured
with the shipped GEMM, which does not change with the user's kernel; what mthreads-gmi says goes with it.
"""

from __future__ import annotations

import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mccprobe.base.process import RunSpec, run
from mccprobe.oracle.kernel.shipped import DEFAULT_KERNEL
from mccprobe.oracle.kernel.spec import Case, shipped_kernel
from mccprobe.oracle.verdict import Verdict
from mccprobe.targets import registry
from mccprobe.targets.protocol import Toolchain
from mccprobe.tuning.bench.clock import events_for
from mccprobe.tuning.check.build import BuildFailure, build_kernel

GMI = "mthreads-gmi"  # the driver package's tool (mtgpu.md section 6)
GMI_TIMEOUT_S = 20.0
GMI_LINES = 40  # kept of its report
PROBE_CASE = Case("health", 4096, 4096, 4096)  # about 2 ms on an S4000; its CPU reference takes seconds, not minutes
PROBE_WARMUPS = 9  # the article's micro-benchmarks have 10 launches before they count
_TOLD = ("clock", "temperature", "product", "driver version", "power", "performance")


@dataclass(frozen=True)
class Health:
    """value: TFLOPS of the shipped GEMM, None if unknown; reason says why. details: lines of mthreads-gmi."""

    value: float | None
    reason: str
    device: str = ""
    details: tuple[str, ...] = ()

    def meets(self, least: float | None) -> bool | None:
        """None without a bound or a value."""
        return None if least is None or self.value is None else self.value >= least

    def to_dict(self, least: float | None) -> dict[str, Any]:
        return {
            "value": self.value,
            "unit": "TFLOPS of the shipped GEMM",
            "reason": self.reason,
            "least": least,
            "met": self.meets(least),
            "device": self.device or None,
            "details": list(self.details),
        }


def device_health(toolchain: Toolchain, *, timeout_s: float = 300.0) -> Health:
    """Measure it; unknown, with the reason, where there is no device."""
    if toolchain.simulated:
        return Health(None, "unknown: the stand-in has no device")
    if not registry.target(toolchain.name).health_tool:
        return Health(None, f"unknown: no health check for {toolchain.name}")
    details = gmi_lines()
    try:
        kernel = shipped_kernel(DEFAULT_KERNEL)
        with tempfile.TemporaryDirectory(prefix="mccprobe-health-") as folder:
            built = build_kernel(kernel, toolchain, folder=Path(folder), timeout_s=timeout_s)
            if isinstance(built, BuildFailure):
                return Health(None, f"unknown: the shipped GEMM cannot be built: {built.reason}", details=details)
            milliseconds, result = events_for(built).launch(
                built, PROBE_CASE, seed=1, warmups=PROBE_WARMUPS, data="random", timeout_s=timeout_s
            )
    except OSError as error:
        return Health(None, f"unknown: {error}", details=details)
    if result.verdict is Verdict.BAD:
        return Health(
            None, f"unknown: the shipped GEMM is wrong on this device: {result.reason}", result.device, details
        )
    if milliseconds is None or milliseconds <= 0 or result.verdict is not Verdict.GOOD:
        return Health(None, f"unknown: the shipped GEMM gave no time: {result.reason}", result.device, details)
    return Health(tflops(PROBE_CASE, milliseconds), "measured", result.device, details)


def tflops(case: Case, milliseconds: float) -> float:
    """Multiplications and additions of a GEMM of this shape, a second, in 1e12."""
    return 2.0 * case.m * case.n * case.k / (milliseconds * 1e-3) / 1e12


def gmi_lines() -> tuple[str, ...]:
    """What mthreads-gmi says of clocks, temperature and power; () where it is not installed or fails."""
    if shutil.which(GMI) is None:
        return ()
    result = run(RunSpec([GMI, "-q"], timeout_s=GMI_TIMEOUT_S))
    if not result.ok:
        return (f"{GMI} -q: {result.describe()}",)
    lines = [line.strip() for line in result.stdout_text.splitlines()]
    return tuple(line for line in lines if any(word in line.lower() for word in _TOLD))[:GMI_LINES]
