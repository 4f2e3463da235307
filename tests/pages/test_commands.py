"""`--html` and `--figures` as a user gives them."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonschema
import pytest

RunCli = Callable[..., Any]
DATA = Path(__file__).parent / "data"
LISTINGS = Path(__file__).resolve().parents[1] / "isa" / "data"
PROGRAM = """#include <stdio.h>
int main(void) { int sum = 0; for (int i = 0; i < 9; i++) sum += i * i; printf("%d\\n", sum); }
"""


def _bench_schema(root: Path) -> Any:
    return json.loads((root / "reports" / "bench.schema.json").read_text("utf-8"))


@pytest.mark.parametrize("command", ["report", "bisect", "why", "bench"])
def test_help_tells_both_options(run_cli: RunCli, command: str) -> None:
    run = run_cli(command, "--help")
    assert run.code == 0 and "--html FILE" in run.stdout and "--figures DIR" in run.stdout, run


def test_help_of_flags_search_tells_both_options(run_cli: RunCli) -> None:
    run = run_cli("flags", "search", "--help")
    assert run.code == 0 and "--html FILE" in run.stdout and "--figures DIR" in run.stdout, run


def test_a_report_with_its_page_and_figures(run_cli: RunCli, tmp_path: Path) -> None:
    page, figures = tmp_path / "page.html", tmp_path / "figures"
    listing = LISTINGS / "objdump-mtgpu-invented.txt"
    run = run_cli("report", listing, "--html", page, "--figures", figures)
    plain = run_cli("report", listing)
    assert run.code == 0 and run.stdout == plain.stdout, run  # the page is beside the answer, not in its place
    assert f"written: {page}" in run.stderr
    text = page.read_text("utf-8")
    assert "Main loop at 0xc: words, their slots" in text and "LDMA.RD" in text
    assert {path.name for path in figures.iterdir()} >= {"k0-pipes.svg", "k0-pipes.png", "k0-loop.svg", "k0-loop.png"}


@pytest.mark.clean("page.html")
def test_a_page_of_a_program_leaves_nothing_else(run_cli: RunCli, root: Path) -> None:
    run = run_cli("bench", "--program", "true", "--rounds", "6", "--html", "page.html", "--json")
    assert run.code == 0, run
    document = json.loads(run.stdout)
    jsonschema.validate(document, _bench_schema(root))
    median = document["measurement"]["sides"][0]["summary_ms"]["median"]
    assert f"{median:.4g}" in Path("page.html").read_text("utf-8")


def test_the_page_on_standard_output(run_cli: RunCli) -> None:
    run = run_cli("report", LISTINGS / "gemm-loop-mp22.s", "--html", "-")
    assert run.code == 0 and run.stdout.startswith("<!DOCTYPE html>") and run.stdout.endswith("</html>\n"), run
    both = run_cli("report", LISTINGS / "gemm-loop-mp22.s", "--html", "-", "--json")
    assert both.code == 2 and json.loads(both.stdout)["code"] == "usage", both


def test_an_input_is_not_replaced(run_cli: RunCli, tmp_path: Path) -> None:
    source = tmp_path / "kernel.s"
    shutil.copy(LISTINGS / "gemm-loop-mp22.s", source)
    run = run_cli("report", source, "--html", source)
    assert run.code == 4 and "mccprobe did not make it" in run.stderr, run
    assert source.read_bytes() == (LISTINGS / "gemm-loop-mp22.s").read_bytes()


def _finished(folder: Path, name: str, options: dict[str, Any]) -> Path:
    """A run as it lies there when it has ended, without the compiler that made it."""
    folder.mkdir()
    shutil.copy(DATA / f"{name}.json", folder / "result.json")
    (folder / "report.txt").write_text("the report as it was\n")
    (folder / "run.json").write_text(json.dumps({"schema_version": 2, **options}))
    return folder


@pytest.mark.parametrize(
    ("command", "name", "options"),
    [
        (("bisect",), "bisect", {"options": {}, "request": {}}),
        (("why",), "why", {"options": {"bisect": {}}, "request": {}}),
        (("flags", "search"), "flags-search", {"search": {"file": "known.c"}, "described": {}}),
    ],
)
def test_a_page_of_a_finished_run_needs_no_compiler(
    run_cli: RunCli, tmp_path: Path, command: tuple[str, ...], name: str, options: dict[str, Any]
) -> None:
    run_directory = _finished(tmp_path / "run", name, options)
    page = tmp_path / "page.html"
    run = run_cli(*command, "--resume", run_directory, "--html", page, env={"PATH": "/nowhere"})
    assert run.code == 0 and run.stdout == "the report as it was\n", run
    assert "nothing is run" in run.stderr and page.read_text("utf-8").startswith("<!DOCTYPE html>")
    assert sorted(path.name for path in run_directory.iterdir()) == ["report.txt", "result.json", "run.json"]
    as_json = run_cli(*command, "--resume", run_directory, "--html", page, "--json", env={"PATH": "/nowhere"})
    assert json.loads(as_json.stdout) == json.loads((DATA / f"{name}.json").read_text("utf-8")), as_json


def test_a_result_of_another_command_is_told(run_cli: RunCli, tmp_path: Path) -> None:
    run_directory = _finished(tmp_path / "run", "bench", {"options": {}, "request": {}})
    run = run_cli("bisect", "--resume", run_directory, "--html", tmp_path / "page.html")
    assert run.code == 4 and "result.json" in run.stderr and "Traceback" not in run.stderr, run


@pytest.mark.toolchain("clang-14")
def test_a_bisection_with_its_page(run_cli: RunCli, tmp_path: Path) -> None:
    source, page = tmp_path / "prog.c", tmp_path / "page.html"
    source.write_text(PROGRAM)
    args = ("bisect", source, "--compiler", "clang-14", "--profile", "--html", page, "-o", tmp_path / "run", "--json")
    run = run_cli(*args, "--reference", "-O0", "--", "-O1")
    assert run.code == 1, run
    tested = json.loads(run.stdout)["tested"]
    assert tested and {one["verdict"] for one in tested} == {"GOOD"}
    assert "No difference: the bad build is as right as the reference" in page.read_text("utf-8")
