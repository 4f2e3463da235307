"""Overlays on the headers of the stand-in's SDK, with the compiler's own word on what it read."""

from __future__ import annotations

import hashlib
import json
import re
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from click.testing import CliRunner

from mccprobe.base.console import Console
from mccprobe.base.errors import InputError, PatchDoesNotApply, SourceDoesNotCompile, ToolchainError, UsageError
from mccprobe.cli.overlay_cmd import overlay as overlay_command
from mccprobe.oracle.kernel.spec import KernelSpec, load_kernel, shipped_kernel
from mccprobe.oracle.verdict import Verdict
from mccprobe.report.text.overlay import render_overlay
from mccprobe.targets.clang.toolchain import clang_toolchain
from mccprobe.targets.sim.toolchain import SimToolchain, sim_toolchain
from mccprobe.tuning.overlay.change import replacement
from mccprobe.tuning.overlay.header import quoted_beside
from mccprobe.tuning.overlay.run import OverlayReport, OverlayRequest, overlay

pytestmark = pytest.mark.toolchain("clang-14")
SMALLER = ("__frag_base<float, 32>", "__frag_base<float, 8>")  # section 20
HEADER = "crt/mma.h"


@pytest.fixture
def sim(root: Path) -> SimToolchain:
    return sim_toolchain(root / ".test-cache")


@pytest.fixture
def kernel(root: Path, tmp_path: Path) -> KernelSpec:
    """The 512-thread kernel with 16 accumulators and one small case for each branch."""
    return small_kernel(root, tmp_path)


def small_kernel(root: Path, tmp_path: Path) -> KernelSpec:
    source = shipped_kernel("accumulators-16").folder
    text = (source / "kernel.toml").read_text(encoding="utf-8").replace("../common", str(source.parent / "common"))
    first, *cases = text.split("[[cases]]")
    kept = [case for case in cases if 'name = "tile"' in case or 'name = "fallback"' in case]
    rest = cases[-1][cases[-1].index("[[dispatch]]") :]
    folder = tmp_path / "kernel"
    folder.mkdir()
    (folder / "accumulators-16.mu").write_text(
        (source / "accumulators-16.mu").read_text(encoding="utf-8").replace("../common", str(source.parent / "common"))
    )
    (folder / "kernel.toml").write_text(first + "".join(f"[[cases]]{case}" for case in kept) + rest)
    return load_kernel(folder)


@pytest.fixture
def make(kernel: KernelSpec, sim: SimToolchain, root: Path, tmp_path: Path) -> Callable[..., OverlayReport]:
    def run(old: str, new: str, **more: Any) -> OverlayReport:
        request = OverlayRequest(
            kernel, sim, HEADER, [replacement(old, new)], tmp_path / "out", root / ".test-cache", seeds=(1,)
        )
        return overlay(replace(request, **more))

    return run


def sdk_digest(sim: SimToolchain) -> str:
    assert sim.sdk is not None
    files = sorted((sim.sdk.root / "include").rglob("*.h"))
    return hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()


def test_the_question_of_section_20(
    make: Callable[..., OverlayReport], sim: SimToolchain, root: Path, tmp_path: Path
) -> None:
    before = sdk_digest(sim)
    report = make(*SMALLER)
    assert sdk_digest(sim) == before, "the SDK is only read"
    assert report.before.gate.verdict is report.after.gate.verdict is Verdict.GOOD
    private = next(c for c in report.changes if c.metric == "private_memory_bytes" and "accumulators" in c.kernel)
    saved = private.before - private.after
    assert 0.9 <= saved / (16 * (32 - 8) * 4) <= 1.1, "16 accumulators, 24 floats each"
    assert report.same_code is False
    copy = (tmp_path / "out" / "include" / HEADER).read_text(encoding="utf-8")
    assert copy == report.header_path.read_text(encoding="utf-8").replace(*SMALLER)
    text = render_overlay(report)
    assert all("SIMULATED" in line for line in text.splitlines() if "->" in line or line.lstrip().startswith("GOOD"))
    schema = json.loads((root / "reports" / "overlay.schema.json").read_text(encoding="utf-8"))
    jsonschema.validate(report.to_dict(), schema)


