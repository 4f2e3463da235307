"""A kernel of shell scripts: gates are tried without a compiler, with host programs that do what they are told."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mccprobe.oracle.kernel.spec import KernelSpec, load_kernel
from mccprobe.targets.sim.build import sim_sdk
from mccprobe.targets.sim.toolchain import SimToolchain
from mccprobe.tuning.check.build import BuiltKernel

DISPATCH_OF_THE_ARTICLE = """
[[dispatch]]
kernel = "small"
condition = "M <= 1024 && N <= 1024 && K % 16 == 0"

[[dispatch]]
kernel = "mega"
condition = "M % 256 == 0 && N % 256 == 0 && K % 32 == 0"
"""
HEAD = """schema_version = 1
name = "mine"
summary = "s"
sources = ["k.mu"]
host_sources = ["host.mu"]
entry = "run"
compile_args = ["-O3"]

[tolerance]
kind = "absolute"
formula = "0.01*sqrt(K/512)"
reason = "r"

[[cases]]
name = "c"
m = 256
n = 256
k = 512
legacy = true
"""
# prints what the case asks for; @...@ are replaced by the test
PROGRAM = """#!/bin/sh
case=$2 seed=$4 input=$6
m=${case%%x*} rest=${case#*x}
n=${rest%%x*} k=${rest#*x}
kernel=small
if [ "$m" -gt 1024 ] || [ "$n" -gt 1024 ]; then kernel=mega; fi
status=0 verdict=GOOD err=0.0001 reason= zeros=0.001 mismatches=0 elements=$((m * n))
if [ $((k % 16)) != 0 ] || { [ $kernel = mega ] && [ $((m % 256 + n % 256 + k % 32)) != 0 ]; }; then
  status=125 verdict=UNRESOLVED reason='no kernel takes this shape' err=null
fi
@body@
printf '{"m": %s, "n": %s, "k": %s, "input": "%s", "seed": %s, "zero_share": %s, "elements": %s, "mismatches": %s,' \\
  $m $n $k $input $seed $zeros $elements $mismatches
printf '"max_err": %s, "tolerance": 1, "launches": {"%s": 1}, "verdict": "%s", "reason": "%s"}' \\
  $err $kernel $verdict "$reason"
exit $status
"""

MakeKernel = Callable[..., KernelSpec]
MakeBuilt = Callable[..., BuiltKernel]


@pytest.fixture
def make_kernel(tmp_path: Path) -> MakeKernel:
    """`make_kernel(dispatch)`: a kernel.toml with one legacy case."""

    def make(dispatch: str = DISPATCH_OF_THE_ARTICLE) -> KernelSpec:
        folder = tmp_path / "kernel"
        folder.mkdir(exist_ok=True)
        (folder / "kernel.toml").write_text(HEAD + dispatch)
        for name in ("k.mu", "host.mu"):
            (folder / name).write_text("")
        return load_kernel(folder)

    return make


@pytest.fixture
def make_built(tmp_path: Path, make_kernel: MakeKernel) -> MakeBuilt:
    """`make_built("err=7 status=1 verdict=BAD", launchable=(...))`: a program that behaves so."""

    def make(
        body: str = "", *, launchable: Any = ("mega", "small"), dispatch: str = DISPATCH_OF_THE_ARTICLE
    ) -> BuiltKernel:
        folder = tmp_path / "built"
        folder.mkdir(exist_ok=True)
        program = folder / "program"
        program.write_text(PROGRAM.replace("@body@", body))
        program.chmod(0o755)
        return BuiltKernel(make_kernel(dispatch), "mcc", False, program, "d", (), launchable=launchable)

    return make


@pytest.fixture
def sim(compiler: Callable[[int], str]) -> SimToolchain:
    """The stand-in."""
    compiler(14)
    sdk = sim_sdk(Path(os.environ["MCCPROBE_CACHE"]))
    return SimToolchain(sdk.mcc, sdk)


@pytest.fixture
def schema(root: Path) -> Callable[[str], dict[str, Any]]:
    """`schema("check")` is reports/check.schema.json."""

    def load(name: str) -> dict[str, Any]:
        return dict(json.loads((root / "reports" / f"{name}.schema.json").read_text()))

    return load
