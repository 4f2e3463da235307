"""kernel.toml: loading, cases, dispatch, and where the shipped kernels lie."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mccprobe.base.errors import BadDataFile, UsageError
from mccprobe.oracle.kernel import shipped
from mccprobe.oracle.kernel.spec import (
    KernelSpec,
    find_shipped_kernels,
    is_shipped,
    kernels_folder,
    load_kernel,
    parse_shape,
    shipped_kernel,
)
from mccprobe.tuning.check.cases import DispatchTable

TEXT = """
schema_version = 1
name = "mine"
summary = "s"
sources = ["k.mu"]
host_sources = ["../host.mu"]
entry = "run"
compile_args = ["-O3"]
default_case = "small"

[tolerance]
kind = "absolute"
formula = "0.01*sqrt(K/512)"
reason = "r"

[[cases]]
name = "small"
m = 256
n = 256
k = 512
legacy = true

[[cases]]
name = "large"
m = 8192
n = 8192
k = 16384
toolchains = ["mcc", "cuda"]

[[cases]]
name = "large_reduced"
m = 512
n = 512
k = 512
reduced_for = "large"

[[dispatch]]
kernel = "tiled"
condition = "M % 256 == 0 && N % 256 == 0"

[[dispatch]]
kernel = "plain"
condition = "1 == 1"

[[defines]]
name = "PAD"
default = 8
values = [0, 8]