def test_too_small_a_fragment_is_not_passed(make: Callable[..., OverlayReport]) -> None:
    report = make(SMALLER[0], "__frag_base<float, 4>")
    assert report.before.gate.verdict is Verdict.GOOD
    assert report.after.gate.verdict is Verdict.UNRESOLVED, "a trap of the emulator is no wrong number"
    assert "could not be judged" in report.conclusion


def test_a_change_that_breaks_the_compile(make: Callable[..., OverlayReport], root: Path) -> None:
    report = make("template <int size> struct __operand_base {", "template <int size> struct __operand_base")
    assert report.after.gate.failure is not None
    assert report.same_code is None
    assert report.conclusion == "the kernel does not compile with the change"
    schema = json.loads((root / "reports" / "overlay.schema.json").read_text(encoding="utf-8"))
    jsonschema.validate(report.to_dict(), schema)


@pytest.mark.parametrize(("old", "count"), [("__frag_base<float, 33>", 0), ("__frag_base<float, ", 3)])
def test_the_count_is_told(make: Callable[..., OverlayReport], old: str, count: int) -> None:
    with pytest.raises(PatchDoesNotApply) as caught:
        make(old, "x")
    assert caught.value.count == count


def test_headers_that_are_not_read(make: Callable[..., OverlayReport]) -> None:
    with pytest.raises(InputError, match=r"reads no header crt/sqmma\.h"):
        make(*SMALLER, header="crt/sqmma.h")
    for name in ("/etc/hosts", "../mma.h"):
        with pytest.raises(UsageError):
            make(*SMALLER, header=name)


def test_another_header_in_front_of_the_copy(
    make: Callable[..., OverlayReport], kernel: KernelSpec, sim: SimToolchain, tmp_path: Path
) -> None:
    """An -I of the kernel's own comes first, so the copy is not read: an error, not two equal builds."""
    assert sim.sdk is not None
    private = tmp_path / "private" / "crt"
    private.mkdir(parents=True)
    (private / "mma.h").write_bytes((sim.sdk.root / "include" / HEADER).read_bytes())
    mine = replace(kernel, compile_args=("-O3", f"-I{private.parent}"))
    with pytest.raises(ToolchainError, match="still reads"):
        make(*SMALLER, kernel=mine)


@pytest.fixture
def own_sdk(sim: SimToolchain, tmp_path: Path) -> tuple[SimToolchain, Path]:
    """A copy of the SDK that a test may change, and its include folder."""
    assert sim.sdk is not None
    root = tmp_path / "sdk"
    shutil.copytree(sim.sdk.root, root)
    sdk = replace(sim.sdk, root=root, mcc=root / "bin" / "mcc")
    return SimToolchain(sdk.mcc, sdk), root / "include"


def include_first(kernel: KernelSpec, header: str) -> None:
    source = kernel.sources[0]
    source.write_text(f"#include <{header}>\n" + source.read_text(encoding="utf-8"), encoding="utf-8")


def test_a_header_whose_name_ends_that_of_another(
    make: Callable[..., OverlayReport], kernel: KernelSpec, sim: SimToolchain
) -> None:
    """<mma.h> and <crt/mma.h> are both read; `mma.h` is the first of them."""
    assert sim.sdk is not None
    include_first(kernel, "mma.h")
    report = make("#pragma once", "#pragma once  // changed", header="mma.h")
    assert report.header_path == sim.sdk.root / "include" / "mma.h"
    assert report.same_code


def test_a_header_that_is_a_link(make: Callable[..., OverlayReport], own_sdk: tuple[SimToolchain, Path]) -> None:
    """What it includes by quotes lies beside the link, where the compiler looks."""
    toolchain, include = own_sdk
    real = include.parent / "elsewhere.h"
    real.write_text('#include "near.h"\n' + (include / HEADER).read_text(encoding="utf-8"), encoding="utf-8")
    (include / HEADER).unlink()
    (include / HEADER).symlink_to(real)
    (include / "crt" / "near.h").write_text("")
    report = make(*SMALLER, toolchain=toolchain)
    assert report.after.gate.verdict is Verdict.GOOD
    assert SMALLER[0] in real.read_text(encoding="utf-8")


