"""`mccprobe doctor` as a user meets it: the stand-in is never taken for mcc, exit codes, the list for an issue."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonschema
import pytest

RunCli = Callable[..., Any]
SCHEMA = json.loads((Path(__file__).resolve().parents[2] / "reports/doctor.schema.json").read_text("utf-8"))
pytestmark = pytest.mark.clean


def examined(run: Any, code: int) -> dict[str, Any]:
    assert run.code == code, run
    document: dict[str, Any] = json.loads(run.stdout)
    jsonschema.validate(document, SCHEMA)
    return document


@pytest.mark.toolchain("clang-14")
def test_without_mcc_the_stand_in_is_asked_and_marked(run_cli: RunCli) -> None:
    document = examined(run_cli("doctor", "--json"), 0)
    test = document["self_test"]
    assert test["simulated"] is True
    assert "no mcc is here" in test["told"]
    assert test["counts"]["contradicted"] == 0
    device_code = ("mccprobe.model", "mccprobe.isa")
    of_the_device = [one for one in test["assumptions"] if one["where"][0].startswith(device_code)]
    assert of_the_device
    assert {one["state"] for one in of_the_device} == {"unchecked"}
    assert next(one for one in document["toolchains"] if one["name"] == "mcc")["costs"]


@pytest.mark.toolchain("clang-14")
def test_text_and_list_say_what_it_is(run_cli: RunCli) -> None:
    text = run_cli("doctor")
    assert text.code == 0, text
    assert "SIMULATED: confirmed on a stand-in says nothing of mcc" in text.stdout
    assert "0 contradicted" in text.stdout
    assert "--markdown" in text.stderr
    pasted = run_cli("doctor", "--markdown")
    assert "**SIMULATED" in pasted.stdout
    assert "| yes | `bisect-limit`" in pasted.stdout
    rows = [line for line in pasted.stdout.splitlines() if line.startswith("|")]
    assert {line.replace("\\|", "").count("|") for line in rows} == {5}, "every row has four cells"


@pytest.mark.toolchain("clang-14")
def test_what_is_wrong_with_an_mcc_is_exit_1_and_private_names_stay_out(
    run_cli: RunCli, broken: Callable[..., Path], sdk: Path, tmp_path: Path
) -> None:
    home = tmp_path / "home" / "agatha"
    version = 'version_text() { echo "clang version 14.0.6"; echo "mcc version 3.1.0 of agathamiller"; }'
    # without -x musa no flag can be asked, which saves a hundred compiles
    mcc = broken(f'{version}\ndriver_call() {{ refuse musa "error: language not recognized:" "$@"; }}')
    env = {"FAKE_SDK": str(sdk), "HOME": str(home), "USER": "agathamiller"}
    document = examined(run_cli("doctor", "--json", "--mcc", mcc, env=env), 1)
    test = document["self_test"]
    assert (test["simulated"], test["toolchain"]) == (False, "mcc")
    states = {one["id"]: one["state"] for one in test["assumptions"]}
    assert (states["device-elf"], states["bisect-limit"]) == ("contradicted", "confirmed")
    assert (states["language-musa"], states["shipped-flags"]) == ("contradicted", "unchecked")
    pasted = run_cli("doctor", "--markdown", "--mcc", mcc, env=env)
    assert pasted.code == 1, pasted
    assert "agatha" not in pasted.stdout
    assert "of USER" in pasted.stdout
    assert "| **no** | `device-elf`" in pasted.stdout


def test_nothing_to_ask_is_exit_3(run_cli: RunCli, tmp_path: Path) -> None:
    empty = tmp_path / "bin"
    empty.mkdir()
    document = examined(run_cli("doctor", "--json", env={"PATH": str(empty)}), 3)
    assert document["self_test"]["assumptions"] == []
    assert "clang-14" in document["self_test"]["problem"]
    assert not any(part["found"] for part in document["parts"] if part["kind"] == "program")
    assert "apt-get install clang-14" in run_cli("doctor", env={"PATH": str(empty)}).stdout


def test_mcc_is_asked_for_and_not_there(run_cli: RunCli, tmp_path: Path) -> None:
    document = examined(run_cli("doctor", "--json", "--toolchain", "mcc", env={"PATH": os.defpath}), 3)
    assert "mcc" in document["self_test"]["problem"]
    wrong = run_cli("doctor", "--json", "--mcc", tmp_path / "gone")
    assert examined(wrong, 3)["status"] == "error"


def test_json_and_markdown_do_not_go_together(run_cli: RunCli) -> None:
    assert run_cli("doctor", "--json", "--markdown").code == 2
