"""The laboratory on whole kernels: what it says of those of the article, on one screen and as a document."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from mccprobe.base.errors import UsageError
from mccprobe.oracle.kernel.spec import KernelSpec, kernels_folder, load_kernel, shipped_kernel
from mccprobe.oracle.verdict import Verdict
from mccprobe.report.text.lab import render_lab
from mccprobe.targets.clang.toolchain import clang_toolchain
from mccprobe.targets.sim.toolchain import SimToolchain
from mccprobe.tuning.lab.record import LabReportUnreadable, read_observation
from mccprobe.tuning.lab.session import LabReport, lab_flags, lab_kernel

pytestmark = pytest.mark.toolchain("clang-14")
MAX_SCREEN = 40  # lines
Watch = Callable[..., LabReport]
RunCli = Callable[..., Any]


@pytest.fixture
def watch(sim: SimToolchain, tmp_path: Path) -> Watch:
    def run(kernel: KernelSpec, **options: Any) -> LabReport:
        return lab_kernel(kernel, sim, folder=tmp_path / "out", **options)

    return run


@pytest.fixture(scope="session")
def schema(root: Path) -> Draft202012Validator:
    document = json.loads((root / "reports/lab.schema.json").read_text(encoding="utf-8"))
    Draft202012Validator.check_schema(document)
    return Draft202012Validator(document)


def changed(tmp_path: Path, name: str, *edits: tuple[str, str]) -> KernelSpec:
    """A shipped kernel with edits that must apply exactly once each, and with one small case."""
    home = tmp_path / "kernels"
    shutil.copytree(kernels_folder(), home)
    source = home / name / f"{name}.mu"
    text = source.read_text(encoding="utf-8")
    for old, new in edits:
        assert text.count(old) == 1, (old, text.count(old))
        text = text.replace(old, new)
    source.write_text(text, encoding="utf-8")
    return load_kernel(home / name)


def test_one_screen_says_why_version_68_was_wrong(run_cli: RunCli, schema: Draft202012Validator) -> None:
    run = run_cli("check", "mega-tile-32", "--lab", "--journal", "")
    assert run.code == 1, run
    lines = run.stdout.splitlines()
    assert len(lines) <= MAX_SCREEN
    assert lines[0] == "SIMULATED (sim): mega-tile-32: lab BAD, warps of 128 lanes"
    text = " ".join(run.stdout.split())
    assert "WMMA addresses differ within a physical warp: kernel gemm_mega_tile_32 [sim]" in text
    assert "tiled.h:" in text
    assert "0-31: base+0 bytes, ld 264 [sim] 32-63: base+128 bytes, ld 264" in text
    assert "This kernel counts warps by 32." in text
    assert "The legacy cases (large, medium, non_square, small) launch other kernels and cannot show it." in text
    # section 8: about 73 to 75 % wrong, which one address for the whole warp gives
    assert "lowest lane's address for all" in text
    assert "(74.7%)" in text
    assert "32.0-way (least 2.0)" in text


def test_with_warps_of_32_it_looks_right(run_cli: RunCli, schema: Draft202012Validator) -> None:
    run = run_cli("check", "mega-tile-32", "--lab", "--warp", "32", "--json", "--journal", "")
    assert run.code == 0, run
    document = json.loads(run.stdout)
    schema.validate(document)
    assert (document["status"], document["verdict"], document["findings"]) == ("clean", "GOOD", [])
    physical = document["physical_warp"]
    assert physical["verdict"] == "BAD"
    assert {finding["kind"] for finding in physical["findings"]} == {"divergent-operand"}
    tile = next(case for case in physical["cases"] if case["name"] == "tile")
    assert [round(numbers["wrong_share"], 3) for numbers in tile["numbers"]] == [0.747, 0.996]


def test_why_its_author_did_not_notice(watch: Watch) -> None:
    text = " ".join(render_lab(watch(shipped_kernel("subwarp-divergence"), warp=32)).split())
    assert "this shows another machine: a physical warp of MP22 has 128 lanes" in text
    assert "with MP22's 128 lanes the same program is BAD" in text
    assert "that is why it goes unnoticed" in text


def test_the_share_of_section_11(watch: Watch) -> None:
    """98.4 % wrong: what each lane's own address gives at this scale and tolerance; 73.8 % with one for all."""
    report = watch(shipped_kernel("subwarp-divergence"))
    article = next(case for case in report.cases if case.planned.case.name == "article")
    shares = {one.model: one.wrong_share for one in article.models}
    assert shares == {
        "lowest lane's address for all": pytest.approx(0.738, abs=0.001),
        "each lane its own address": pytest.approx(0.984, abs=0.001),
    }


