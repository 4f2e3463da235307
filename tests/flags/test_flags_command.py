"""`mccprobe flags` as a user meets it: exit codes, one valid document, lines that name their source."""

from __future__ import annotations

import importlib
import json
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import click
import pytest
from jsonschema import Draft202012Validator

from mccprobe import cli
from mccprobe.cli import flags_cmd
from mccprobe.targets.flags.catalogue import load_catalogue
from mccprobe.targets.sim.toolchain import sim_toolchain

ROOT = Path(__file__).resolve().parents[2]
VALIDATOR = Draft202012Validator(json.loads((ROOT / "reports/flags.schema.json").read_text()))
Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, call_cli: Run) -> Run:
    """`run("show", "x")` is `mccprobe flags show x`: exit code, standard output, standard error."""
    monkeypatch.setitem(cli.COMMANDS, "flags", ("mccprobe.cli.flags_cmd", "flags", "flags"))
    return lambda *args: call_cli("flags", *args)


def _document(result: tuple[int, str, str]) -> dict[str, Any]:
    value: dict[str, Any] = json.loads(result[1])
    assert [f"{error.json_path}: {error.message}" for error in VALIDATOR.iter_errors(value)] == []
    return value


def test_list(run: Run) -> None:
    code, out, _ = run("list")
    catalogue = load_catalogue()
    assert code == 0
    assert out.splitlines()[-1] == f"{len(catalogue.flags)} flags, {len(catalogue.sets)} sets"
    assert all(name in out for name in (*catalogue.flags, *catalogue.sets))
    document = _document(run("list", "--json"))
    assert {one["name"] for one in document["flags"]} == set(catalogue.flags)
    assert {one["name"]: len(one["members"]) for one in document["sets"]} == {
        name: len(one.flags) for name, one in catalogue.sets.items()
    }


def test_list_is_filtered(run: Run) -> None:
    promises = _document(run("list", "--risk", "promise", "--for", "mcc", "--json"))
    names = {one["name"] for one in promises["flags"]}
    assert "mtgpu-tiny-offset-hint" in names and "FenceSetting" not in names and not promises["sets"]
    assert run("list", "--match", "no such thing at all")[0] == 1


def test_list_of_a_pass(run: Run) -> None:
    code, out, _ = run("list", "--pass", "machine-scheduler")
    assert code == 0 and "-enable-misched=false  switches it off and no other" in out
    document = _document(run("list", "--pass", "Machine Instruction Scheduler", "--json"))
    assert document["passes"][0]["neutralisers"] == ["-enable-misched=false"]
    code, out, _ = run("list", "--pass", "MTGPU PreRA Optimization")
    assert code == 1 and "no option is known that switches it off alone" in out
    code, _, err = run("list", "--pass", "machine-schedular")
    assert code == 2 and "nearest names: machine-scheduler" in err
    assert run("list", "--pass", "gvn", "--risk", "fault")[0] == 2


def test_a_value_is_told_with_its_flag(run: Run) -> None:
    code, _, err = run("show", "relaxed")
    assert code == 2 and "a value: FenceSetting=relaxed" in err


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("FenceSetting", ["-mllvm --FenceSetting=VALUE", "relaxed: correctness_8k max_err 12", "article section 17"]),
        ("-mtgpu-opt-level", ["contains    mtgpu-enable-const-calc; the rest of the bundle is not public"]),
        ("-misched", ["-mllvm -misched=VALUE", "seen in use: default, converge"]),
        ("num-dwords-of-load-in-mutation", ["needs       mtgpu-load-cluster-mutation"]),
        ("enable-misched", ["-enable-misched=false switches off Machine Instruction Scheduler"]),
        ("mtgpu_unroll_threshold", ["__attribute__((mtgpu_unroll_threshold(N))), on a kernel", "ineffective"]),
        ("mcpu", ["for llc alone"]),
        ("gemm-s4000", ["-mllvm --FenceSetting=mixed", "promise: offsets fit 32 bits"]),
    ],
)
def test_show(run: Run, name: str, said: list[str]) -> None:
    code, out, _ = run("show", name)
    assert code == 0
    for text in said:
        assert text in out
    assert _document(run("show", name, "--json"))["status"] in ("flag", "set")


def test_a_cited_page_can_be_opened(run: Run) -> None:
    """The page of public facts lies in no folder that an installed mccprobe has under its cited name."""
    assert "mccprobe help facts" in run("show", "mtgpu-enable-internal-regs-ra")[1]
    assert "help facts" not in run("show", "enable-misched")[1]


def test_a_sets_members_carry_only_their_own_values_risks(run: Run) -> None:
    assert "relaxed" not in run("show", "gemm-s4000")[1]


def test_mistakes_have_exit_code_2_and_one_document(run: Run, tmp_path: Path) -> None:
    code, out, err = run("show", "internal-reg-ra", "--json")
    assert code == 2 and "mtgpu-enable-internal-regs-ra" in err
    assert _document((code, out, err))["code"] == "unknown-flag"
    assert run("show", "cluster-mutation")[0] == 2
    assert run("show", "\x1b[31m")[2].isascii() and "\x1b" not in run("show", "\x1b[31m")[2]
    assert run("harvest", "--from", tmp_path / "absent")[0] == 4
    assert run("harvest", "--from", tmp_path, "--compiler", "clang-14")[0] == 2
    assert run("harvest", "--defaults", tmp_path)[0] == 2
    assert run("harvest", "--toolchain", "clang", "--compiler", "clang-14")[0] == 2
    assert run("probe", "--compiler", tmp_path / "absent")[0] == 3


