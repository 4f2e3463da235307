"""Whole builds, unedited, through the installed wrapper with the stand-in SDK: CMake and make."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from mccprobe.build.wrapper.flagset import wrapper_sets
from mccprobe.build.wrapper.install import install
from mccprobe.targets.sim import sim_sdk

pytestmark = pytest.mark.toolchain("clang-14")

PROJECT = Path(__file__).parent / "project"
# changes the stand-in's objects: the seven flags of the article are accepted by it and do nothing
WITH_EFFECT = "-mllvm -misched=ilpmax"
SEVEN = [word for one in wrapper_sets("gemm-s4000").chosen.additions for word in one.words]


class Build:
    """A copy of the project, and the environment with the wrapper in front."""

    def __init__(self, folder: Path) -> None:
        self.sdk = sim_sdk(Path(os.environ["MCCPROBE_CACHE"]))
        self.folder = Path(shutil.copytree(PROJECT, folder / "project"))
        self.log = folder / "log.jsonl"
        self.wrapper = install(folder / "prefix", self.sdk.mcc, wrapper_sets("gemm-s4000")).path
        self.env = {
            **os.environ,
            "PATH": f"{self.wrapper.parent}{os.pathsep}{os.environ['PATH']}",
            "LIBRARY_PATH": str(self.sdk.root / "lib"),
            "MCCPROBE_LOG": str(self.log),
        }

    def run(self, *command: str, code: int = 0, **env: str) -> str:
        done = subprocess.run(
            command, cwd=self.folder, env={**self.env, **env}, capture_output=True, text=True, check=False, timeout=300
        )
        assert done.returncode == code, f"{command}\n{done.stdout}\n{done.stderr}"
        return done.stdout + done.stderr

    def lines(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.log.read_text(encoding="ascii").splitlines()]

    def unchanged_sources(self) -> bool:
        return all(
            (self.folder / path.relative_to(PROJECT)).read_bytes() == path.read_bytes()
            for path in PROJECT.rglob("*")
            if path.is_file()
        )


@pytest.fixture
def build(tmp_path: Path) -> Build:
    return Build(tmp_path)


def check_log(lines: list[dict[str, Any]]) -> None:
    """Compiles got the set, everything else went through as it was."""
    assert {"compile", "link"} <= {line["kind"] for line in lines}
    for line in lines:
        added = line["after"][1 : len(line["after"]) - len(line["before"]) + 1]
        assert added == (SEVEN if line["kind"] in ("compile", "compile and link") else []), line
        assert line["after"][len(added) + 1 :] == line["before"][1:]


def test_make(build: Build) -> None:
    for name, env in (("plain", {"MCCPROBE_WRAPPER": "off"}), ("set", {}), ("more", {"MCCPROBE_FLAGS": WITH_EFFECT})):
        (build.folder / name).mkdir()
        build.log.unlink(missing_ok=True)
        build.run("make", f"BUILD={name}", **env)
        assert build.run(f"./{name}/app") == "a b's $title 5.00\n"
        if name == "plain":
            assert not build.log.exists()
        if name == "set":
            check_log(build.lines())
            assert len(build.lines()) == 3
    objects = [(build.folder / name / "saxpy.o").read_bytes() for name in ("plain", "set", "more")]
    assert objects[0] == objects[1], "the stand-in takes the seven flags and does nothing by them"
    assert objects[2] != objects[0], "a flag with an effect arrives in the object"
    assert build.unchanged_sources()


def test_make_with_a_flag_of_its_own_is_not_broken(build: Build, tmp_path: Path) -> None:
    """The article's four lines give --FenceSetting twice here, which clang 14 refuses."""
    own = "SAXPY_FLAGS=-mllvm -FenceSetting=strict"
    (build.folder / "build").mkdir()
    article = tmp_path / "article/mcc"
    article.parent.mkdir()
    article.write_text('#!/bin/bash\nexec "{}" {} "$@"\n'.format(build.sdk.mcc, " ".join(SEVEN)))
    article.chmod(0o755)
    said = build.run("make", f"MCC={article}", own, "build/saxpy.o", code=2)
    assert "may only occur zero or one times" in said
    build.run("make", own)
    (line,) = [line for line in build.lines() if line["before"][-1].endswith("saxpy.o")]
    assert line["kept"] == ["FenceSetting"]
    assert "--FenceSetting=mixed" not in line["after"] and "-FenceSetting=strict" in line["after"]


@pytest.mark.parametrize("options", [[], ["-DCMAKE_CXX_USE_RESPONSE_FILE_FOR_OBJECTS=1"]], ids=["", "response files"])
def test_cmake(build: Build, options: list[str]) -> None:
    if shutil.which("cmake") is None:
        pytest.skip("cmake is not here")
    said = build.run("cmake", "-S", ".", "-B", "build", "-G", "Unix Makefiles", "-DCMAKE_CXX_COMPILER=mcc", *options)
    assert "The CXX compiler identification is Clang 14" in said
    configured = len(build.lines())
    build.run("cmake", "--build", "build", "-j2")
    assert "a b's $title" in build.run("./build/app")
    made = build.lines()[configured:]
    check_log(made)
    assert [line["kind"] for line in sorted(made, key=lambda line: line["kind"])] == ["compile", "compile", "link"]
    assert any(word.startswith("@") for line in made for word in line["before"]) is bool(options)
    assert build.unchanged_sources()
    cache = (build.folder / "build/CMakeCache.txt").read_text().splitlines()
    assert any(line.startswith("CMAKE_CXX_COMPILER:") and line.endswith(f"={build.wrapper}") for line in cache)
