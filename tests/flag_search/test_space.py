"""Space files: what is read, in which order, and what is refused."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mccprobe.base.errors import BadDataFile, MccprobeError, UsageError
from mccprobe.oracle.kernel.spec import shipped_kernel
from mccprobe.tuning.flag_search.space import GROUPS, default_space, load_space, require_bounded

FILE = """schema_version = 1
[[flag]]
flag = "mtgpu-if-convert"
[[flag]]
flag = "FenceSetting"
group = "memory"
[[flag]]
flag = "-mllvm -x"
values = ["1", "2"]
group = "scheduling"
[[define]]
name = "GEMM_PAD_A"
values = [0, 8, 16]
"""


def read(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "space.toml"
    path.write_text(text)
    return path


def test_priority_order_and_arguments(tmp_path: Path) -> None:
    space = load_space(read(tmp_path, FILE), shipped_kernel("gemm"))
    assert [one.name for one in space.dimensions] == ["x", "FenceSetting", "mtgpu-if-convert", "GEMM_PAD_A"]
    assert [len(one.choices) for one in space.dimensions] == [3, 5, 2, 3]  # an enum has all its values
    assert space.size == 90
    point = (2, 1, 0, 1)
    assert space.flags(point) == (("-mllvm", "-x=2"), ("-mllvm", "--FenceSetting=strict"))
    assert space.defines(point) == (("GEMM_PAD_A", "0"),)  # 8 is the default
    assert space.texts(point)[-1] == "-DGEMM_PAD_A=0"
    assert space.flags(space.baseline) == () == space.defines(space.baseline)


@given(st.data())
def test_names_of_a_point_lead_back_to_it(data: st.DataObject) -> None:
    space = default_space("mcc", None)
    point = tuple(data.draw(st.integers(0, len(one.choices) - 1)) for one in space.dimensions)
    assert space.point_of(space.named(point)) == point


def test_a_point_of_another_space() -> None:
    with pytest.raises(KeyError):
        default_space("mcc", None).point_of({"no-such-flag": "-x"})
    with pytest.raises(ValueError):
        default_space("mcc", None).point_of({"FenceSetting": "--FenceSetting=other"})


@pytest.mark.parametrize("toolchain", ["mcc", "sim", "clang", "amdgcn"])
def test_shipped_spaces(toolchain: str) -> None:
    space = default_space(toolchain, None)
    groups = [GROUPS.index(one.group) for one in space.dimensions]
    assert groups == sorted(groups) and set(groups) == {0, 1, 2}


def test_the_article_s_seven_are_in_the_shipped_space() -> None:
    space = default_space("mcc", None)
    texts = {choice.text for one in space.dimensions for choice in one.choices}
    assert {
        "-mllvm --mtgpu-enable-postra-sched",
        "-mllvm --mtgpu-enable-max-ilp-scheduling-strategy",
        "-mllvm --FenceSetting=mixed",
        "-mllvm -mtgpu-load-store-opt",
        "-mllvm -mtgpu-load-cluster-mutation",
        "-mllvm -mtgpu-memory-sched-mutation",
        "-mllvm -mtgpu-tiny-offset-hint",
    } <= texts


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "schema_version"),
        ("schema_version = 1\n", "expected one"),
        ('schema_version = 1\n[[flag]]\nflag = "no-such-flag-anywhere"\n', "unknown flag"),
        ('schema_version = 1\n[[flag]]\nflag = "-x"\ngroup = "fast"\n', "fast"),
        ('schema_version = 1\n[[flag]]\nflag = "-x=1"\nvalues = ["2"]\n', "does not go with"),
        ('schema_version = 1\n[[flag]]\nflag = "-x"\n[[flag]]\nflag = "--x"\n', "there twice"),
        ('schema_version = 1\n[[flag]]\nflag = "-x"\nvalue = "2"\n', "did you mean values"),
        ('schema_version = 1\n[[define]]\nname = "NO"\n', "no parameter"),
        ('schema_version = 1\n[[define]]\nname = "GEMM_PAD_A"\nvalues = [8]\n', "nothing but the default"),
        ("not toml", "not TOML"),
    ],
)
def test_refused(tmp_path: Path, text: str, told: str) -> None:
    with pytest.raises(MccprobeError, match=told):
        load_space(read(tmp_path, text), shipped_kernel("gemm"))


def test_parameters_need_a_kernel(tmp_path: Path) -> None:
    with pytest.raises(BadDataFile, match="no parameter"):
        load_space(read(tmp_path, FILE), None)


def test_the_bound_of_an_exhaustive_search() -> None:
    space = default_space("mcc", None)
    require_bounded(space, space.size)
    with pytest.raises(UsageError, match="more than --bound"):
        require_bounded(space, space.size - 1)
