"""`mccprobe report` as a user meets it: help, exit codes, one document, no colour in a pipe."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonschema
import pytest

ROOT = Path(__file__).resolve().parents[2]
HELP = Path(__file__).parent / "goldens" / "report-help.txt"
SCHEMA = json.loads((ROOT / "reports/report.schema.json").read_text("utf-8"))
# invented shape: mcc's metadata directives around the keys of a public sample
ASSEMBLY = """\
\t.mtgpu_metadata.start
---
mtgpu.kernels:
  - .arch_id:        220
    .name:           _Z4demoPf
    .temp_reg_count: 126
    .shared_memory_size: 37396
    .private_memory_size: 8
    .has_barrier:    true
mtgpu.version:
  - 1
  - 0
...

\t.mtgpu_metadata.end
"""
RunCli = Callable[..., Any]


@pytest.fixture
def assembly(tmp_path: Path) -> Path:
    path = tmp_path / "demo.o"  # what it is, its content tells
    path.write_text(ASSEMBLY, encoding="utf-8")
    return path


def document(text: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(text)
    jsonschema.validate(found, SCHEMA)
    return found


def test_help(run_cli: RunCli, update_goldens: bool) -> None:
    run = run_cli("report", "--help")
    assert run.code == 0, run
    if update_goldens:
        HELP.parent.mkdir(exist_ok=True)
        HELP.write_text(run.stdout, encoding="utf-8")
    assert run.stdout == HELP.read_text("utf-8"), run


@pytest.mark.clean
def test_a_file_to_plain_text(run_cli: RunCli, assembly: Path) -> None:
    run = run_cli("report", assembly, "--block-size", "1024")
    assert run.code == 0, run
    assert "532 bytes less would fit 2" in run.stdout, run
    assert "\x1b" not in run.stdout and run.stderr == "", run


def test_colour_gives_the_table(run_cli: RunCli, assembly: Path) -> None:
    run = run_cli("--color", "always", "report", assembly)
    assert run.code == 0, run
    assert "\x1b[1m" in run.stdout.splitlines()[0], run


def test_one_document(run_cli: RunCli, assembly: Path) -> None:
    run = run_cli("report", assembly, assembly, "--json", "--compare", "gemm")
    assert run.code == 0, run
    found = document(run.stdout)
    assert [kernel["registers"]["temp"] for kernel in found["kernels"]] == [126, 126]
    assert found["comparison"]["kernel"] == "gemm"


def test_csv_and_markdown(run_cli: RunCli, assembly: Path) -> None:
    assert run_cli("report", assembly, "--csv").stdout.splitlines()[1].startswith(",_Z4demoPf,mp_22,mtgpu-asm,")
    assert run_cli("report", assembly, "--markdown").stdout.startswith("| kernel | target |")


@pytest.mark.parametrize(
    ("args", "code", "says"),
    [
        ((), 2, "Missing argument"),
        (("{file}", "--json", "--csv"), 2, "do not go together"),
        (("{file}", "--compare", "nothing"), 2, "no shipped kernel"),
        (("{file}", "--compile-args", "'"), 2, "--compile-args"),
        (("{file}", "--block-size", "0"), 2, "--block-size"),
        (("nowhere.o",), 4, "nowhere.o: cannot be read"),
        (("{own}",), 3, "--toolchain amdgcn"),
        (("{own}", "--mcc", "/nowhere/mcc"), 3, "no mcc"),
    ],
)
def test_exit_codes(
    run_cli: RunCli, assembly: Path, tmp_path: Path, args: tuple[str, ...], code: int, says: str
) -> None:
    own = tmp_path / "own.mu"
    own.write_text("__global__ void own() {}\n", encoding="utf-8")
    run = run_cli("report", *(arg.format(file=assembly, own=own) for arg in args))
    assert run.code == code, run
    assert says in run.stderr, run
    if "--json" not in args:
        again = run_cli("report", "--json", *(arg.format(file=assembly, own=own) for arg in args))
        assert document(again.stdout)["exit_code"] == code, again


@pytest.mark.clean
@pytest.mark.toolchain("clang-14")
def test_a_shipped_kernel_without_mcc(run_cli: RunCli) -> None:
    run = run_cli("report", ROOT / "kernels/gemm/gemm.mu", "--compare", "gemm")
    assert run.code == 0, run
    assert all(line.startswith("gfx908 stand-in, not MP22: ") for line in filter(None, run.stdout.splitlines())), run
    assert "no mcc here" in run.stderr, run
