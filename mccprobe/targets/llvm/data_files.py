"""Pass data that every compiler of LLVM's family shares."""

from __future__ import annotations

from pathlib import Path

DATA = Path(__file__).parent / "data"
PASSES = (DATA / "passes-ir.toml", DATA / "passes-codegen.toml")  # the first: class names of the new pass manager
MIXES = DATA / "mixes.toml"
