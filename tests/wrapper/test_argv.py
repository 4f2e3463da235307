"""The wrapper's argv table: each line of argv.jsonl in each shell.

A line: why, argv, kind (null: the log is not written), added ("set": the article's seven flags less those in `kept`;
"set+ ...": with more behind them; "none"; or the words), kept, env, files, code and says (of standard error).
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mccprobe.build.wrapper.flagset import wrapper_sets

LINES = [json.loads(line) for line in Path(__file__).with_name("argv.jsonl").read_text(encoding="utf-8").splitlines()]
SET = wrapper_sets("gemm-s4000").chosen


def expected_additions(line: dict[str, Any]) -> list[str]:
    added = line["added"]
    if isinstance(added, list):
        return added
    if added == "none":
        return []
    own = [word for one in SET.additions if one.key not in line.get("kept", ()) for word in one.words]
    return own + added.removeprefix("set").removeprefix("+").split()


def test_the_table_is_long_and_says_why() -> None:
    assert len(LINES) >= 60
    assert len({line["why"] for line in LINES}) == len(LINES)


@pytest.mark.parametrize("line", LINES, ids=[line["why"][:60] for line in LINES])
def test_line(line: dict[str, Any], call: Callable[..., Any], tmp_path: Path, compiler_that_tells: Path) -> None:
    for name, text in line.get("files", {}).items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    env = {name: value.replace("COMPILER", str(compiler_that_tells)) for name, value in line.get("env", {}).items()}
    done = call(line["argv"], env=env)
    assert done.code == line.get("code", 0), done.stderr
    assert line.get("says", "") in done.stderr
    if "says" not in line:
        assert done.stderr == ""
    if line.get("code"):
        assert done.argv is None
        return
    given = [os.fsencode(word) for word in line["argv"]]
    assert done.argv == [os.fsencode(word) for word in expected_additions(line)] + given
    if line["kind"] is None:
        assert done.log is None
        return
    assert done.log is not None
    assert done.log["kind"] == line["kind"]
    assert done.log["kept"] == line.get("kept", [])
    assert [os.fsencode(word) for word in done.log["before"][1:]] == given
    assert [os.fsencode(word) for word in done.log["after"]] == [os.fsencode(compiler_that_tells), *done.argv]
    assert done.log["cwd"] == str(tmp_path)
    # without the log the short way is taken where there is one: it must add the same
    assert call(line["argv"], env=env, log=False).argv == done.argv