def test_the_uniform_kernel_of_section_11_is_clean(watch: Watch) -> None:
    report = watch(shipped_kernel("subwarp-divergence"), defines={"SUBWARP_DIVERGENT": "0"})
    assert report.verdict is Verdict.GOOD
    assert report.merged.findings == ()


def test_the_repair_of_section_12_is_clean(watch: Watch) -> None:
    report = watch(shipped_kernel("mega-tile-32"), defines={"GEMM_WARP": "128"})
    assert report.verdict is Verdict.GOOD
    assert report.merged.findings == ()


@pytest.mark.parametrize(("stride", "ways"), [("32", 32.0), ("33", 2.0)])
def test_the_shipped_gemm_is_clean_and_its_epilogue_as_in_section_13(watch: Watch, stride: str, ways: float) -> None:
    report = watch(shipped_kernel("gemm"), defines={"GEMM_EPILOGUE_STRIDE": stride})
    assert report.verdict is Verdict.GOOD
    assert report.merged.findings == ()
    assert {launched.name for launched in report.merged.kernels} == {"gemm_wmma_256", "gemm_wmma_16"}
    epilogue = [use for use in report.merged.banks if use.kernel == "gemm_wmma_256" and use.access == "load"]
    assert [(use.bytes, use.ways, use.worst) for use in epilogue] == [(4, ways, ways)]
    assert all(use.uncounted == 0 for use in report.merged.banks)


BARRIERS = {
    "after the first tile": ("next_b;\n  __syncthreads();", "next_b;"),
    "before the next tile": ("    __syncthreads();\n    if (more) {", "    if (more) {"),
    "after the next tile": ("prefetch_b;\n      __syncthreads();", "prefetch_b;"),
    "before the tile is read back": ("major);\n      __syncthreads();\n      half *to", "major);\n      half *to"),
}


@pytest.mark.parametrize("missing", BARRIERS)
def test_a_missing_barrier_is_a_race(watch: Watch, tmp_path: Path, missing: str) -> None:
    """Also where the emulator's order of threads gives right numbers. The epilogue's tile is one warp's own."""
    report = watch(changed(tmp_path, "gemm", BARRIERS[missing]))
    assert report.verdict is not Verdict.GOOD
    kinds = {finding.kind for finding in report.merged.findings}
    assert kinds & ({"warp-race"} if missing == "before the tile is read back" else {"race"})
    for finding in report.merged.findings:
        assert finding.place is not None
        assert finding.place.file.endswith("gemm.mu")


def test_a_row_too_far_is_out_of_bounds(watch: Watch, tmp_path: Path) -> None:
    report = watch(changed(tmp_path, "gemm", ("const bool more = k0 + GEMM_BK < K;", "const bool more = true;")))
    found = {finding.kind for finding in report.merged.findings}
    assert "out-of-bounds" in found
    assert report.verdict is Verdict.BAD


def test_the_document_of_a_bad_kernel_is_valid(watch: Watch, tmp_path: Path, schema: Draft202012Validator) -> None:
    report = watch(changed(tmp_path, "subwarp-divergence"))
    document = {"schema_version": 1, "tool_version": "0", "status": "findings", **report.to_dict()}
    schema.validate(json.loads(json.dumps(document)))


def test_it_runs_in_the_emulator_alone() -> None:
    with pytest.raises(UsageError, match="runs in the emulator, not with clang"):
        lab_flags(clang_toolchain("clang-14", ["k.c"]))


def test_warp_without_lab_is_refused(run_cli: RunCli) -> None:
    run = run_cli("check", "gemm", "--warp", "32")
    assert run.code == 2, run
    assert "--warp goes with --lab" in run.stderr


@pytest.mark.parametrize("text", ["", "{}", "[1]", '{"schema_version": 2}', '{"schema_version": 1, "findings": 3}'])
def test_a_damaged_report_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "lab.json"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(LabReportUnreadable):
        read_observation(path, "case")


def test_wrong_numbers_without_a_broken_rule(run_cli: RunCli, schema: Draft202012Validator) -> None:
    """The planted fault breaks arithmetic alone: the laboratory has nothing to add, and says so."""
    run = run_cli("check", "gemm", "--lab", "--flag", "internal-regs-ra", "--json", "--journal", "")
    assert run.code == 1, run
    document = json.loads(run.stdout)
    schema.validate(document)
    assert (document["status"], document["verdict"], document["findings"]) == ("numbers", "BAD", [])
