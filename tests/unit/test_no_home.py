"""A user without a home folder, as a container's numeric one: what is named works, what is not says what to name."""

from __future__ import annotations

import os
import pwd
from pathlib import Path

import pytest

from mccprobe.base.errors import ExitCode, NoHomeFolder, UsageError
from mccprobe.build.wrapper.install import default_prefix, wrapper_path
from mccprobe.cli.common import cache_directory
from mccprobe.explain.bundle.making import names_here
from mccprobe.objects.isa.by_table import tables_folder
from mccprobe.targets.llvm import locate
from mccprobe.targets.mcc.toolchain import MccPaths, find_mcc


@pytest.fixture(autouse=True)
def nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    def unknown(_: object) -> pwd.struct_passwd:
        raise KeyError("uid not found")

    for name in ("HOME", "MCCPROBE_CACHE", "MCCPROBE_TABLES", "XDG_CACHE_HOME", "XDG_DATA_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(pwd, "getpwuid", unknown)
    monkeypatch.setattr(pwd, "getpwnam", unknown)


def test_what_lies_in_the_home_folder_says_what_to_name() -> None:
    with pytest.raises(NoHomeFolder, match="HOME is not set") as caught:
        cache_directory()
    assert "MCCPROBE_CACHE=DIR" in caught.value.hint and caught.value.exit_code is ExitCode.USAGE
    with pytest.raises(NoHomeFolder) as caught:
        default_prefix()
    assert "--prefix DIR" in caught.value.hint
    with pytest.raises(UsageError, match="~/x: no such home folder"):
        wrapper_path(Path("~/x"))
    assert tables_folder() is None, "no tables is an answer"


def test_what_is_named_is_taken(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    assert cache_directory() == tmp_path / "mccprobe"
    assert tables_folder() == tmp_path / "mccprobe/tables"
    monkeypatch.setenv("MCCPROBE_CACHE", str(tmp_path / "c"))
    assert cache_directory() == tmp_path / "c"


def test_a_report_is_scrubbed_all_the_same(tmp_path: Path) -> None:
    assert any(str(tmp_path) in str(name) for name in names_here({"RUN": tmp_path}))


def test_a_folder_of_path_that_may_not_be_looked_into(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """os.stat is what refuses: file permissions do not bind root."""
    closed, stat = tmp_path / "closed", os.stat

    def refuse(path: object, *args: object, **kwargs: object) -> os.stat_result:
        if str(path).startswith(str(closed)):
            raise PermissionError(13, "Permission denied", str(path))
        return stat(path, *args, **kwargs)  # type: ignore[arg-type]

    monkeypatch.setenv("PATH", str(closed))
    monkeypatch.setattr(os, "stat", refuse)
    assert not locate.is_program(closed / "mcc")
    assert find_mcc(MccPaths(None, None)).path is None or str(closed) not in str(find_mcc(MccPaths(None, None)).path)
