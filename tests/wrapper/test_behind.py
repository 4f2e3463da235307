"""Options that reach the compiler behind the wrapper's back: never a flag twice, and it is said."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from mccprobe.build.wrapper.flagset import wrapper_sets
from mccprobe.build.wrapper.install import install

COMPILE = ["-O2", "-c", "k.mu"]


@pytest.mark.parametrize(
    "value",
    [
        "+-mllvm +-FenceSetting=strict",
        "# +-Xclang +-mllvm",
        "^-mllvm",
        "x-mllvm",
        "+-Od3",
        "+@more.rsp",
        "+--config=./c.cfg",
        "s/-O2/-Od3/",
    ],
)
@pytest.mark.parametrize("log", [True, False])
def test_an_override_that_may_give_llvm_options(call, value: str, log: bool) -> None:  # type: ignore[no-untyped-def]
    done = call(COMPILE, env={"CCC_OVERRIDE_OPTIONS": value}, log=log)
    assert done.code == 0 and done.argv == [word.encode() for word in COMPILE]
    assert "CCC_OVERRIDE_OPTIONS may give LLVM options" in done.stderr and "nothing is added" in done.stderr
    assert not log or done.log["kind"] == "unseen"


@pytest.mark.parametrize("value", ["", "+-v", "O3", "# x-g +-Wall"])
def test_a_harmless_override_changes_nothing(call, value: str) -> None:  # type: ignore[no-untyped-def]
    plain, done = call(COMPILE, log=False), call(COMPILE, env={"CCC_OVERRIDE_OPTIONS": value}, log=False)
    assert done.argv == plain.argv and len(plain.argv) > len(COMPILE) and not done.stderr


@pytest.mark.parametrize("argv", [["a.o", "-o", "app"], ["--version"]])
def test_calls_that_get_nothing_anyway_are_silent(call, argv: list[str]) -> None:  # type: ignore[no-untyped-def]
    done = call(argv, env={"CCC_OVERRIDE_OPTIONS": "+-mllvm +-x"})
    assert done.argv == [word.encode() for word in argv] and not done.stderr


@pytest.mark.parametrize("named", [["--config", "site"], ["--config=site.cfg"]])
def test_a_configuration_file_by_name(call, named: list[str], tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    """clang looks for it in folders that were built into it; one of that name here is not the one."""
    (tmp_path / "site").write_text("-O1\n")
    done = call([*named, *COMPILE])
    assert done.argv == [word.encode() for word in (*named, *COMPILE)]
    assert "is looked for in folders that only the compiler knows: nothing is added" in done.stderr
    assert done.log["kind"] == "unseen"


def test_comments_of_a_configuration_file_are_no_options(call, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    (tmp_path / "c.cfg").write_text("  # -mllvm -FenceSetting=strict\n#-E\n-O1\n")
    done = call(["--config", "./c.cfg", *COMPILE])
    assert done.log["kind"] == "compile" and done.log["kept"] == [] and not done.stderr
    assert any(b"FenceSetting" in word for word in done.argv)


def test_a_file_within_a_configuration_file(call, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    """It is relative to that file."""
    (tmp_path / "etc").mkdir()
    (tmp_path / "etc" / "c.cfg").write_text("@more.cfg\n")
    (tmp_path / "etc" / "more.cfg").write_text("-mllvm -FenceSetting=strict\n")
    done = call(["--config", "etc/c.cfg", *COMPILE])
    assert done.log["kind"] == "unseen" and "nothing is added" in done.stderr
    assert not any(b"FenceSetting" in word for word in done.argv)


@pytest.mark.toolchain("clang-14")
def test_clang_would_refuse_them_twice_and_does_not_with_the_wrapper(
    compiler: Callable[[int], str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clang = compiler(14)
    (tmp_path / "k.c").write_text("int f(int n) { return n; }\n")
    (tmp_path / "set.toml").write_text(
        'schema_version = 1\n\n[[set]]\nname = "mine"\nsummary = "s"\nsource = "a test"\n'
        'flags = ["-mllvm -unroll-count=2"]\n'
    )
    monkeypatch.setenv("CCC_OVERRIDE_OPTIONS", "# +-mllvm +-unroll-count=4")
    twice = subprocess.run(
        [clang, "-mllvm", "-unroll-count=2", "-c", "k.c"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert twice.returncode != 0 and "unroll-count" in twice.stderr, twice
    installed = install(tmp_path / "usr", Path(shutil.which(clang) or clang), wrapper_sets(str(tmp_path / "set.toml")))
    once = subprocess.run([str(installed.path), "-c", "k.c"], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert once.returncode == 0 and "nothing is added" in once.stderr, once
