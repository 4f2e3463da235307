"""Reading data files: any damage is a BadDataFile that names the file, in one bounded line."""

from __future__ import annotations

import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mccprobe.base.errors import BadDataFile
from mccprobe.oracle.kernel.spec import load_kernel
from mccprobe.targets.flags import catalogue
from mccprobe.targets.flags.catalogue import load_catalogue
from mccprobe.targets.flags.datafile import MAX_BYTES, read_toml, shorten

KERNEL = b"""schema_version = 1
name = "k"
summary = "s"
sources = ["k.toml"]
entry = "run"
default_case = "small"
[tolerance]
kind = "absolute"
formula = "0.01*sqrt(K/512)"
reason = "r"
[[cases]]
name = "small"
m = 16
n = 16
k = 16
toolchains = ["mcc"]
[[dispatch]]
kernel = "k"
condition = "M % 16 == 0 && N % 16 == 0"
[[defines]]
name = "PAD"
default = 8
values = [0, 8]
reason = "r"
[[published]]
metric = "m"
value = 1.5
source = "s"
"""
SHIPPED = list(catalogue.shipped_files())
FLAGS = SHIPPED[0].read_bytes()[:4000].rpartition(b"[[flag]]")[0]
LOADERS: list[tuple[bytes, Callable[[Path], object]]] = [
    (FLAGS, lambda path: load_catalogue([path])),
    (KERNEL, load_kernel),
]
in_memory = settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)


def _loads_or_refuses(path: Path, data: bytes, load: Callable[[Path], object]) -> None:
    path.write_bytes(data)
    try:
        load(path)
    except BadDataFile as error:
        assert error.message.startswith(str(path)), error.message
        assert error.message.isprintable()
        assert len(error.message) < len(str(path)) + 400


@pytest.fixture
def data_file(tmp_path: Path) -> Path:
    return tmp_path / "k.toml"


@pytest.mark.parametrize(("data", "load"), LOADERS, ids=["flags", "kernel"])
def test_the_samples_load(data_file: Path, data: bytes, load: Callable[[Path], object]) -> None:
    data_file.write_bytes(data)
    assert load(data_file)


@in_memory
@given(st.data())
def test_damaged_bytes(data_file: Path, data: st.DataObject) -> None:
    sample, load = data.draw(st.sampled_from(LOADERS))
    at = data.draw(st.integers(0, len(sample) - 1))
    gone = data.draw(st.integers(0, 40))
    new = data.draw(st.binary(max_size=8) | st.sampled_from([b"[", b"]", b"{", b'"', b"=", b"\n", b"-1", b"1e400"]))
    _loads_or_refuses(data_file, sample[:at] + new + sample[at + gone :], load)


def _toml(value: object) -> str:
    match value:
        case bool():
            return str(value).lower()
        case str():
            return '"' + "".join(f"\\U{ord(c):08x}" for c in value) + '"'
        case list():
            return "[" + ", ".join(map(_toml, value)) + "]"
        case dict():
            return "{" + ", ".join(f"{_toml(k)} = {_toml(v)}" for k, v in value.items()) + "}"
    return str(value)


text = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
scalars = (
    st.integers(-(1 << 70), 1 << 70)
    | st.booleans()
    | text
    | st.floats()
    | st.dates()
    | st.sampled_from(["M", "K/0", "sqrt(0-K)", "9" * 400])
)
toml_values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(text, inner, max_size=3),
    max_leaves=6,
)


@in_memory
@given(st.data())
def test_wrong_values_at_any_key(data_file: Path, data: st.DataObject) -> None:
    sample, load = data.draw(st.sampled_from(LOADERS))
    document = tomllib.loads(sample.decode())
    place = document
    while True:
        key = data.draw(st.sampled_from(sorted(place)))
        inner = place[key]
        if isinstance(inner, list) and inner and isinstance(inner[0], dict):
            inner = data.draw(st.sampled_from(inner))
        if not isinstance(inner, dict) or data.draw(st.booleans()):
            break
        place = inner
    if data.draw(st.booleans()):
        place[key] = data.draw(toml_values)
    else:
        place[data.draw(text)] = place.pop(key)
    _loads_or_refuses(data_file, "\n".join(f"{_toml(k)} = {_toml(v)}" for k, v in document.items()).encode(), load)


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"\xff\xfe", "not UTF-8 text (byte 0)"),
        (b"a = ", "not TOML"),
        (b"a = " + b"[" * 5000 + b"]" * 5000, "not TOML"),
        (b"a = " + b"9" * 5000, "not TOML"),
        (b"#" * (MAX_BYTES + 1), "larger than"),
        (b"", "schema_version: is missing"),
        (b"schema_version = true", "schema_version: expected an integer, got a boolean"),
    ],
    ids=["bytes", "cut", "deep", "digits", "large", "empty", "version"],
)
def test_files_that_are_no_toml(data_file: Path, data: bytes, said: str) -> None:
    data_file.write_bytes(data)
    with pytest.raises(BadDataFile) as error:
        read_toml(data_file)
    assert error.value.message.startswith(str(data_file))
    assert said in error.value.message and len(error.value.message) < len(str(data_file)) + 250


def test_files_that_are_not_there(tmp_path: Path) -> None:
    with pytest.raises(BadDataFile, match="cannot be read: No such file or directory"):
        read_toml(tmp_path / "none.toml")
    with pytest.raises(BadDataFile, match="cannot be read: Is a directory"):
        read_toml(tmp_path)
    with pytest.raises(BadDataFile, match="not a file name"):
        read_toml(Path("a\0b"))


@given(st.text(), st.integers(4, 80))
def test_shortened_texts_are_one_printable_line(shown: str, limit: int) -> None:
    short = shorten(shown, limit)
    assert len(short) <= limit and short.isprintable()
