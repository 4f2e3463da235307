"""Harvested options: the shapes of the help, hostile text, and clang's own answer as the judge."""

from __future__ import annotations

import json
import os
import re
import subprocess
import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from mccprobe.base.errors import ToolchainError
from mccprobe.targets.clang.toolchain import ClangToolchain
from mccprobe.targets.flags.ask import ask_options
from mccprobe.targets.flags.catalogue import load_catalogue
from mccprobe.targets.flags.harvest import MAX_DESCRIPTION, Harvest, HarvestedOption, harvest, read_help
from mccprobe.targets.flags.write import catalogue_text

ROOT = Path(__file__).resolve().parents[2]
SCHEMA = json.loads((ROOT / "reports/flag-catalogue.schema.json").read_text())

# invented options in the shapes of clang 13 to 19
HELP = """USAGE: clang (LLVM option parsing) [options]

OPTIONS:

Color Options:

  --color                        - Use colors in output (default=autodetect)

General options:

  -W                             - Alias for --no-warn
  --a-switch                     - Runs it
  --sections=<all | <list (file)> | none> - Emit sections
  --count=<uint>                 - How many
  --weight=<number>              -\x20
  --limit=<N>                    - N of them
  --names=<string>               - Types of branches (plus separated):
                                    jcc      conditional jumps
                                    jmp      direct jumps
  --native[=<string>]            - Functions to replace, or all
  IT block support
      --default-it               - Generate IT block
      --restrict-it              - Disallow IT blocks
  --outliner                     - Enable the outliner
  --outliner=<value>             - Enable the outliner
    =always                      -   Run on all
    =never                       -   Disable all outlining
    =<empty>                     -   As without a value
  --open=<value>                 - Set by a parser of its own
  -counter                       - Comma separated list of counters
    =visits                      -   Controls visits
Polly Options:
Configure the polly loop optimizer

  --polly-context=<isl parameter set> - Additional constraints
  --help                         - Display available options
  -o <filename>                  - Output filename
"""
SETTINGS = """  --color                     = 0        (default: 0)
  --a-switch                  = 1        (default: 0)
  --sections                  = none     (default: none)
  --count                     = 8        (default: 4294967295)
  --weight                    = 7.5e-01  (default: 7.500000e-01)
  --limit                     = -1       (default: -1)
  --names                     =          (default: *no default*)
    --outliner                = *unknown option value*
    -                         = default-it (default: default-it)
  --polly-context             = a (default: b) (default: c (d))
  --help                      = *cannot print option value*
"""


def _option(name: str, text: str = HELP, told: str = SETTINGS) -> HarvestedOption:
    found = read_help(text, told).find(name)
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("name", "kind", "default"),
    [
        ("color", "bool", "0"),
        ("W", "switch", None),
        ("a-switch", "bool", "0"),  # the default, not what was set
        ("sections", "string", "none"),
        ("count", "uint", "4294967295"),
        ("weight", "number", "7.500000e-01"),
        ("limit", "int", "-1"),
        ("names", "string", None),
        ("native", "string", None),
        ("default-it", "switch", None),
        ("outliner", "enum", None),
        ("open", "unknown", None),
        ("counter", "string", None),
        ("polly-context", "string", "c (d)"),
        ("help", "switch", None),
        ("o", "string", None),
    ],
)
def test_kinds_and_defaults(name: str, kind: str, default: str | None) -> None:
    found = _option(name)
    assert (found.value_kind, found.default) == (kind, default)


def test_shapes() -> None:
    whole = read_help(HELP, SETTINGS)
    assert len(whole.options) == 17 and whole.unread == ()
    assert whole.options == harvest(HELP, SETTINGS)
    outliner = _option("outliner")
    assert outliner.value_optional and outliner.values == {
        "always": "Run on all",
        "never": "Disable all outlining",
        "": "As without a value",
    }
    assert outliner.description == "Enable the outliner"
    assert _option("native").value_optional and not _option("count").value_optional
    assert _option("default-it").group == "IT block support" and _option("outliner").group == ""
    assert _option("names").description.endswith("jcc      conditional jumps jmp      direct jumps")
    assert _option("sections").value_name == "all | <list (file)> | none"
    assert _option("weight").description == "" and _option("o").value_name == "filename"
    assert _option("counter").spelling == "-counter" and _option("counter").values == {"visits": "Controls visits"}


def test_without_settings_no_default_is_invented() -> None:
    assert {one.default for one in harvest(HELP)} == {None}
    assert _option("a-switch", told="").value_kind == "bool"
    assert _option("limit", told="").value_kind == "string"  # <N> alone does not say number


def test_the_same_help_twice_is_the_same_help() -> None:
    """A driver with a device and a host compile prints it twice."""
    assert harvest(HELP + "\n" + HELP, SETTINGS * 2) == harvest(HELP, SETTINGS)


def test_hostile_lines_are_counted_and_bounded() -> None:
    text = "\n".join(
        [
            "  --" + "n" * 5000 + "  - a name without end",
            "  --esc\x1b[31m=<uint>  - coloured",
            "  --é  - no ASCII",
            "  --ok  - \x1b]0;title\x07 and \0 and " + "d" * 9000,
            "    =value\x1b[0m  -   \x1b[2J",
            "  ---  - only dashes",
            "  --half",
        ]
    )
    found = read_help(text, "  --ok = \x1b[1m (default: \x1b[1m)\n")
    assert [one.name for one in found.options] == ["ok"]
    assert len(found.unread) == 5
    shown = json.dumps([vars(one) for one in found.options] + list(found.unread), ensure_ascii=False)
    assert shown.isprintable() and len(found.options[0].description) <= MAX_DESCRIPTION


