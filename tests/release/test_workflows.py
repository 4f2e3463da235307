"""The forge's workflow files: well formed, with few rights, and nothing in them that `make` does not know."""

from __future__ import annotations

import re
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]
WORKFLOWS = sorted((ROOT / ".github/workflows").glob("*.yml"))
SET_UP = (
    r"apt-get update && apt-get install [\w .-]+",
    r'git config --global --add safe\.directory "\$GITHUB_WORKSPACE"',
)


@pytest.fixture(params=WORKFLOWS, ids=lambda path: path.name)
def workflow(request: pytest.FixtureRequest) -> Path:
    path: Path = request.param
    return path


def _read(path: Path) -> dict[str, Any]:
    found: dict[str, Any] = yaml.load(path.read_text("utf-8"), yaml.BaseLoader)  # "on" stays a word
    return found


def _steps(path: Path) -> list[dict[str, Any]]:
    return [step for job in _read(path)["jobs"].values() for step in job["steps"]]


def test_there_is_one() -> None:
    assert [path.name for path in WORKFLOWS] == ["ci.yml"]


def test_it_follows_the_schema_of_the_forge(workflow: Path, execute: Callable[..., Any], tmp_path: Path) -> None:
    check = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", "vendor.github-workflows", workflow]
    ran = execute(*check, cwd=tmp_path)
    assert ran.code == 0, ran
    broken = tmp_path / "broken.yml"
    broken.write_text(workflow.read_text("utf-8").replace("runs-on", "runs-of"))
    assert execute(*check[:-1], broken, cwd=tmp_path).code == 1


def test_an_auditor_finds_nothing(workflow: Path, execute: Callable[..., Any], tmp_path: Path) -> None:
    zizmor = Path(sys.executable).parent / "zizmor"
    ran = execute(zizmor, "--offline", "--no-progress", "--config", ROOT / ".github/zizmor.yml", workflow, cwd=tmp_path)
    assert ran.code == 0, ran


def test_rights_and_limits(workflow: Path) -> None:
    document = _read(workflow)
    assert document["permissions"] == {"contents": "read"}
    assert "secrets." not in workflow.read_text("utf-8")
    assert document["concurrency"]["group"]
    for name, job in document["jobs"].items():
        assert 1 <= int(job["timeout-minutes"]) <= 120, name
        assert "permissions" not in job, name
        images = job["strategy"]["matrix"]["image"] if "matrix.image" in job["container"] else [job["container"]]
        assert all(re.fullmatch(r"debian:\d+|python:3\.\d+-bookworm", image) for image in images), name


def test_actions_are_pinned_by_full_tag(workflow: Path) -> None:
    used = [step["uses"] for step in _steps(workflow) if "uses" in step]
    assert used
    assert not [name for name in used if not re.fullmatch(r"actions/[\w-]+@v\d+\.\d+\.\d+", name)]


def test_each_command_is_a_make_target(workflow: Path) -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text("utf-8"), re.M))
    commands = [step["run"] for step in _steps(workflow) if "run" in step]
    own = [command for command in commands if not any(re.fullmatch(one, command) for one in SET_UP)]
    assert {"make lint", "bash .ci/run", "make docs", "make release-check"} <= set(own)
    for command in own:
        program, *words = command.split()
        assert (program == "make" and set(words) <= targets) or (ROOT / words[0]).is_file(), command


def test_the_tests_run_on_every_supported_python() -> None:
    """debian:12 is Python 3.11.2: older than any 3.11 that version managers install."""
    images = _read(ROOT / ".github/workflows/ci.yml")["jobs"]["tests"]["strategy"]["matrix"]["image"]
    run = {"3.11" if image == "debian:12" else image.removeprefix("python:").partition("-")[0] for image in images}
    classifiers = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["classifiers"]
    assert run == {found[1] for text in classifiers if (found := re.search(r":: (3\.\d+)$", text))}
