"""The stand-in takes every LLVM option of mcc's catalogue: `bisect` relies on it and does not ask."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from mccprobe.targets.flags.catalogue import load_catalogue
from mccprobe.targets.sim.build import sim_sdk
from mccprobe.targets.sim.toolchain import SimToolchain


@pytest.mark.toolchain("clang-14")
def test_every_llvm_option_is_taken(tmp_path: Path) -> None:
    sdk = sim_sdk(Path(os.environ["MCCPROBE_CACHE"]))
    assert not SimToolchain(sdk.mcc, sdk).incomplete
    source = tmp_path / "k.mu"
    source.write_text("#include <musa_runtime.h>\n__global__ void k(float *p) { p[threadIdx.x] *= 2; }\n")
    options = []
    for flag in load_catalogue().flags.values():
        if flag.option == "mllvm" and "mcc" in flag.compilers:
            value = f"={flag.values[0]}" if flag.type in ("enum", "int", "string") and flag.values else ""
            options.append(flag.spelling + value)
    assert len(options) > 40

    def told(*given: str) -> str:
        """What the compiler says of these options; "" if it compiles with them."""
        words = [word for option in given for word in ("-mllvm", option)]
        argv = [str(sdk.mcc), "--musa-device-only", "-c", *words, str(source), "-o", "k.o"]
        ran = subprocess.run(argv, cwd=tmp_path, capture_output=True, text=True, check=False)
        return (ran.stderr.strip() or f"exit {ran.returncode}") if ran.returncode else ""

    if told(*options):  # one that is not known is refused in any company; which one it is, they say alone
        assert {option: text for option in options if (text := told(option))} == {}
        raise AssertionError(f"refused together: {told(*options)}")
    assert "-mtgpu-none" in told(*options, "-mtgpu-none"), "an option that nobody knows is not passed over"
