"""The stand-in takes every LLVM option of mcc's catalogue: `bisect` relies on it and does not ask."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from mccprobe.flags.catalogue import load_catalogue
from mccprobe.sim.build import sim_sdk
from mccprobe.toolchain.sim import SimToolchain


@pytest.mark.toolchain("clang-14")
def test_every_llvm_option_is_taken(tmp_path: Path) -> None:
    sdk = sim_sdk(Path(os.environ["MCCPROBE_CACHE"]))
    assert not SimToolchain(sdk.mcc, sdk).incomplete
    source = tmp_path / "k.mu"
    source.write_text("#include <musa_runtime.h>\n__global__ void k(float *p) { p[threadIdx.x] *= 2; }\n")
    refused = []
    for flag in load_catalogue().flags.values():
        if flag.option != "mllvm" or "mcc" not in flag.compilers:
            continue
        value = f"={flag.values[0]}" if flag.type in ("enum", "int", "string") and flag.values else ""
        argv = [str(sdk.mcc), "--musa-device-only", "-c", "-mllvm", flag.spelling + value, str(source), "-o", "k.o"]
        ran = subprocess.run(argv, cwd=tmp_path, capture_output=True, text=True, check=False)
        if ran.returncode:
            refused.append((flag.name, ran.stderr.splitlines()[:1]))
    assert not refused