def test_help_is_short_everywhere(run: Run) -> None:
    for command in ((), ("list",), ("show",), ("probe",), ("harvest",)):
        for option in ("--help", "-h"):
            code, out, _ = run(*command, option)
            assert code == 0 and "Example:" in out


def test_own_catalogues_count(run: Run, tmp_path: Path) -> None:
    own = tmp_path / "own.toml"
    own.write_text(
        'schema_version = 1\n[[flag]]\nname = "my-flag"\noption = "mllvm"\nspelling = "-my-flag"\n'
        'type = "bool"\npurpose = "p"\nsource = "s"\nconfidence = "S"\n'
    )
    assert run("show", "my-flag")[0] == 2
    assert run("show", "my-flag", "--catalogue", own)[0] == 0


@pytest.mark.toolchain("clang-14")
def test_probe(run: Run) -> None:
    code, out, _ = run("probe", "FenceSetting", "misched", "--toolchain", "sim", "--compiler", "clang-14")
    assert code == 1
    assert "[SIMULATED" in out and "* simulated" in out
    rows = {line.split()[0]: line.split()[1:3] for line in out.splitlines() if "accepted" in line}
    assert rows == {"FenceSetting": ["accepted", "refused"], "misched": ["accepted", "accepted"]}
    code, out, err = run("probe", "enable-newgvn", "--compiler", "clang-14", "--json")
    assert code == 0
    (found,) = _document((code, out, err))["compilers"]
    assert not found["simulated"] and found["answers"][0]["state"] == "accepted"


@pytest.mark.toolchain("clang-14")
def test_probe_through_mccs_command_line(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """A fake of mcc: with an SDK behind it that takes device code, and with one that does not."""
    fake = ROOT / "tests/fakes/mcc_ok"
    monkeypatch.setenv("MCCPROBE_CACHE", str(ROOT / ".test-cache"))
    code, out, err = run("probe", "FenceSetting", "--mcc", fake, "--json")
    assert code == 1
    (found,) = _document((code, out, err))["compilers"]
    assert found["answers"][0]["state"] == "unknown" and "--musa-device-only" in found["answers"][0]["reason"]
    sdk = Path(sim_toolchain(ROOT / ".test-cache").driver[0]).parents[1]
    monkeypatch.setenv("FAKE_SDK", str(sdk))
    assert run("probe", "FenceSetting", "--mcc", fake)[0] == 0
    found = _document(run("harvest", "--mcc", fake, "--match", "FenceSetting", "--json"))
    assert found["compiler"]["toolchain"] == "mcc" and found["options"][0]["default"] == "strict"


@pytest.mark.toolchain("clang-14")
def test_a_stand_in_is_not_asked_unless_it_is_named(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    code, out, err = run("probe", "misched", "--json")
    (found,) = _document((code, out, err))["compilers"]
    assert found["toolchain"] == "clang" and "asking clang; others with --toolchain" in err


@pytest.mark.toolchain("clang-14")
def test_harvest(run: Run, tmp_path: Path) -> None:
    out = tmp_path / "found.toml"
    code, _, err = run("harvest", "--compiler", "clang-14", "--match", "misched", "-o", out)
    assert code == 0 and "in the catalogue already" in err
    names = {one["name"] for one in tomllib.loads(out.read_text())["flag"]}
    assert "misched-topdown" in names and "enable-misched" not in names
    assert run("show", "misched-topdown", "--catalogue", out)[0] == 0
    document = _document(run("harvest", "--compiler", "clang-14", "--match", "misched", "--json"))
    values = {one["name"]: one for one in document["options"]}
    assert values["enable-misched"]["in_catalogue"] and values["misched"]["values"]["converge"]
    assert document["total"] > 2000 and not document["compiler"]["simulated"]
    code, out_text, _ = run("harvest", "--toolchain", "sim", "--match", "mtgpu-if-convert", "--all")
    assert code == 0 and "SIMULATED" in tomllib.loads(out_text)["flag"][0]["source"]
    assert run("harvest", "--compiler", "clang-14", "--match", "no such thing at all")[0] == 1


def test_harvest_of_a_saved_text(run: Run, tmp_path: Path) -> None:
    text, told = tmp_path / "help.txt", tmp_path / "defaults.txt"
    text.write_bytes(b"  --mtgpu-x=<uint>  - \xff an \x1b[1moption\n  --no\x1b  - bad\n")
    told.write_text("  --mtgpu-x = 3 (default: 2)\n")
    result = run("harvest", "--from", text, "--defaults", told, "--json")
    document = _document(result)
    assert document["compiler"] is None and document["options"][0]["default"] == "2"
    assert len(document["unread"]) == 1 and "1 line not understood" in result[2]
    written = tomllib.loads(run("harvest", "--from", text, "--for", "mcc")[1])["flag"][0]
    assert (written["type"], written["compilers"], written["default"]) == ("int", ["mcc"], "unknown")


def test_later_subcommands_are_imported_when_they_are_called(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    module = ModuleType("mccprobe.cli.not_there_yet")
    module.__dict__["seek"] = click.Command("seek", callback=lambda: 7)
    monkeypatch.setitem(flags_cmd.LATER, "seek", (module.__name__, "seek", "seeks"))
    code, out, _ = run("--help")
    assert code == 0 and "seeks" in out
    with pytest.raises(ModuleNotFoundError):
        importlib.import_module(module.__name__)
    monkeypatch.setitem(sys.modules, module.__name__, module)
    assert run("seek")[0] == 7
