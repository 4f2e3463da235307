"""The schemas of reports/: valid themselves, true of the shipped data and of the documents."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from mccprobe.base.errors import UnknownFlag
from mccprobe.cli import error_document
from mccprobe.report.record import BisectReport, Confirmation, Culprit, EdgeRecord, Status, TableCell
from mccprobe.targets.flags import catalogue
from mccprobe.targets.inventory import Entry

ROOT = Path(__file__).resolve().parents[2]
SCHEMAS = sorted(ROOT.glob("reports/*.schema.json"))


def _validator(name: str) -> Draft202012Validator:
    return Draft202012Validator(json.loads((ROOT / "reports" / f"{name}.schema.json").read_text()))


def _complaints(name: str, document: Any) -> list[str]:
    document = json.loads(json.dumps(document))
    return [f"{error.json_path}: {error.message}" for error in _validator(name).iter_errors(document)]


@pytest.mark.parametrize("path", SCHEMAS, ids=lambda path: path.name)
def test_schemas_are_valid(path: Path) -> None:
    schema = json.loads(path.read_text())
    Draft202012Validator.check_schema(schema)
    assert schema["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    assert path.name in (ROOT / "reports" / "README.md").read_text()


@pytest.mark.parametrize("path", catalogue.shipped_files(), ids=lambda path: path.parts[-3])
def test_shipped_catalogues_follow_their_schema(path: Path) -> None:
    assert _complaints("flag-catalogue", tomllib.loads(path.read_text())) == []


@pytest.mark.parametrize("path", sorted(ROOT.glob("kernels/*/kernel.toml")), ids=lambda path: path.parent.name)
def test_shipped_kernels_follow_their_schema(path: Path) -> None:
    assert _complaints("kernel", tomllib.loads(path.read_text())) == []


def test_the_catalogue_of_the_readme_loads(tmp_path: Path) -> None:
    example = (ROOT / "reports" / "README.md").read_text().partition("```toml\n")[2].partition("```")[0]
    file = tmp_path / "own.toml"
    file.write_text(example)
    assert len(catalogue.load_catalogue([file]).resolve_set("mine")) == 2
    assert _complaints("flag-catalogue", tomllib.loads(example)) == []


CULPRIT = Culprit("NewGVNPass", "newgvn", "f(int)", "_Z1fi", "log", 12, 100)


def _report(**changes: Any) -> dict[str, Any]:
    given: dict[str, Any] = {
        "status": Status.FOUND,
        "toolchain": "clang",
        "compiler_path": "clang-14",
        "compiler_version": "14.0.6",
        "simulated": False,
        "source": "a.c",
        "flags": ("-enable-newgvn",),
        "culprit": CULPRIT,
        "confirmation": Confirmation("ir-changed", "text"),
        "edges": (EdgeRecord(12, "GOOD", "BAD", "NewGVNPass", None),),
        "table": (TableCell("off", "off", None, None, "not run"), TableCell("on", "on", "BAD", "ab", "how")),
        "reproduce_bad": (("clang-14", "a.c"), ("./a.out",)),
        "verdicts": {"GOOD": 3, "BAD": 4},
        **changes,
    }
    return BisectReport(**given).to_dict("1.0")


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"status": Status.EXPOSED, "failure_rate": (0.1, 0.2, 0.3), "confidence": 0.99},
        {"status": Status.WRONG_AT_ZERO, "culprit": None, "confirmation": None, "edges": ()},
        {"status": Status.NON_DETERMINISTIC, "monotone": False, "good_end": 0, "total": 9},
        {"status": Status.UNDECIDED, "culprit": None, "confirmation": None},
    ],
)
def test_bisect_reports_follow_their_schema(changes: dict[str, Any]) -> None:
    assert _complaints("bisect", _report(**changes)) == []


@pytest.mark.parametrize(
    "changes",
    [
        {"culprit": None},  # found without a culprit
        {"status": Status.WRONG_AT_ZERO},  # nothing to find, and yet a culprit
        {"verdicts": {"MAYBE": 1}},
        {"confidence": 1.5},
    ],
)
def test_reports_that_contradict_themselves_do_not(changes: dict[str, Any]) -> None:
    assert _complaints("bisect", _report(**changes))


@pytest.mark.parametrize("name", ["bisect", "toolchains"])
def test_error_documents_follow_every_schema(name: str) -> None:
    assert _complaints(name, error_document(UnknownFlag("x", ["y"]))) == []


def test_lists_of_toolchains_follow_their_schema() -> None:
    able = dict.fromkeys(("compile", "run", "bisect", "resources", "timing"), True) | {"bundle": "not probed"}
    entries = [
        Entry("mcc", False, notes=("no mcc",)),
        Entry("clang", True, "/p/clang", "14.0.6", False, able),
    ]
    document = {
        "schema_version": 1,
        "tool_version": "1",
        "toolchains": [entry.to_dict() for entry in entries],
    }
    assert _complaints("toolchains", document) == []
    document["toolchains"][1]["capabilities"]["bundle"] = "perhaps"  # type: ignore[index]
    assert _complaints("toolchains", document)
