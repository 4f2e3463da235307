"""The page of one bisection, from its document (reports/bisect.schema.json). Pure: document in, `Page` out."""

from __future__ import annotations

import itertools
import shlex
from collections.abc import Mapping
from typing import Any

from mccprobe.base.console import number_of
from mccprobe.report.pages.blocks import (
    NONE,
    Block,
    Cell,
    Code,
    Commands,
    Details,
    Facts,
    Kind,
    Notes,
    Page,
    Paragraph,
    Section,
    Table,
    Tone,
    code,
    digest,
    number,
    sections,
    shown,
    verdict,
)
from mccprobe.report.pages.profile_figure import profile_figure
from mccprobe.report.record import Status, exit_code_of

MARK = "sim"
SIM_HEADLINE = "SIMULATED FAULT (sim)"
SIM_WARNING = "The fault is planted by mccprobe in its stand-in toolchain, not found in mcc."
EDGES_IN_TABLE = 300
MOST_NAME = 60  # letters of a function in the headline: two of its lines on a phone
_WITHOUT_CULPRIT = {
    Status.WRONG_AT_ZERO: "Wrong already at limit 0: no pass can be blamed",
    Status.NON_DETERMINISTIC: "The compiler is non-deterministic: no pass is named",
    Status.NO_DIFFERENCE: "No difference: the bad build is as right as the reference",
}
_LEADS = {
    Status.WRONG_AT_ZERO: "With every pass left out that can be, the result is wrong already. The fault lies in the "
    "front end, in a required pass, in register allocation or emission, in another source or in the program itself.",
    Status.NO_DIFFERENCE: "Only the named source is built with the flags. If the fault is in another one, name that.",
}


def bisect_page(result: Mapping[str, Any]) -> Page:
    """Raises KeyError, TypeError or ValueError for what is no such document."""
    result = shown(result)
    simulated = bool(result["simulated"])
    mark = MARK if simulated else ""
    return Page(
        command="mccprobe bisect",
        headline=headline(result),
        tone=tone(result),
        lead=lead(result),
        facts=Facts(
            (
                ("Source", code(result["source"])),
                ("Flags", code(", ".join(result["flags"])) if result["flags"] else Cell("the whole bad build")),
                ("Compiler", Cell(f"{result['compiler']['version']} [{result['toolchain']}]")),
                *_execution(result),
            )
        ),
        sections=sections(*bisect_sections(result), *said_sections(result, mark), run_section(result, mark)),
        tool_version=result["tool_version"],
        mark=SIM_HEADLINE if simulated else "",
        warning=SIM_WARNING if simulated else "",
    )


def exit_code(result: Mapping[str, Any]) -> int:
    """Of the command that gave this document."""
    return int(exit_code_of(Status(result["status"]), named=result["culprit"] is not None))


def headline(result: Mapping[str, Any]) -> str:
    """The answer in one sentence; it names a pass only where one is named."""
    status, culprit = Status(result["status"]), result["culprit"]
    if (found := result.get("range")) is not None:
        return f"One of executions {found['first']['execution']:,} to {found['last']['execution']:,} begins the fault"
    if (result.get("objects") or {}).get("equal"):
        return "No difference: both builds are the same object"
    if culprit is None:
        return _WITHOUT_CULPRIT.get(status, "Undecided: no pass is named")
    where = f"{culprit['pass']} on {headline_name(culprit['function'])}"
    if status is Status.FOUND:
        return f"{where} turns the result wrong: confirmed"
    if status is Status.NON_DETERMINISTIC:
        return f"The compiler is non-deterministic; with fixed addresses first wrong at {where}"
    return f"First wrong at {where}; the pass itself is not confirmed"


def tone(result: Mapping[str, Any]) -> Tone:
    if result["culprit"] is None:
        return Tone.NONE
    return Tone.ANSWER if result["status"] == Status.FOUND else Tone.CAVEAT


def lead(result: Mapping[str, Any]) -> str:
    """Why the answer is what it is."""
    if result["confirmation"] is not None and result["culprit"] is not None:
        text = str(result["confirmation"]["text"])
        return text[:1].upper() + text[1:] + ("" if text.endswith(".") else ".")
    return _LEADS.get(Status(result["status"]), "")


def short_name(function: str | None) -> str:
    """`gemm<int>` of `gemm<int>(half*, int)`: the headline needs no parameters; the whole stands below it."""
    if not function:
        return "a function that the log does not name"
    short = function.partition("(")[0]
    return function if not short or "operator" in function else short


def headline_name(function: str | None) -> str:
    """The same without template arguments that fill a screen, as kernels of template libraries have: `gemm<...>`."""
    short = short_name(function)
    if len(short) > MOST_NAME and "<" in short and "operator" not in short:
        short = short.partition("<")[0] + "<...>"
    return short if len(short) <= MOST_NAME else short[: MOST_NAME - 3] + "..."


def _execution(result: Mapping[str, Any]) -> list[tuple[str, Cell]]:
    culprit = result["culprit"]
    if culprit is None:
        return []
    return [("Execution", Cell(f"{culprit['execution']:,} of {culprit['total']:,} in this build"))]


def bisect_sections(result: Mapping[str, Any], *, prefix: str = "") -> list[Section]:
    """What `why` shows as well. prefix: of the anchors."""
    mark = MARK if result["simulated"] else ""
    return [
        Section(f"{prefix}edge", "Where the verdict changes", tuple(_edge_blocks(result)), mark),
        Section(f"{prefix}confirmation", "What confirms it", tuple(_confirmation(result)), mark),
        Section(f"{prefix}reproduce", "Reproduce", tuple(_reproduce(result)), mark),
    ]


