"""Makes the listings beside this file: `python tests/isa_learn/data/sass/make.py`.

Kernels of benchmarks/isa_corpus.py through clang-14 (PTX), ptxas 13.0 and cuobjdump -sass 13.5, for sm_80.
Runs of spaces are cut to two, which no reader of listings looks at; nothing else is changed.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[3] / "benchmarks"))

from isa_corpus import compile_object, kernels  # noqa: E402 (of the benchmarks' folder)

NAMES = (
    "axpy_f32", "axpy_i32", "axpy_s64", "axpy_f64", "bits_u32", "cond_i32", "cond_u8", "reduce_f32", "reduce_i32",
    "vec4", "interp", "transpose", "mulhi", "scan",
)  # fmt: skip


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        for name in NAMES:
            cubin = Path(folder) / f"{name}.cubin"
            if not compile_object(kernels()[name], cubin, "O1", "sm_80"):
                raise SystemExit(f"{name}: {cubin.with_suffix('.err').read_text()}")
            text = subprocess.run(["cuobjdump", "-sass", str(cubin)], check=True, capture_output=True, text=True).stdout
            (HERE / f"{name}.txt").write_text(re.sub(r" {3,}", "  ", text))


if __name__ == "__main__":
    main()
