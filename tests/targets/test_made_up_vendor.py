"""A vendor is one folder: a made-up one is listed, examined, bisected and reported without a changed line elsewhere."""

from __future__ import annotations

import json
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from mccprobe.base.errors import BadTarget
from mccprobe.base.process import RunSpec, run
from mccprobe.build.job import OUTPUT, CompileJob, compile_once
from mccprobe.targets import registry
from mccprobe.targets.protocol import Wanted

VENDOR = Path(__file__).parent / "tern"
Cli = Callable[..., tuple[int, str, str]]


def schema_of(root: Path, name: str) -> Any:
    return json.loads((root / "reports" / f"{name}.schema.json").read_text("utf-8"))


@pytest.fixture(autouse=True)
def tern(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MCCPROBE_TARGETS", str(VENDOR))


def test_the_vendor_is_small() -> None:
    assert sum(len(path.read_text("utf-8").splitlines()) for path in VENDOR.iterdir() if path.is_file()) <= 200


def test_toolchains_lists_it(call_cli: Cli) -> None:
    code, out, _ = call_cli("toolchains", "--json")
    found = {one["name"]: one for one in json.loads(out)["toolchains"]}
    assert code == 0
    assert found["tern"]["found"] and found["tern"]["version"] == "ternc 0.9"
    assert found["tern"]["capabilities"]["bisect"] is True


def test_help_and_choices_name_it(call_cli: Cli) -> None:
    assert "a made-up compiler of sums" in call_cli("help", "toolchains")[1]
    assert "|tern]" in call_cli("bisect", "--help")[1]
    assert "|tern" not in call_cli("check", "--help")[1]  # it does not offer that


def test_doctor_examines_it(call_cli: Cli, root: Path) -> None:
    code, out, _ = call_cli("doctor", "--toolchain", "tern", "--json")
    document = json.loads(out)
    jsonschema.validate(document, schema_of(root, "doctor"))
    (asked,) = document["self_test"]["assumptions"]
    assert code == 0
    assert (document["self_test"]["toolchain"], asked["id"], asked["state"]) == ("tern", "limit", "confirmed")
    assert "#1 ran tidy@one; #2 held fold@one" in asked["evidence"]


def test_bisect_finds_the_planted_fault(call_cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "sums.c").write_text("one = 2 * 3 + 1\narea = 6 * 7 + 1\nlast = 8\n", "utf-8")
    options = ("--toolchain", "tern", "--reference=-O0", "-o", "run", "--json")
    code, out, err = call_cli("bisect", "sums.c", *options, "--", "-O9")
    document = json.loads(out)
    assert (code, document["status"]) == (0, "found"), (out, err)
    culprit = document["culprit"]
    assert (culprit["pass"], culprit["function"], culprit["execution"], culprit["total"]) == ("fold", "area", 5, 9)
    assert document["confirmation"]["option"] == "--no-fold"
    bad = document["reproduce"]["bad"][0]
    assert "--stop-after=5" in bad and "-O9" in bad


def test_without_a_counter_nothing_is_bisected(call_cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "sums.c").write_text("area = 6 * 7\n", "utf-8")
    toolchain = registry.target("tern").find(Wanted(tmp_path)).toolchain
    monkeypatch.setattr(type(toolchain), "counter", None)
    code, _, err = call_cli("bisect", "sums.c", "--toolchain", "tern", "--reference=-O0", "--", "-O9")
    assert code == 3 and "tern cannot count pass executions" in err


def test_a_compile_takes_its_counter_to_another_process(tmp_path: Path) -> None:
    toolchain = registry.target("tern").find(Wanted(tmp_path)).toolchain
    counter = toolchain.counter
    assert counter is not None
    (tmp_path / "sums.c").write_text("area = 6 * 7\n", "utf-8")
    argv = toolchain.compile_argv(["-O9", counter.spelled(2)], str(tmp_path / "sums.c"), OUTPUT)
    env = toolchain.environment(tmp_path)
    job = CompileJob(argv, env, tmp_path, tmp_path, 60.0, limit=2, around=2, counter=counter)
    outcome = compile_once(pickle.loads(pickle.dumps(job)))
    assert outcome.object is not None, outcome
    assert (outcome.log.total, outcome.log.ran, outcome.log.function) == (3, 2, "area")
    assert outcome.log.at is not None and outcome.log.at.name == "fold"


def test_report_reads_its_object(call_cli: Cli, tmp_path: Path, root: Path) -> None:
    source, made = tmp_path / "sums.c", tmp_path / "sums.o"
    source.write_text("area = 6 * 7 + 1\n", "utf-8")
    assert run(RunSpec([str(VENDOR / "ternc"), "-O9", "-c", str(source), "-o", str(made)])).ok
    code, out, _ = call_cli("report", made, "--json")
    document = json.loads(out)
    jsonschema.validate(document, schema_of(root, "report"))
    (kernel,) = document["kernels"]
    assert code == 0
    assert (kernel["name"], kernel["source_format"], kernel["registers"]) == ("area", "tern", {"vector": 2})
    assert "area" in call_cli("report", made)[1]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (None, "no target.py in it"),
        ("TARGET = 1", "TARGET is not a mccprobe.targets.protocol.Target"),
        ("raise ValueError('broken')", "ValueError: broken"),
        ("", "AttributeError"),
        ("from mccprobe.targets.clang.target import TARGET", "the name clang is taken"),
    ],
)
def test_a_folder_that_is_no_target(
    text: str | None, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call_cli: Cli
) -> None:
    if text is not None:
        (tmp_path / "target.py").write_text(text, "utf-8")
    monkeypatch.setenv("MCCPROBE_TARGETS", str(tmp_path))
    with pytest.raises(BadTarget, match="MCCPROBE_TARGETS"):
        registry.targets()
    code, _, err = call_cli("toolchains")
    assert code == 2 and said in err and str(tmp_path) in err
