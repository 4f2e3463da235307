"""The table: each assumption names code that exists, and has a probe or says why it has none."""

from __future__ import annotations

import importlib
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from mccprobe import cli
from mccprobe.doctor import selftest
from mccprobe.doctor.assumptions import Assumption, assumptions
from mccprobe.doctor.probes import PROBES
from mccprobe.doctor.surroundings import parts_table

TABLE = assumptions()
PACKAGE = Path(selftest.__file__).parents[1]
OF_THE_DEVICE = (
    "mccprobe.objects.isa",
    "mccprobe.objects.model",
    "mccprobe.tuning.plan",
    *(f"mccprobe.objects.binary.{name}" for name in ("elf", "metadata", "notes")),
)


@pytest.mark.parametrize("one", TABLE, ids=lambda one: one.id)
def test_an_assumption_is_whole(one: Assumption) -> None:
    assert one.statement and one.source and one.breaks
    assert one.standing in ("S", "I", "A")
    assert bool(one.probe) != bool(one.unchecked), "a probe, or a reason why there is none"
    assert one.where
    for place in one.where:
        module, _, path = place.partition(":")
        found: object = importlib.import_module(module)
        for name in filter(None, path.split(".")):
            assert hasattr(found, name), f"{place} does not exist"
            found = getattr(found, name)


def test_ids_and_probes_belong_to_one_another() -> None:
    ids = [one.id for one in TABLE]
    assert len(ids) == len(set(ids))
    assert {one.probe for one in TABLE if one.probe} == set(PROBES), "a probe without a line, or a line without one"


def test_every_probe_that_the_stand_in_answers_needs_no_device_code() -> None:
    """What is said of MTGPU's own code, metadata or device must never be confirmed by x86-64."""
    of_the_device = {one.id for one in TABLE if any(place.startswith(OF_THE_DEVICE) for place in one.where)}
    assert not {one.id for one in TABLE if one.stand_in} & of_the_device


def test_public_facts_that_the_code_cites_are_in_the_table() -> None:
    """A module that cites the reference for a constant of mcc or MTGPU is one that some assumption names."""
    named = {place.partition(":")[0] for one in TABLE for place in one.where}
    citing = set()
    for path in PACKAGE.rglob("*.py"):
        module = "mccprobe." + path.relative_to(PACKAGE).with_suffix("").as_posix().replace("/", ".")
        # cli holds no constant: it says where the page is
        if "mtgpu.md" in path.read_text("utf-8") and not module.startswith(("mccprobe.doctor", "mccprobe.cli")):
            citing.add(module)
    # told of a bundle of flags, whose members no compile shows; and the name of the page in a listing
    elsewhere = {"mccprobe.build.wrapper.flagset", "mccprobe.report.text.flags"}
    assert citing - named <= elsewhere, f"no assumption names {sorted(citing - named - elsewhere)}"


def test_every_part_says_what_it_costs() -> None:
    for part in parts_table():
        needed = {"program": "asks", "library": "modules", "file": "files"}[part["kind"]]
        assert part["name"] and part["costs"] and part.get("install", part.get("extra")) and part[needed]


def _commands(command: click.Command, path: str = "") -> Iterator[tuple[str, click.Command]]:
    yield path, command
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            if (inner := command.get_command(context, name)) is not None:
                yield from _commands(inner, f"{path} {name}".strip())


def test_options_that_the_texts_name_exist() -> None:
    """`report --spill-threshold-bytes`: at that command where one is named in front of it, else at any."""
    options = {
        name: {spelling for one in command.params for spelling in one.opts} for name, command in _commands(cli.root)
    }
    anywhere = set().union(*options.values())
    texts = [text for one in TABLE for text in (one.breaks, one.unchecked)] + [part["costs"] for part in parts_table()]
    found = [one.groups() for text in texts for one in re.finditer(r"(?:(\w+(?: \w+)?) )?(--[a-z][\w-]*)", text)]
    assert len(found) > 8
    for words, option in found:
        command = next((one for one in (words, (words or "").rpartition(" ")[2]) if one in options), None)
        assert option in (options[command] if command else anywhere), f"{command or 'nothing'} has no {option}"


def test_every_extra_that_the_package_imports_is_a_part(root: Path) -> None:
    """Extras for developers alone hold nothing that a module of the package imports."""
    extras = tomllib.loads((root / "pyproject.toml").read_text("utf-8"))["project"]["optional-dependencies"]
    text = "\n".join(path.read_text("utf-8") for path in PACKAGE.rglob("*.py"))
    imported = set(re.findall(r"^\s*(?:from|import) (\w+)", text, re.MULTILINE))
    names = {
        extra: {re.split(r"[<>=! ]", one)[0].replace("-", "_").lower() for one in needed}
        for extra, needed in extras.items()
    }
    used = {extra for extra, packages in names.items() if packages & imported} - {"dev"}
    libraries = {part["name"]: set(part["modules"]) for part in parts_table() if part["kind"] == "library"}
    assert set(libraries) == used
    assert libraries == {extra: names[extra] for extra in used}
