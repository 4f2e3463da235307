"""`mccprobe doctor` as a user meets it: the stand-in is never taken for mcc, exit codes, the list for an issue."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from mccprobe.doctor.examine import Examination, Request, examine

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
    device_code = ("mccprobe.objects.model", "mccprobe.objects.isa")
    of_the_device = [one for one in test["assumptions"] if one["where"][0].startswith(device_code)]
    assert of_the_device
    assert {one["state"] for one in of_the_device} == {"unchecked"}
    assert next(one for one in document["toolchains"] if one["name"] == "mcc")["costs"]


@pytest.fixture
def shown(
    call_cli: Callable[..., tuple[int, str, str]], monkeypatch: pytest.MonkeyPatch
) -> Callable[..., tuple[int, str, str]]:
    """`shown("--markdown")`: as `doctor` shows it, in this process; a question is examined once for all its forms."""
    kept: list[tuple[Request, Examination]] = []

    def once(request: Request, version: str, **more: Any) -> Examination:
        if not any(request == known for known, _ in kept):
            kept.append((request, examine(request, version, **more)))
        return next(found for known, found in kept if request == known)

    monkeypatch.setattr("mccprobe.doctor.examine.examine", once)
    return lambda *options: call_cli("doctor", *options)


@pytest.mark.toolchain("clang-14")
def test_text_and_list_say_what_it_is(shown: Callable[..., tuple[int, str, str]]) -> None:
    code, text, told = shown()
    assert code == 0, told
    assert "SIMULATED: confirmed on a stand-in says nothing of mcc" in text
    assert "0 contradicted" in text
    assert "--markdown" in told
    _, pasted, _ = shown("--markdown")
    assert "**SIMULATED" in pasted
    assert "| yes | `bisect-limit`" in pasted
    rows = [line for line in pasted.splitlines() if line.startswith("|")]
    assert {line.replace("\\|", "").count("|") for line in rows} == {5}, "every row has four cells"


@pytest.mark.toolchain("clang-14")
def test_what_is_wrong_with_an_mcc_is_exit_1_and_private_names_stay_out(
    shown: Callable[..., tuple[int, str, str]],
    broken: Callable[..., Path],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "home" / "agatha"))
    monkeypatch.setenv("USER", "agathamiller")
    version = 'version_text() { echo "clang version 14.0.6"; echo "mcc version 3.1.0 of agathamiller"; }'
    # without -x musa no flag can be asked, which saves a hundred compiles
    mcc = broken(f'{version}\ndriver_call() {{ refuse musa "error: language not recognized:" "$@"; }}')
    code, answer, told = shown("--json", "--mcc", mcc)
    assert code == 1, told
    document = json.loads(answer)
    jsonschema.validate(document, SCHEMA)
    test = document["self_test"]
    assert (test["simulated"], test["toolchain"]) == (False, "mcc")
    states = {one["id"]: one["state"] for one in test["assumptions"]}
    assert (states["device-elf"], states["bisect-limit"]) == ("contradicted", "confirmed")
    assert (states["language-musa"], states["shipped-flags"]) == ("contradicted", "unchecked")
    code, pasted, told = shown("--markdown", "--mcc", mcc)
    assert code == 1, told
    assert "agatha" not in pasted
    assert "of USER" in pasted
    assert "| **no** | `device-elf`" in pasted


def test_nothing_to_ask_is_exit_3(run_cli: RunCli, tmp_path: Path) -> None:
    empty = tmp_path / "bin"
    empty.mkdir()
    document = examined(run_cli("doctor", "--json", env={"PATH": str(empty)}), 3)
    assert document["self_test"]["assumptions"] == []
    assert "clang-14" in document["self_test"]["problem"]
    assert not any(part["found"] for part in document["parts"] if part["kind"] == "program")
    assert "apt-get install clang-14" in run_cli("doctor", env={"PATH": str(empty)}).stdout


def test_mcc_is_asked_for_and_not_there(run_cli: RunCli, tmp_path: Path) -> None:
    # os.defpath has /bin in front: tools by another name, and so a stand-in SDK of its own to build
    document = examined(run_cli("doctor", "--json", "--toolchain", "mcc", env={"PATH": "/usr/bin:/bin"}), 3)
    assert "mcc" in document["self_test"]["problem"]
    wrong = run_cli("doctor", "--json", "--mcc", tmp_path / "gone")
    assert examined(wrong, 3)["status"] == "error"


def test_json_and_markdown_do_not_go_together(run_cli: RunCli) -> None:
    assert run_cli("doctor", "--json", "--markdown").code == 2