[[published]]
metric = "tflops"
value = 73.8
source = "article section 18"
approximate = true
"""


@pytest.fixture
def kernel(tmp_path: Path) -> Path:
    """A kernel folder whose kernel.toml is right."""
    folder = tmp_path / "kernels" / "mine"
    folder.mkdir(parents=True)
    (folder / "k.mu").touch()
    (folder.parent / "host.mu").touch()
    (folder / "kernel.toml").write_text(TEXT)
    return folder


def test_folder_and_file_load_alike(kernel: Path) -> None:
    spec = load_kernel(kernel)
    assert spec == load_kernel(kernel / "kernel.toml")
    assert spec.folder == kernel
    assert spec.sources == (kernel / "k.mu",)
    assert spec.host_sources == (kernel.parent / "host.mu",)
    assert spec.compile_args == ("-O3",) and spec.link_args == ()
    assert spec.published[0].approximate and spec.defines[0].values == (0, 8)
    assert spec.tolerance is not None
    assert spec.tolerance.limit(spec.case("8x8x2048")) == pytest.approx(0.02)


def test_cases_by_name_and_by_shape(kernel: Path) -> None:
    spec = load_kernel(kernel)
    assert spec.case("small").legacy
    assert (spec.case("272x144x96").m, spec.case("272x144x96").k) == (272, 96)
    assert spec.case("large").runs_on("mcc") and not spec.case("large").runs_on("sim")
    assert spec.case("small").runs_on("sim")
    for text in ("smal", "0x1x1", "1x1", "9999999x1x1", ""):
        with pytest.raises(UsageError, match="has no case"):
            spec.case(text)


def test_the_first_dispatch_that_holds_runs(kernel: Path) -> None:
    spec = load_kernel(kernel)
    names = [entry.kernel for text in ("small", "16x16x16") if (entry := DispatchTable(spec).taking(spec.case(text)))]
    assert names == ["tiled", "plain"]


@given(st.integers(1, 1 << 20), st.integers(1, 1 << 20), st.integers(1, 1 << 20))
def test_shapes_round_trip(m: int, n: int, k: int) -> None:
    assert parse_shape(f"{m}x{n}x{k}") == (m, n, k)


@given(st.text())
def test_other_texts_are_no_shapes(text: str) -> None:
    shape = parse_shape(text)
    assert shape is None or "x".join(map(str, shape)) == text


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('"k.mu"', '"gone.mu"', "sources[0]: gone.mu: no such file"),
        ('"k.mu"', '"' + "a" * 300 + '"', "no such file"),
        ('"k.mu"', '"a\\u0000b"', "sources[0]: a?b: no such file"),
        ('["k.mu"]', "[]", "sources: is empty"),
        ('"../host.mu"', '"host.mu"', "host_sources[0]: host.mu: no such file"),
        ('entry = "run"', 'entry = "r n"', "entry: r n is not a name"),
        ('default_case = "small"', 'default_case = "tiny"', "default_case: tiny is not one of large,"),
        ("m = 256", "m = 0", "cases[0].m: 0 is not in 1 to"),
        ("m = 256", 'm = "256"', "cases[0].m: expected an integer, got a string"),
        ("m = 256", "m = true", "cases[0].m: expected an integer, got a boolean"),
        ("m = 256\n", "", "cases[0].m: is missing"),
        ('name = "large"', 'name = "small"', "cases[1].name: small is there twice"),
        ('name = "large"', 'name = "1x2x3"', "cases[1].name: 1x2x3 reads as a shape"),
        ('["mcc", "cuda"]', '["gcc"]', "cases[1].toolchains[0]: gcc is not one of"),
        ('reduced_for = "large"', 'reduced_for = "big"', "cases[2].reduced_for: big is no other case"),
        ("legacy = true", "legaci = true", "cases[0].legaci: unknown key; did you mean legacy?"),
        ("sqrt(K/512)", "sqrt(Q/512)", "tolerance.formula: 0.01*sqrt(Q/512): Q is not one of M, N, K"),
        ("0.01*sqrt(K/512)", "0-K", "tolerance.formula: is -512 for case small"),
        ("0.01*sqrt(K/512)", "K/0", "tolerance.formula: K/0: has no value"),
        ('kind = "absolute"', 'kind = "exact"', "tolerance.kind: exact is not one of absolute, relative"),
        ("1 == 1", "M ** 9", "dispatch[1].condition: M ** 9: only arithmetic"),
        ("1 == 1", "__import__('os')", "dispatch[1].condition"),
        ("default = 8", "default = 9", "defines[0].default: 9 is not in values"),
        ("value = 73.8", "value = []", "published[0].value: expected a number or a string, got a list"),
        ('source = "article section 18"', "", "published[0].source: is missing"),
        ("[tolerance]", "[tolerances]", "tolerances: unknown key; did you mean tolerance?"),
        ("schema_version = 1", "schema_version = 7", "schema_version: is 7"),
    ],
)
def test_mistakes_name_file_and_key(kernel: Path, old: str, new: str, said: str) -> None:
    file = kernel / "kernel.toml"
    assert old in TEXT
    file.write_text(TEXT.replace(old, new, 1))
    with pytest.raises(BadDataFile) as error:
        load_kernel(kernel)
    assert error.value.message.startswith(f"{file}: ")
    assert said in error.value.message


def test_missing_files(tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "none", tmp_path / ("a" * 300)):
        with pytest.raises(BadDataFile, match=r"cannot be read|a folder without kernel\.toml"):
            load_kernel(path)


# --- shipped kernels -----------------------------------------------------------------------------


def test_the_gemm_is_shipped_and_loads() -> None:
    spec = shipped_kernel("gemm")
    assert isinstance(spec, KernelSpec)
    assert is_shipped(spec.sources[0]) and is_shipped(spec.path)
    assert [case.name for case in spec.cases if case.legacy]
    with pytest.raises(UsageError, match="no shipped kernel gem") as error:
        shipped_kernel("gem")
    assert "gemm" in error.value.hint


@pytest.mark.parametrize("folder", find_shipped_kernels(), ids=lambda folder: folder.name)
def test_every_shipped_kernel_loads(folder: Path) -> None:
    spec = load_kernel(folder)
    assert spec.name == folder.name
    assert spec.origin and spec.licence, "shipped kernels say where they come from"
    for case in spec.cases:
        assert not spec.dispatch or DispatchTable(spec).taking(case) is not None


def test_the_environment_names_another_folder(kernel: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert not is_shipped(kernel)
    monkeypatch.setenv("MCCPROBE_KERNELS", str(kernel.parent))
    assert kernels_folder() == kernel.parent
    assert [folder.name for folder in find_shipped_kernels()] == ["mine"]
    assert is_shipped(kernel / "k.mu") and not is_shipped(kernel.parents[1])


def test_an_installed_wheel_has_its_own_folder(kernel: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = tmp_path / "site" / "mccprobe"
    package.mkdir(parents=True)
    (package.parent / "kernels").mkdir()  # somebody else's: no kernel.toml in it
    monkeypatch.setattr(shipped, "PACKAGE", package)
    assert kernels_folder() is None and find_shipped_kernels() == [] and not is_shipped(kernel)
    kernel.parent.rename(package / "_kernels")
    assert kernels_folder() == package / "_kernels"
    assert is_shipped(package / "_kernels" / "mine" / "k.mu")


def test_links_do_not_make_a_kernel_shipped(kernel: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MCCPROBE_KERNELS", str(kernel.parent))
    own = tmp_path / "own.mu"
    own.touch()
    (kernel / "link.mu").symlink_to(own)
    (tmp_path / "to_shipped.mu").symlink_to(kernel / "k.mu")
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    assert not is_shipped(kernel / "link.mu")
    assert is_shipped(tmp_path / "to_shipped.mu")
    assert not is_shipped(kernel / ".." / ".." / "own.mu")
    assert not is_shipped(tmp_path / "loop")
