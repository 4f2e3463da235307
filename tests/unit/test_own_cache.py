"""Nothing is executed from a cache that another user owns or can write."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from mccprobe.base.errors import ExitCode, ForeignFolder, PathUnusable
from mccprobe.base.paths import make_own, require_own
from mccprobe.build.wrapper.run_in_front import _wrapper_folder
from mccprobe.targets.sim.build import sim_sdk
from mccprobe.tuning.trace.library import recorder_library

OTHER = 4242  # uid of nobody here


def give_away(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Make `path` look like another user's: root can do it, everybody else becomes another user."""
    if os.geteuid() == 0:
        os.chown(path, OTHER, -1)
    else:
        monkeypatch.setattr(os, "geteuid", lambda: OTHER)


USERS = {
    "sim": lambda cache: sim_sdk(cache),
    "trace": lambda cache: recorder_library(cache),
    "wrapper": lambda cache: _wrapper_folder(b"#!/bin/sh\n", cache, "mcc"),
}


@pytest.mark.parametrize("use", USERS.values(), ids=USERS)
@pytest.mark.parametrize("where", ["", "below"])
def test_the_cache_of_another_user_is_refused(
    use: Callable[[Path], object],
    where: str,
    request: pytest.FixtureRequest,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    cache = tmp_path / "cache"
    name = next(name for name, one in USERS.items() if one is use)
    place = cache / name if where else cache
    place.mkdir(parents=True)
    give_away(place, monkeypatch)
    with pytest.raises(ForeignFolder, match="belongs to another user") as refused:
        use(cache)
    assert refused.value.exit_code == ExitCode.INPUT and "MCCPROBE_CACHE=DIR" in refused.value.hint
    assert list(place.iterdir()) == []


@pytest.mark.parametrize("use", USERS.values(), ids=USERS)
@pytest.mark.parametrize(("mode", "who"), [(0o777, "every user"), (0o770, "its group"), (0o702, "every user")])
def test_a_cache_that_others_can_write_is_refused(
    use: Callable[[Path], object], mode: int, who: str, tmp_path: Path
) -> None:
    cache = tmp_path / "cache"
    cache.mkdir()
    cache.chmod(mode)
    with pytest.raises(ForeignFolder, match=f"can be written by {who}") as refused:
        use(cache)
    assert f"chmod go-w {cache}" in refused.value.hint


def test_a_sticky_folder_is_as_safe_as_what_is_in_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cache = tmp_path / "cache"
    cache.mkdir()
    cache.chmod(0o1777)
    assert make_own(cache, "sim") == cache / "sim"
    give_away(cache / "sim", monkeypatch)
    with pytest.raises(ForeignFolder, match="sim: refused"):
        require_own(cache, "sim")


def test_a_link_to_the_cache_of_another_user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "theirs").mkdir()
    (tmp_path / "cache").symlink_to("theirs")
    require_own(tmp_path / "cache")
    give_away(tmp_path / "theirs", monkeypatch)
    with pytest.raises(ForeignFolder):
        require_own(tmp_path / "cache")


def test_a_new_cache_is_for_its_user_alone_to_write(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        place = make_own(tmp_path / "new" / "cache", "a", "b")
    finally:
        os.umask(before)
    assert place == tmp_path / "new" / "cache" / "a" / "b"
    require_own(tmp_path / "new" / "cache", "a", "b", "not there")


def test_a_loop_of_links_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "loop").symlink_to("loop")
    with pytest.raises(PathUnusable, match="symbolic links"):
        require_own(tmp_path / "loop")


def test_the_command_line_refuses_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call_cli: Callable[..., tuple[int, str, str]]
) -> None:
    monkeypatch.setenv("MCCPROBE_CACHE", str(tmp_path))
    tmp_path.chmod(0o777)
    code, out, err = call_cli("check", "gemm", "--toolchain", "sim", "--json")
    assert (code, json.loads(out)["code"]) == (4, "foreign-folder"), err
