"""What `mccprobe flags` shows of flags, sets, passes and answers: as JSON values and as lines."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from mccprobe.base.console import number_of
from mccprobe.report.terminal_table import Column, terminal_table
from mccprobe.targets import registry
from mccprobe.targets.flags.ask import OptionAnswer
from mccprobe.targets.flags.catalogue import Catalogue, Flag, normalise_option
from mccprobe.targets.flags.entries import CONFIDENCES, FlagSet
from mccprobe.targets.flags.harvest import HarvestedOption
from mccprobe.targets.passes.table import PassInfo, PassTable

MAX_PURPOSE = 90  # characters of a purpose in the list


@dataclass(frozen=True)
class Neutralised:
    """One pass that an option switches off: entirely, or a part of it."""

    title: str
    argument: str
    option: str
    part: bool


def neutralised_by(table: PassTable) -> dict[str, list[Neutralised]]:
    """Option name (no dashes, no value) -> the passes that it switches off."""
    found: dict[str, list[Neutralised]] = {}
    for info in table.passes():
        for options, part in ((info.neutralisers, False), (info.partial, True)):
            for option in options:
                one = Neutralised(info.title, info.argument, option, part)
                found.setdefault(normalise_option(option)[0], []).append(one)
    return found


def find_passes(table: PassTable, text: str) -> list[PassInfo]:
    """By title, else by argument (machine-scheduler), else by a part of the title."""
    exact = table.find(text)
    if exact is not None:
        return [exact]
    passes = list(table.passes())
    return [one for one in passes if one.argument == text] or [
        one for one in passes if text.casefold() in one.title.casefold()
    ]


# --- JSON values -----------------------------------------------------------------------------------


def flag_value(catalogue: Catalogue, flag: Flag, passes: Mapping[str, Sequence[Neutralised]]) -> dict[str, Any]:
    """One flag with all that is known of it."""
    return {
        **asdict(flag),
        "neutralises": [asdict(one) for one in passes.get(flag.name, ())] if flag.option == "mllvm" else [],
        "sets": [one.name for one in catalogue.sets.values() if flag.name in member_names(catalogue, one)],
    }


def set_value(catalogue: Catalogue, found: FlagSet) -> dict[str, Any]:
    """One set with its members as they reach the driver."""
    members = catalogue.resolve_set(found.name)
    return {
        **asdict(found),
        "members": [
            {
                "text": one.text,
                "argv": list(one.argv),
                "name": one.flag.name if one.flag else None,
                "risks": [asdict(risk) for risk in one.flag.risks_of(one.value)] if one.flag else [],
            }
            for one in members
        ],
    }


def member_names(catalogue: Catalogue, found: FlagSet) -> list[str]:
    """Catalogue names of a set's members."""
    return [one.flag.name for one in catalogue.resolve_set(found.name) if one.flag]


def pass_value(info: PassInfo) -> dict[str, Any]:
    """One pass with the options that switch it off."""
    return {
        "title": info.title,
        "argument": info.argument or None,
        "kind": info.kind,
        "neutralisers": list(info.neutralisers),
        "partial": list(info.partial),
        "note": info.note or None,
    }


def answer_value(answer: OptionAnswer) -> dict[str, Any]:
    """What a compiler says of one flag."""
    questions = [asdict(one) | {"said": one.said or None} for one in answer.questions]
    return {
        "name": answer.flag.name,
        "state": answer.state,
        "reason": answer.reason or None,
        "questions": questions,
    }


def option_value(option: HarvestedOption, catalogue: Catalogue) -> dict[str, Any]:
    """One harvested option."""
    return {
        **asdict(option),
        "value_name": option.value_name or None,
        "group": option.group or None,
        "in_catalogue": catalogue.find(option.name) is not None,
    }


# --- lines -----------------------------------------------------------------------------------------


def list_lines(flags: Sequence[Flag], sets: Iterable[FlagSet]) -> list[str]:
    """A line a flag, then a line a set, then the counts."""
    width = max((len(flag.name) for flag in flags), default=0)
    lines = []
    for flag in flags:
        marks = ",".join(dict.fromkeys(risk.kind for risk in flag.risks)) or "-"
        purpose = flag.purpose if len(flag.purpose) <= MAX_PURPOSE else flag.purpose[: MAX_PURPOSE - 3] + "..."
        lines.append(f"{flag.name:<{width}}  {flag.option:<9} {flag.type:<6} {marks:<18} {purpose}")
    listed = list(sets)
    for one in listed:
        lines.append(f"set {one.name:<{max(width - 4, 0)}}  {number_of(len(one.flags), 'flag')}: {one.summary}")
    return [*lines, f"{number_of(len(flags), 'flag')}, {number_of(len(listed), 'set')}"]