def test_the_header_by_another_name(
    make: Callable[..., OverlayReport], kernel: KernelSpec, own_sdk: tuple[SimToolchain, Path]
) -> None:
    """Then the SDK's own file is read beside the copy, and the comparison would be of nothing."""
    toolchain, include = own_sdk
    (include / "other_name.h").symlink_to(include / HEADER)
    include_first(kernel, "other_name.h")
    with pytest.raises(ToolchainError, match=r"still reads .*mma\.h beside the patched copy"):
        make(*SMALLER, toolchain=toolchain)


def test_not_for_headers_of_our_own(make: Callable[..., OverlayReport]) -> None:
    with pytest.raises(UsageError, match="mccprobe's own headers"):
        make(*SMALLER, toolchain=clang_toolchain("clang-14", []))


def test_neighbours_by_quotes(tmp_path: Path) -> None:
    (tmp_path / "near.h").write_text("")
    header = tmp_path / "h.h"
    assert quoted_beside(header, '#include <x.h>\n # include "near.h"\n')
    assert not quoted_beside(header, '#include "far.h"\n#include <near.h>\n')


def test_the_command_with_a_change_without_effect(root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kernel = small_kernel(root, tmp_path)
    monkeypatch.chdir(tmp_path)
    old, new = "// WMMA of the emulation SDK", "// Another comment on the SDK"
    header = sim_toolchain(root / ".test-cache").sdk.root / "include" / HEADER  # type: ignore[union-attr]
    (line,) = [line for line in header.read_text(encoding="utf-8").splitlines() if line.startswith(old)]
    patch = tmp_path / "comment.patch"
    patch.write_text(f"@@ -1 +1 @@\n-{line}\n+{line.replace(old, new)}\n")
    arguments = [
        str(kernel.folder),
        "--header",
        HEADER,
        "--patch",
        str(patch),
        "--toolchain",
        "sim",
        "--seed",
        "1",
        "--journal",
        "",
        "--json",
        "-o",
        "out",
    ]
    result = CliRunner().invoke(overlay_command, arguments, obj=Console(), standalone_mode=False)
    assert (result.exception, result.return_value) == (None, 0), result.output
    assert "SIMULATED" in result.stderr
    (page,) = Path("out").glob("overlay-*/question.md")
    text = page.read_text(encoding="utf-8")
    assert f"+{new}" in text
    document = json.loads(result.stdout)
    assert (document["same_code"], document["changes"]) == (True, [])
    assert "does not reach this kernel" in document["conclusion"]
    assert "does not reach this kernel" in text
    assert "SIMULATED" in text
    assert str(root) not in text, "no path of this machine goes into a report"
    assert str(tmp_path) not in text
    again = re.search(r"^mccprobe (overlay .*)$", text, re.MULTILINE)
    assert again is not None
    assert "--seed 1" in again[1]
    assert (page.parent / "overlay.patch").read_text(encoding="utf-8") in text


@pytest.mark.parametrize("change", [[], ["--replace", "a", "b", "--patch", "p"]])
def test_one_kind_of_change(change: list[str]) -> None:
    arguments = ["gemm", "--header", HEADER, *change]
    result = CliRunner().invoke(overlay_command, arguments, obj=Console(), standalone_mode=False)
    assert isinstance(result.exception, UsageError)


def test_a_kernel_that_does_not_compile_anyway(
    make: Callable[..., OverlayReport], kernel: KernelSpec, tmp_path: Path
) -> None:
    source = tmp_path / "kernel" / "accumulators-16.mu"
    source.write_text(source.read_text(encoding="utf-8") + "\nint broken = ;\n")
    with pytest.raises(SourceDoesNotCompile, match="with the SDK's own header"):
        make(*SMALLER)
