"""Which changes may get around a fault, most promising first. Pure: catalogue, pass table and help text in, list out.

Sources, in this order: options that switch the culprit pass off (pass table); what the catalogue tells of the
culprit flag (a value of another flag that does or does not cure it); members of a bundle; the function alone
unoptimised; options that switch a part of the pass off; options of the compiler's own hidden help whose name holds
the pass or the flag; every machine scheduler that the compiler registers.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from mccprobe.targets.flags.catalogue import Catalogue, normalise_option
from mccprobe.targets.flags.entries import Flag
from mccprobe.targets.flags.harvest import Harvest, HarvestedOption
from mccprobe.targets.passes.table import PassInfo

SCHEDULER = "misched"  # the option that names a machine scheduler (llvm/lib/CodeGen/MachineScheduler.cpp)
FIRST_SCHEDULERS = ("converge", "default")  # of LLVM itself; the others are made for one target each
_OPTION_IN_TEXT = re.compile(r"(?<![\w-])--?[A-Za-z][\w-]*=[\w.-]+")
_SWITCHES = ("enable-", "disable-")
_NEGATIVE = re.compile(r"^disable-|(?:^|-)(?:disable|no|avoid|skip)-$")  # before the stem: assume-no-overflow is none
_TRUE = "1"


@dataclass(frozen=True)
class Change:
    """LLVM options in place of those that are there. function: also leaves this symbol unoptimised.

    source: where it comes from, for people.
    """

    options: tuple[str, ...]
    source: str
    function: str = ""

    @property
    def keys(self) -> frozenset[str]:
        """Names of the options, without dashes and values."""
        return frozenset(normalise_option(option)[0] for option in self.options)

    @property
    def same(self) -> tuple[object, ...]:
        """Equal for two spellings of one change."""
        return self.function, *map(normalise_option, self.options)


def possible_changes(
    info: PassInfo | None,
    flags: Sequence[Flag],
    catalogue: Catalogue,
    harvest: Harvest | None,
    *,
    given: Iterable[str],
    symbol: str | None,
    in_code_generator: bool,
) -> list[Change]:
    """All changes, each once. given: keys of the flags of the bad build (leaving one out is another row).

    harvest: None where the compiler's help cannot be read; then nothing is known of what it registers.
    """
    taken = frozenset(given)
    found: dict[tuple[object, ...], Change] = {}
    ordered = (
        _of_pass(info),
        _told(flags, catalogue),
        _schedulers(harvest, catalogue, in_code_generator, first=True),
        _members(flags, catalogue),
        _optnone(symbol),
        _parts(info),
        _harvested(harvest, stems(info, flags)),
        _schedulers(harvest, catalogue, in_code_generator, first=False),
    )
    for group in ordered:
        for change in group:
            if not change.keys & taken:
                found.setdefault(change.same, change)
    return list(found.values())


def _of_pass(info: PassInfo | None) -> Iterator[Change]:
    for option in info.neutralisers if info else ():
        yield Change((option,), "switches off this pass alone (pass table)")


def _parts(info: PassInfo | None) -> Iterator[Change]:
    for option in info.partial if info else ():
        yield Change((option,), "switches off a part of this pass (pass table)")


def _told(flags: Sequence[Flag], catalogue: Catalogue) -> Iterator[Change]:
    """What the catalogue tells of the flag: options in its own notes, values of other flags that name it.

    Several values of one kind are also tried together (the article: all bypass kinds off at once).
    """
    for flag in flags:
        for risk in flag.risks:
            for option in _OPTION_IN_TEXT.findall(risk.note):
                yield Change((option,), f"named with {flag.name} ({risk.source})")
        named = re.compile(rf"(?<![\w-]){re.escape(flag.name)}(?![\w-])")
        together: dict[str, list[str]] = {}
        for other in catalogue.flags.values():
            for risk in other.risks:
                if other.option == "mllvm" and risk.value and named.search(risk.note):
                    option = other.given(risk.value).option
                    yield Change((option,), f"named with {flag.name} ({risk.source})")
                    together.setdefault(risk.note, []).append(option)
        for options in together.values():
            if len(options) > 1:
                yield Change(tuple(options), f"all of these together ({flag.name})")


def _members(flags: Sequence[Flag], catalogue: Catalogue) -> Iterator[Change]:
    """A bundle with one of its members switched off again."""
    for flag in flags:
        for name in flag.bundle_members:
            member = catalogue.find(name)
            if member is not None and member.option == "mllvm" and member.type == "bool":
                yield Change((f"{member.spelling}=0",), f"a member of {flag.name} switched off (catalogue)")


def _optnone(symbol: str | None) -> Iterator[Change]:
    if symbol:
        yield Change((), "this function alone unoptimised", function=symbol)


def _schedulers(
    harvest: Harvest | None, catalogue: Catalogue, in_code_generator: bool, *, first: bool
) -> Iterator[Change]:
    if not in_code_generator:
        return
    registered = harvest.find(SCHEDULER) if harvest else None
    source = "a scheduler that this compiler registers"
    names: Sequence[str] = tuple(registered.values) if registered else ()
    if harvest is None:
        known = catalogue.find(SCHEDULER)
        names, source = (known.values if known else ()), "a scheduler that the catalogue knows"
    for name in names:
        if name and (name in FIRST_SCHEDULERS) is first:
            yield Change((f"-{SCHEDULER}={name}",), source)


def stems(info: PassInfo | None, flags: Sequence[Flag]) -> tuple[str, ...]:
    """What option names of this pass or flag hold: "misched" of -enable-misched, "internal-regs-ra" of its flag."""
    names = [normalise_option(option)[0] for option in (*info.neutralisers, *info.partial)] if info else []
    names += [info.argument] if info and info.argument else []
    names += [flag.name for flag in flags]
    found = []
    for name in names:
        stem = name
        for switch in _SWITCHES:
            if switch in stem:
                stem = stem.split(switch, 1)[1]
        if len(stem) > 2:
            found.append(stem)
    return tuple(dict.fromkeys(found))


def _harvested(harvest: Harvest | None, wanted: Sequence[str]) -> Iterator[Change]:
    """Options of the hidden help that switch something of the pass or the flag off."""
    for option in harvest.options if harvest else ():
        for stem in wanted:
            found = re.search(rf"(?:^|(?<=-)){re.escape(stem)}(?:-|$)", option.name)
            text = _switched_off(option, option.name[: found.start()]) if found else ""
            if text:
                yield Change((text,), "from the compiler's hidden help")


def _switched_off(option: HarvestedOption, before: str) -> str:
    """The option with the value that switches something off, "" if it does not say how.

    before: its name up to the pass or the flag.
    """
    if option.value_kind not in ("bool", "switch"):
        return ""
    if _NEGATIVE.search(before):
        return "" if option.default == _TRUE else f"-{option.name}"
    # an "enable" whose default prints 0 may be a choice that is left to the target
    if option.value_kind == "bool" and (option.default == _TRUE or before.endswith("enable-")):
        return f"-{option.name}=false"
    return ""
