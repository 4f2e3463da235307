"""Listings parsed and summarised: seconds of CPU for 10 MB of text of each kind.

The AMDGPU and x86 texts come from clang-14 and llvm-objdump-14 on generated code; the MTGPU texts are
the fixtures of the tests, repeated (the shape of `mcc -S` is documented, that of objdump invented).
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from measure import ROOT, machine, median, report

sys.path.insert(0, str(ROOT))

from mccprobe.objects.isa.flow import isa_of
from mccprobe.objects.isa.listing import parse_listing
from mccprobe.objects.isa.summary import summarise

MEGABYTES = 10
BOUND_S = 1.0  # 10 MB/s, issue 3
GFX = "-x cl -cl-std=CL2.0 -Xclang -finclude-default-header -target amdgcn-amd-amdhsa -mcpu=gfx908 -nogpulib".split()

DEVICE = ("__kernel void", "__global float *a, __global float *b,")
HOST = ("void", "float *a, float *b,")


def kernels(count: int, head: str, first: str) -> str:
    """Functions with two loops and a branch, all different."""
    return "".join(
        f"{head} k{k}({first} int n) {{ float s = {k}; for (int j = 0; j < n; j++) {{ "
        f"for (int x = 0; x < {k % 7 + 2}; x++) {{ s += a[j * {k % 5 + 1} + x] * b[n + j]; a[x + j] = s; }} "
        f"if (s > {k}) s -= b[j] * a[j]; }} a[n] = s; }}\n"
        for k in range(count)
    )


def disassembly(folder: Path, name: str, source: str, flags: list[str]) -> str:
    file, made = folder / name, folder / f"{name}.o"
    file.write_text(source)
    subprocess.run(["clang-14", *flags, "-O2", "-c", str(file), "-o", str(made)], check=True)
    return subprocess.run(["llvm-objdump-14", "-d", str(made)], check=True, capture_output=True, text=True).stdout


def repeated(name: str, function: str, *, whole: bool) -> str:
    """A fixture again and again, its function under a new name each time, until there are 10 MB."""
    text = (ROOT / "tests" / "isa" / "data" / name).read_text()
    copies = MEGABYTES * 1_000_000 // len(text)
    if not whole:
        text = text[text.index("\n00000000") :]
    return "k.o:\tfile format elf64-mtgpu\n" * (not whole) + "".join(
        text.replace(function, f"{function}{number}") for number in range(copies)
    )


def seconds(work: Callable[[], object]) -> float:
    start = time.process_time()
    work()
    return time.process_time() - start


def main() -> int:
    print(f"listings: {machine()}")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        texts = {
            "AMDGPU": disassembly(folder, "k.cl", kernels(500, *DEVICE), GFX),
            "x86": disassembly(folder, "k.c", kernels(900, *HOST), []),
        }
    texts["mcc -S"] = repeated("gemm-loop-mp22.s", "_Z4gemmPKtS0_Pf", whole=True)
    texts["MTGPU objdump"] = repeated("objdump-mtgpu-invented.txt", "_Z4gemmPKtS0_Pf", whole=False)
    good = True
    for kind, text in texts.items():
        listing = parse_listing(text)
        assert not listing.unknown
        scale = MEGABYTES * 1e6 / len(text)
        taken = median(lambda text=text: seconds(lambda: parse_listing(text))) * scale
        isa = isa_of(listing.format)
        summed = seconds(lambda listing=listing, isa=isa: [summarise(one, isa) for one in listing.functions]) * scale
        size = f"{len(text) / 1e6:.1f} MB, {listing.instruction_count} instructions"
        print(f"  {kind}: {size}; summaries {summed:.2f} s for 10 MB")
        good &= report(f"{kind}: parse 10 MB", taken, BOUND_S, " s")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
