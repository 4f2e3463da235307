"""A flag has five stops from the command line to the compile (ARCHITECTURE.md), and `-mllvm` is put on once."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from mccprobe.base.errors import UsageError
from mccprobe.targets.flags.catalogue import load_catalogue
from mccprobe.targets.flags.given import CompilerFlag, refuse_twice
from mccprobe.targets.llvm.jobs import mllvm_options, with_mllvm

PACKAGE = Path(__file__).resolve().parents[2] / "mccprobe"
ON_ITS_WAY = (*(PACKAGE / "cli").glob("*.py"), *(PACKAGE / "bisection").rglob("*.py"), PACKAGE / "build" / "unit.py")


def test_nothing_between_spells_it() -> None:
    found = {
        path.name
        for path in ON_ITS_WAY
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Constant) and node.value == "-mllvm"
    }
    assert not found


def test_a_flag_is_spelled_once_for_a_driver_and_once_for_a_cc1() -> None:
    flag = load_catalogue().resolve("internal-regs-ra").given
    assert flag.argv == ("-mllvm", flag.option)
    cc1 = with_mllvm(("clang", "-cc1", "-x", "ir", "a.bc"), [flag.option, flag.option])
    assert mllvm_options(cc1) == [flag.option] and cc1.count("-mllvm") == 1


def test_all_spellings_of_a_flag_are_one_value() -> None:
    catalogue = load_catalogue()
    texts = ("-mllvm=-foo=1", "-mllvm -foo=1", "-foo=1")
    assert {catalogue.resolve(text).given for text in texts} == {CompilerFlag("-foo=1")}
    assert catalogue.resolve("-O3").given == CompilerFlag(words=("-O3",))


def test_an_option_of_llvm_is_given_once_with_whatever_value() -> None:
    one, other = CompilerFlag("--x=1"), CompilerFlag("-x=2")
    with pytest.raises(UsageError, match="--flag gives x twice: a and b"):
        refuse_twice([(one.key, "a"), (other.key, "b")], "--flag")
    lists = CompilerFlag(words=("-DA=1",)), CompilerFlag(words=("-DB=1",))
    refuse_twice([(flag.key, "") for flag in lists], "--flag")
