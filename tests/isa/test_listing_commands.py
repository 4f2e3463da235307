"""`disasm`, `diff`, `lint` as a user sees them: goldens of the text, schemas of the documents, exit codes."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner
from jsonschema import Draft202012Validator

from mccprobe.base.console import Console
from mccprobe.base.errors import InputError, UsageError
from mccprobe.cli.diff_cmd import diff
from mccprobe.cli.disasm_cmd import disasm
from mccprobe.cli.lazy import add_common_options
from mccprobe.cli.lint_cmd import lint

ROOT = Path(__file__).resolve().parents[2]
DATA = Path(__file__).parent / "data"
GOLDENS = Path(__file__).parent / "goldens"
COMMANDS: dict[str, click.Command] = {"disasm": disasm, "diff": diff, "lint": lint}
for _command in COMMANDS.values():
    add_common_options(_command)  # as `mccprobe` does when it looks one up


@dataclass(frozen=True)
class Answer:
    """What a command returned and printed."""

    code: int
    stdout: str


def _run(*arguments: str) -> Answer:
    result = CliRunner().invoke(COMMANDS[arguments[0]], list(arguments[1:]), obj=Console(), standalone_mode=False)
    if result.exception is not None:
        raise result.exception
    return Answer(result.return_value or 0, result.stdout)


def _document(*arguments: str) -> dict[str, Any]:
    document: dict[str, Any] = json.loads(_run(*arguments, "--json").stdout)
    schema = json.loads((ROOT / "reports" / f"{arguments[0]}.schema.json").read_text())
    assert [f"{one.json_path}: {one.message}" for one in Draft202012Validator(schema).iter_errors(document)] == []
    return document


CASES = {
    "disasm-demo": ("disasm", "demo-mp22.s"),
    "disasm-gemm-loops": ("disasm", "gemm-loop-mp22.s", "--loops"),
    "disasm-invented-words": ("disasm", "objdump-mtgpu-invented.txt", "--words"),
    "disasm-nvdisasm": ("disasm", "nvdisasm.txt"),
    "diff-moved": ("diff", "gemm-loop-mp22.s", "gemm-moved-mp22.s"),
    "diff-demo-bypass": ("diff", "demo-mp22.s", "bypass-mp22.s"),
    "lint-bypass": ("lint", "bypass-mp22.s"),
    "lint-demo": ("lint", "demo-mp22.s"),
    "disasm-help": ("disasm", "--help"),
    "diff-help": ("diff", "--help"),
    "lint-help": ("lint", "--help"),
}
CODES = {"diff-moved": 1, "diff-demo-bypass": 1, "lint-bypass": 1}


@pytest.fixture
def in_data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The fixtures in an empty directory, with one more: a barrier moved behind the inner loop."""
    for file in DATA.iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    lines = (DATA / "gemm-loop-mp22.s").read_text().splitlines()
    barrier = next(place for place, line in enumerate(lines) if "AP.BARRIER" in line)
    lines.insert(barrier + 9, lines.pop(barrier))
    (tmp_path / "gemm-moved-mp22.s").write_text("\n".join(lines) + "\n")
    monkeypatch.chdir(tmp_path)


@pytest.mark.usefixtures("in_data")
@pytest.mark.parametrize("name", CASES)
def test_text(name: str, update_goldens: bool) -> None:
    answer = _run(*CASES[name])
    golden = GOLDENS / f"{name}.txt"
    if update_goldens:
        GOLDENS.mkdir(exist_ok=True)
        golden.write_text(answer.stdout)
    assert answer.stdout == golden.read_text()
    assert answer.code == CODES.get(name, 0)


@pytest.mark.usefixtures("in_data")
@pytest.mark.parametrize("name", [name for name in CASES if not name.endswith("-help")])
def test_documents_follow_their_schemas(name: str) -> None:
    document = _document(*CASES[name])
    assert document["schema_version"] == 1


@pytest.mark.usefixtures("in_data")
def test_the_document_keeps_three_counts_and_two_rates() -> None:
    (image,) = _document("disasm", "objdump-mtgpu-invented.txt", "--words")["images"]
    (function,) = image["functions"]
    assert (function["words"], function["slots"], function["instructions"]) == (6, 18, 10)
    assert (function["slot_packing"], function["mma_utilisation"], function["matrix_words"]) == (0.6667, None, 1)
    assert function["geometry"]["state"] == "confirmed"
    assert len(function["word_list"]) == 6
    (image,) = _document("disasm", "demo-mp22.s")["images"]
    (function,) = image["functions"]
    assert (function["words"], function["slots"], function["instructions"]) == (None, None, 13)
    assert function["geometry"]["state"] == "unknown"


@pytest.mark.usefixtures("in_data")
def test_equal_files_are_exit_0() -> None:
    assert _run("diff", "demo-mp22.s", "demo-mp22.s").code == 0
    assert _document("diff", "demo-mp22.s", "demo-mp22.s")["equal"] is True


@pytest.mark.usefixtures("in_data")
def test_a_function_that_is_not_there_is_a_usage_error() -> None:
    with pytest.raises(UsageError, match="no function nope"):
        _run("disasm", "demo-mp22.s", "--function", "nope")
    with pytest.raises(UsageError, match="no function nope"):
        _run("diff", "demo-mp22.s", "bypass-mp22.s", "--function", "nope")


@pytest.mark.usefixtures("in_data")
def test_what_is_nothing_is_an_input_error() -> None:
    for command in ("disasm", "lint"):
        with pytest.raises(InputError):
            _run(command, "missing.o")
        with pytest.raises(InputError):
            _run(command, "README.md")


@pytest.mark.usefixtures("in_data")
def test_one_function_of_two() -> None:
    two = Path("demo-mp22.s").read_text().replace("_Z5demo1Pf", "other") + Path("demo-mp22.s").read_text()
    Path("two.s").write_text(two.replace("\t.mtgpu_metadata", "\t.mtgpu_metadata", 1))
    (image,) = _document("disasm", "two.s", "--function", "other")["images"]
    assert [one["name"] for one in image["functions"]] == ["other"]