@given(st.text(st.characters(codec="utf-8")), st.text())
@example("  --x=<" + "> -" * 1000, "")
@example("  --x" + "=<>" * 1300, "  --x = " + "(default: " * 400)
@settings(max_examples=60)
def test_any_text_is_read(text: str, told: str) -> None:
    for one in harvest(text, told):
        assert re.fullmatch(r"[A-Za-z0-9][\w.-]*", one.name, re.ASCII)
        assert one.description.isprintable() and all(value.isprintable() for value in one.values)


lines = st.sampled_from(HELP.splitlines()) | st.text(max_size=40)


@given(st.lists(lines).map("\n".join), st.lists(st.sampled_from(SETTINGS.splitlines())).map("\n".join))
@settings(max_examples=60)
def test_what_was_harvested_is_a_catalogue(text: str, told: str) -> None:
    toml = tomllib.loads(catalogue_text(harvest(text, told), source='a "source"\\', compiler="clang"))
    assert list(Draft202012Validator(SCHEMA).iter_errors(toml)) == []


# --- clang itself --------------------------------------------------------------------------------


def _printed(clang: str, question: str) -> str:
    command = [clang, "-x", "c++", "-c", os.devnull, "-o", os.devnull, "-mllvm", question]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


@pytest.mark.toolchain
@pytest.mark.parametrize("version", [13, 14, 15, 16, 19])
def test_every_default_of_the_compiler_is_taken_back_by_it(compiler: Callable[[int], str], version: int) -> None:
    """Name, kind and default of all options at once: the compiler accepts its own words in one compile."""
    clang = compiler(version)
    found = ask_options(ClangToolchain([clang]))
    given_back = []
    for one in found.options:
        known = one.value_kind in ("bool", "int", "uint", "number") or one.default in one.values
        if known and one.default and not one.name.startswith(("print-options", "print-all-options")):
            given_back += ["-mllvm", f"{one.spelling}={one.default}"]
    command = [clang, "-x", "c++", "-c", os.devnull, "-o", os.devnull, *given_back]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr[-2000:]
    assert len(given_back) > 2 * 1500
    assert not found.unread


@pytest.mark.toolchain
def test_counts_and_defaults_are_those_of_clang_14(compiler: Callable[[int], str]) -> None:
    clang = compiler(14)
    found = ask_options(ClangToolchain([clang]))
    names = [one.name for one in found.options]
    told = _printed(clang, "-print-all-options").splitlines()
    # plain splitting as the second reader: columns, not patterns
    settings_ = {line.split()[0].lstrip("-"): line for line in told if line.split()[0].lstrip("-")}
    assert set(settings_) <= set(names)
    for name, line in settings_.items():
        default = line.split("(default: ", 1)[1][:-1] if "(default: " in line else "*none*"
        expected = None if not default or default.startswith("*") else default
        assert (found.find(name) or pytest.fail(name)).default == expected, line
    listed = ask_options(ClangToolchain([clang]), "-help-list-hidden")
    assert {one.name for one in listed.options} == set(names)
    assert len(names) == len(set(names)) > 2000


@pytest.mark.toolchain
def test_options_that_are_known_of_clang_14(compiler: Callable[[int], str]) -> None:
    found = ask_options(ClangToolchain([compiler(14)]))
    misched = found.find("misched")
    assert misched and misched.value_kind == "enum" and misched.default == "default"
    assert {"default", "converge", "ilpmax", "ilpmin"} <= set(misched.values)
    for name, kind, default in [
        ("enable-misched", "bool", "1"),
        ("enable-newgvn", "bool", "0"),
        ("inline-threshold", "int", "225"),
        ("opt-bisect-limit", "int", "2147483647"),
        ("regalloc", "enum", "default"),
        ("enable-machine-outliner", "enum", None),
        ("regbankselect-fast", "switch", None),
    ]:
        one = found.find(name)
        assert one and (one.value_kind, one.default) == (kind, default)
    # every upstream entry of the catalogue is an option of clang 14, and the enums agree
    for flag in load_catalogue().flags.values():
        one = found.find(flag.name)
        if flag.option == "mllvm" and "clang-14" in flag.source:
            assert one is not None, flag.name
            if flag.type == "enum":
                assert set(flag.values) <= set(one.values)


@pytest.mark.toolchain
def test_a_harvest_is_a_catalogue_that_loads(compiler: Callable[[int], str], tmp_path: Path) -> None:
    found = ask_options(ClangToolchain([compiler(14)]))
    path = tmp_path / "clang-14.toml"
    path.write_text(catalogue_text(found.options, source="hidden help", compiler="clang"))
    loaded = load_catalogue([path])
    assert set(loaded.flags) >= {one.name for one in found.options}
    assert loaded.resolve("stress-regalloc=4").argv == ("-mllvm", "--stress-regalloc=4")
    assert loaded.flags["inline-threshold"].default == "225"
    assert list(Draft202012Validator(SCHEMA).iter_errors(tomllib.loads(path.read_text()))) == []


def test_a_compiler_that_prints_no_options_is_told(tmp_path: Path) -> None:
    silent = tmp_path / "cc"
    silent.write_text("#!/bin/sh\necho hello\n")
    silent.chmod(0o755)
    with pytest.raises(ToolchainError, match="prints no options for -mllvm -help-hidden"):
        ask_options(ClangToolchain([str(silent)]))
    silent.write_text("#!/bin/sh\necho 'cc: error: no such thing' >&2\nexit 1\n")
    with pytest.raises(ToolchainError, match="no such thing"):
        ask_options(ClangToolchain([str(silent)]))


def test_an_empty_harvest_finds_nothing() -> None:
    assert Harvest(()).find("x") is None