def _edge_blocks(result: Mapping[str, Any]) -> list[Block]:
    blocks: list[Block] = []
    figure = profile_figure(result)
    if figure is not None:
        blocks.append(figure)
    edges = result["edges"]
    if edges:
        rows = tuple(
            (
                number(edge["execution"]),
                verdict(edge["from"]),
                verdict(edge["to"]),
                Cell(edge["pass"] or NONE),
                code(edge["function"]),
                number(len(edge["unresolved"])),
            )
            for edge in edges[:EDGES_IN_TABLE]
        )
        left = len(edges) - len(rows)
        note = "Numbers differ between builds, names do not."
        note += f" {left:,} more edges are in result.json." if left else ""
        head = ("execution", "from", "to", "pass", "function", "unresolved between")
        blocks.append(Table("Edges", head, rows, note))
    told = {
        True: "Monotone: every limit was asked, and the verdict changes once.",
        False: "Not monotone: every limit was asked, and the verdict changes more than once.",
        None: "Whether it is monotone is not known: only --profile asks every limit.",
    }[result["monotone"]]
    if result["total"]:
        blocks.append(Paragraph(told))
    if result.get("log"):
        blocks.append(Details("The compiler's log around it", (Code("Log of the compiler", "\n".join(result["log"])),)))
    return blocks


def _confirmation(result: Mapping[str, Any]) -> list[Block]:
    blocks: list[Block] = []
    pairs: list[tuple[str, Cell]] = []
    confirmation, rate = result["confirmation"], result.get("failure_rate")
    if confirmation is not None and confirmation["option"]:
        pairs.append(("Switched off by", code(confirmation["option"])))
    if result["confidence"] is not None:
        pairs.append(("Not luck, with confidence", Cell(f"{result['confidence']:.4f}")))
    if rate is not None:
        text = f"{rate['estimate']:.0%} (95 % interval {rate['low']:.0%} to {rate['high']:.0%})"
        pairs.append(("A bad object fails", Cell(f"{text} of its runs")))
    oracle, objects = result.get("oracle") or {}, result.get("objects") or {}
    for side in ("good", "bad"):
        if oracle.get(side):
            pairs.append((f"{side.capitalize()} side", Cell(oracle[side])))
            pairs.append((f"{side.capitalize()} object", digest(objects.get(side))))
    if pairs:
        blocks.append(Facts(tuple(pairs)))
    if result["promises"]:
        blocks.append(Notes(tuple(result["promises"]), "What the flags promise", warning=True))
    if result["table"]:
        rows = tuple(
            (
                Cell(f"flag {one['flag']}, pass {one['pass']}", note=one["how"]),
                verdict(one["verdict"]),
                number(one.get("max_err"), digits=".6g"),
                digest(one["object"]),
                Cell(one.get("reason") or NONE),
            )
            for one in result["table"]
        )
        blocks.append(Table("Flag by pass", ("build", "verdict", "max_err", "object", "what it said"), rows))
    return blocks


def _reproduce(result: Mapping[str, Any]) -> list[Block]:
    blocks: list[Block] = []
    for side in ("good", "bad"):
        commands = result["reproduce"].get(side) or []
        if commands:
            first = ("# SIMULATED: sim, not mcc",) if result["simulated"] else ()
            blocks.append(Commands(f"The {side} side", (*first, *(shlex.join(argv) for argv in commands))))
    if blocks:
        blocks.insert(0, Paragraph(f"Run in {result.get('working_directory', '.')}: names are relative to it."))
    return blocks


def said_sections(result: Mapping[str, Any], mark: str) -> list[Section]:
    """Warnings, then notes."""
    return [
        Section("warnings", "Warnings", _notes(result["warnings"], warning=True), mark),
        Section("notes", "Notes", _notes(result["notes"]), mark),
    ]


def _notes(texts: list[str], *, warning: bool = False) -> tuple[Block, ...]:
    """Sentences as a list; indented lines are the text that the sentence before them ends in, as a diff has it."""
    blocks: list[Block] = []
    label = "Notes"
    for indented, group in itertools.groupby(texts, key=lambda text: text.startswith("  ")):
        lines = list(group)
        if indented:
            blocks.append(Code(label, "\n".join(line[2:] for line in lines), diff=True))
        else:
            blocks.append(Notes(tuple(lines), warning=warning))
            label = lines[-1].rstrip(":")
    return tuple(blocks)


def run_section(result: Mapping[str, Any], mark: str) -> Section:
    """How much work it was, and where it lies."""
    trials = result["trials"]
    done = f"{number_of(trials['compiles'], 'compile', style=',')}, {number_of(trials['runs'], 'run', style=',')}"
    if trials.get("replayed"):
        done += f", {trials['replayed']:,} from the journal"
    verdicts = sorted(result["verdicts"].items())
    pairs = [
        ("Trials", Cell(done)),
        ("Verdicts", Cell(", ".join(f"{name} {count:,}" for name, count in verdicts) or NONE)),
        ("Distinct objects tested", number((result.get("objects") or {}).get("distinct_tested"))),
        ("Time", Cell(f"{result['seconds']:,.1f} s")),
        ("Compiler", code(result["compiler"]["path"])),
        ("Run directory", code(result["run_directory"])),
    ]
    blocks: list[Block] = [Facts(tuple((name, Cell(cell.text, _left(cell))) for name, cell in pairs))]
    if result.get("phases"):
        rows = tuple((Cell(name), number(seconds, digits=",.2f")) for name, seconds in result["phases"].items())
        blocks.append(Details("Seconds of each phase", (Table("Phases", ("phase", "seconds"), rows),)))
    return Section("run", "The run", tuple(blocks), mark)


def _left(cell: Cell) -> Kind:
    """Among facts a number stands below its name, at the left."""
    return Kind.TEXT if cell.kind is Kind.NUMBER else cell.kind
