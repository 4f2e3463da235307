"""Whatever a file holds, `report` gives records that follow the schema, or one error that says what is wrong."""

from __future__ import annotations

import importlib.util
import json
import sys
import tempfile
from pathlib import Path
from typing import Any

import jsonschema
from hypothesis import given, settings
from hypothesis import strategies as st

from mccprobe.base.errors import MccprobeError
from mccprobe.inspection.resources import ReportRequest, report_on
from mccprobe.report.render_resources import render_csv, render_markdown, render_text

ROOT = Path(__file__).resolve().parents[2]
VALIDATOR = jsonschema.Draft202012Validator(json.loads((ROOT / "reports/report.schema.json").read_text("utf-8")))


def _writer() -> Any:
    path = ROOT / "tests" / "binary" / "writer.py"
    spec = importlib.util.spec_from_file_location("report_property_writer", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["report_property_writer"] = module
    spec.loader.exec_module(module)
    return module


WRITER = _writer()
VALUES = st.one_of(
    st.none(), st.booleans(), st.integers(-(2**63), 2**64 - 1), st.floats(allow_nan=False), st.text(max_size=20),
    st.binary(max_size=9), st.lists(st.integers(0, 5), max_size=3),
)  # fmt: skip
KEYS = ("temp_reg_count", "attr_reg_count", "shared_memory_size", "private_memory_size", "has_barrier",
        "max_block_size", "arch_id", "name", "args", "surprise")  # fmt: skip

HEADS = (b"", b"\x7fELF\x02\x01\x01", b"__CLANG_OFFLOAD_BUNDLE__", b"\t.mtgpu_metadata.start\n")


def outcome(content: bytes) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "file.o"
        path.write_bytes(content)
        try:
            found = report_on(ReportRequest([path]))
        except MccprobeError as error:
            assert error.message
            return
        document = json.loads(json.dumps(found.to_dict()))
        assert [error.message for error in VALIDATOR.iter_errors(document)] == []
        for render in (render_text, render_markdown, render_csv):
            render(found)


@settings(max_examples=80, deadline=None)
@given(st.dictionaries(st.sampled_from(KEYS), VALUES, max_size=6))
def test_any_metadata(changes: dict[str, Any]) -> None:
    kernel = WRITER.mtgpu_kernel() | {f".{key}": value for key, value in changes.items()}
    outcome(WRITER.mtgpu_elf(WRITER.mtgpu_document(kernel)))


@settings(max_examples=80, deadline=None)
@given(st.data())
def test_damaged_objects(data: st.DataObject) -> None:
    content = bytearray(WRITER.mtgpu_elf(WRITER.mtgpu_document(WRITER.mtgpu_kernel())))
    for _ in range(data.draw(st.integers(1, 4))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    outcome(bytes(content[: data.draw(st.integers(1, len(content)))]))


@settings(max_examples=60, deadline=None)
@given(st.binary(max_size=300), st.sampled_from(HEADS))
def test_any_bytes(tail: bytes, head: bytes) -> None:
    outcome(head + tail)