def list_table(flags: Sequence[Flag], sets: Sequence[FlagSet], width: int, *, color: bool) -> list[str]:
    """The same for a terminal: purposes whole, folded in their column."""
    names = (
        Column("flag", fold=20),
        Column("option"),
        Column("type"),
        Column("risk", fold=11),
        Column("purpose", fold=24),
    )
    risks = [", ".join(dict.fromkeys(risk.kind for risk in flag.risks)) or "-" for flag in flags]
    rows = [(one.name, one.option, one.type, risk, one.purpose) for one, risk in zip(flags, risks, strict=True)]
    lines = terminal_table(names, rows, width, color=color) if rows else []
    if sets:
        heads = (Column("set", fold=16), Column("flags", right=True), Column("what it is", fold=24))
        listed = [(one.name, str(len(one.flags)), one.summary) for one in sets]
        lines += ["", *terminal_table(heads, listed, width, color=color)]
    return [*lines, "", f"{number_of(len(flags), 'flag')}, {number_of(len(sets), 'set')}"]


def flag_lines(value: Mapping[str, Any]) -> list[str]:
    """All of one flag; only what is there."""
    lines = [
        f"{value['name']}: {value['purpose']}",
        f"  spelling    {_spelled(value)}",
        f"  type        {value['type']}{_values(value)}",
        f"  default     {value['default']}",
        f"  compilers   {', '.join(value['compilers'])}",
        f"  source      {value['source']} ({CONFIDENCES[value['confidence']]})",
    ]
    for label, key in (("needs", "requires"), ("contains", "bundle_members"), ("excludes", "exclusive_with")):
        if value[key]:
            hidden = key == "bundle_members" and not registry.bundles_are_public(value["compilers"])
            more = "; the rest of the bundle is not public" if hidden else ""
            lines.append(f"  {label:<11} {', '.join(value[key])}{more}")
    lines += [f"  {risk['kind']:<11} {_risk(risk)}" for risk in value["risks"]]
    for one in value["neutralises"]:
        part = "a part of " if one["part"] else ""
        lines.append(f"  {one['option']} switches off {part}{one['title']}")
    if value["sets"]:
        lines.append(f"  in sets     {', '.join(value['sets'])}")
    return [*lines, *_where_facts_are(lines)]


def _values(value: Mapping[str, Any]) -> str:
    if not value["values"]:
        return ""
    return (": " if value["type"] == "enum" else "; seen in use: ") + ", ".join(value["values"])


def _spelled(value: Mapping[str, Any]) -> str:
    shown = value["spelling"] if value["type"] == "bool" else f"{value['spelling']}{value['separator']}VALUE"
    if value["option"] == "attribute":
        return f"__attribute__(({value['spelling']}{'' if value['type'] == 'bool' else '(N)'})), on a kernel"
    return {"mllvm": f"-mllvm {shown}; plain for llc", "llc": f"{shown}, for llc alone"}.get(value["option"], shown)


def set_lines(value: Mapping[str, Any]) -> list[str]:
    """A set, its members and what is told against them."""
    lines = [f"{value['name']}: {value['summary']}", f"  source      {value['source']}"]
    for member in value["members"]:
        lines.append(f"  {' '.join(member['argv'])}")
        lines += [f"      {risk['kind']}: {_risk(risk)}" for risk in member["risks"]]
    return [*lines, *_where_facts_are(lines)]


def _where_facts_are(lines: Sequence[str]) -> list[str]:
    """What to open, where a source is the page of public facts."""
    return ["  mtgpu.md    is printed by: mccprobe help facts"] if any("mtgpu.md" in line for line in lines) else []


def _risk(risk: Mapping[str, Any]) -> str:
    return f"{risk['value'] + ': ' if risk['value'] else ''}{risk['note']} ({risk['source']})"


def pass_lines(passes: Sequence[Mapping[str, Any]]) -> list[str]:
    """The options that switch a pass off."""
    lines = []
    for one in passes:
        lines.append(f"{one['title']} ({one['argument'] or 'no argument'}, {one['kind']})")
        lines += [f"  {option}  switches it off and no other" for option in one["neutralisers"]]
        lines += [f"  {option}  switches off a part of it" for option in one["partial"]]
        if not one["neutralisers"] and not one["partial"]:
            lines.append("  no option is known that switches it off alone")
        lines += [f"  {one['note']}"] * bool(one["note"])
    return lines


def answer_lines(heads: Sequence[str], columns: Sequence[Sequence[OptionAnswer]]) -> list[str]:
    """A row a flag, a column a compiler; below it what was said against a flag."""
    width = max((len(answer.flag.name) for answer in columns[0]), default=0)
    cells = [max(len(head), len("accepted")) for head in heads]
    lines = [f"{'':<{width}}  " + "  ".join(f"{head:<{size}}" for head, size in zip(heads, cells, strict=True))]
    for row in zip(*columns, strict=True):
        states = "  ".join(f"{answer.state:<{size}}" for answer, size in zip(row, cells, strict=True))
        some = [_some(answer) for answer in row]
        notes = "; ".join(dict.fromkeys(text for text in some if text))
        lines.append(f"{row[0].flag.name:<{width}}  {states}  {notes}".rstrip())
    return lines


def _some(answer: OptionAnswer) -> str:
    """The values that were not taken, or why the flag was not."""
    if answer.state != "accepted":
        return answer.reason
    values = [one.value or "alone" for one in answer.questions if one.state != "accepted"]
    return f"not taken: {', '.join(values)}" if values else ""
