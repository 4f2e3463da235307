"""A bug report from result.json of `why` or `bisect`: what is said, in which order. Pure: data in, blocks out.

Every section is there also when its step did not run; it then says so. Sentences are our own
(templates/), everything from compilers, programs and users is set into them as foreign text.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from typing import Any

from mccprobe.report.bug_report_blocks import (
    Block,
    Bullets,
    BundleFacts,
    Document,
    Listing,
    Paragraph,
    Section,
    Table,
    head_of,
    joined_pieces,
    marked,
)
from mccprobe.report.bug_report_words import Code, Foreign, Piece, Pieces, Words
from mccprobe.targets import registry

STYLES = ("llvm", "gcc", "vendor")
# What each reader asks for first. LLVM: which pass, what IR, one opt line (llvm/docs/HowToSubmitABug). GCC:
# versions and the full command (gcc.gnu.org/bugs). Vendor: versions of everything, what is affected, ways around.
ORDER = {
    "llvm": ("summary", "reproduce", "culprit", "where", "table", "screen", "versions", "facts", "flags", "workarounds",
             "tested", "confidence", "signature", "notes", "files"),
    "gcc": ("summary", "versions", "reproduce", "facts", "screen", "flags", "culprit", "where", "table", "tested",
            "confidence", "workarounds", "signature", "notes", "files"),
    "vendor": ("summary", "versions", "facts", "reproduce", "flags", "workarounds", "culprit", "where", "table",
               "screen", "tested", "confidence", "signature", "notes", "files"),
}  # fmt: skip
SIM_MARK = "[sim]"
SHORT = 12  # characters of a hash that are shown
DIFF_LINES = 200  # of a diff in the text; the whole lies in the bundle
SOURCE_LINES = 120  # of the source in the text
_ARGUMENTS = re.compile(r"\(.*\)( const)?$", re.DOTALL)


def kernel_name(bisect: Mapping[str, Any], source: str) -> str:
    """The function's own name, without its arguments; the source's name where no function is known."""
    culprit = bisect.get("culprit") or {}
    name = str(culprit.get("function") or "")
    return _ARGUMENTS.sub("", name).strip() or source.rsplit("/", 1)[-1]


def bisect_part(result: Mapping[str, Any]) -> dict[str, Any]:
    """The bisection in a result of `why` or `bisect`; {} when `why` stopped before it."""
    if "minimal_flag_sets" in result:
        return dict(result.get("bisect") or {})
    return dict(result)


def title_pieces(result: Mapping[str, Any], words: Words) -> Pieces:
    """`[pass] [kernel] symptom with smallest flags`."""
    bisect = bisect_part(result)
    culprit = bisect.get("culprit") or {}
    told = str((bisect.get("oracle") or {}).get("bad") or "")
    kind = "symptom.crash" if "signal SIG" in told else "symptom.wrong"
    if bisect.get("status") == "no-difference":
        kind = "symptom.none"
    pass_name = culprit.get("pass_argument") or culprit.get("pass") or bisect.get("status") or "no pass"
    mark: Pieces = (f"[{words.word('simulated.title')}] ",) if result.get("simulated") else ()
    detail: Pieces = (" (", Foreign(told), ")") if told else ()
    kernel = kernel_name(bisect, str(result.get("source", "")))
    return (
        *mark,
        "[",
        Foreign(str(pass_name)),
        "] [",
        Foreign(kernel),
        "] ",
        words.word(kind),
        *detail,
        " ",
        words.word("with"),
        " ",
        Foreign(smallest_flags(result)),
    )


def smallest_flags(result: Mapping[str, Any]) -> str:
    """The first minimal flag set; else the flags of the bisection; else the bad build's own arguments."""
    sets = result.get("minimal_flag_sets") or []
    if sets:
        return " ".join(sets[0])
    flags = bisect_part(result).get("flags") or result.get("flags") or []
    return " ".join(flags) or " ".join(result.get("bad_args") or ["the arguments given"])


def build_document(result: Mapping[str, Any], facts: BundleFacts, words: Words, style: str) -> Document:
    """The report in one style. result: why.schema.json or bisect.schema.json, scrubbed already."""
    writer = _Writer(result, facts, words)
    sections = [writer.section(key) for key in ORDER[style]]
    simulated = bool(result.get("simulated"))
    if simulated:
        sections = [section if section.key == "files" else marked(section, SIM_MARK) for section in sections]
    notice: Pieces = (words.word("simulated.notice"),) if simulated else ()
    return Document(title_pieces(result, words), notice, tuple(section for section in sections if section.blocks))


class _Writer:
    """One report in the making. Each method named for a section gives its blocks."""

    def __init__(self, result: Mapping[str, Any], facts: BundleFacts, words: Words) -> None:
        self.result = result
        self.facts = facts
        self.words = words
        self.say = words.say
        self.bisect = bisect_part(result)
        self.of_why = "minimal_flag_sets" in result
        self.culprit: dict[str, Any] = self.bisect.get("culprit") or {}

    def section(self, key: str) -> Section:
        blocks: list[Block] = getattr(self, f"_{key}")()
        return Section(key, (self.words.word(f"h.{key}"),), tuple(blocks))

    # -- pieces ---------------------------------------------------------------------------------

    def _function(self) -> Piece:
        name = str(self.culprit.get("function") or "")
        return Code(name) if name else "?"

    def _verdict(self, verdict: str | None) -> str:
        return self.words.word(f"v.{verdict}" if self.words.has(f"v.{verdict}") else "v.none")

    def _told(self, text: str) -> Foreign:
        """A sentence of a step of the run, in the report's language as far as it is known there."""
        return Foreign(self.words.told(text))

    def _short(self, digest: str | None) -> Pieces:
        return (Code(digest[:SHORT]),) if digest else ("-",)

    def _on(self, state: str) -> Pieces:
        return (self.words.word(state),) if self.words.has(state) else (Foreign(state),)

    # -- sections -------------------------------------------------------------------------------

    def _summary(self) -> list[Block]:
        status = str(self.bisect.get("status") or "")
        if not self.bisect or self.result.get("stopped"):
            reason = str(self.result.get("stopped") or "?")
            first = self.say("summary.stopped", reason=self._told(reason))
        elif (found := self.bisect.get("range")) is not None:
            bounds = {name: found[name]["execution"] for name in ("first", "last")}
            first = self.say("summary.range", **bounds)
        elif self.culprit and status not in ("found", "exposed"):
            first = self.say(f"summary.{status}") + self.say("culprit.pass", **{"pass": Code(self.culprit["pass"])})
        elif self.culprit:
            key = "summary.found.unchecked" if status == "found" and not self._checked() else f"summary.{status}"
            first = self.say(key, **{"pass": Code(self.culprit["pass"])}, function=self._function())
        else:
            key = f"summary.{status}"
            first = self.say(key if self.words.has(key) and "{" not in self.words.word(key) else "summary.undecided")
        oracle = self.bisect.get("oracle") or {}
        named = self.result.get("minimal_flag_sets") or self.bisect.get("flags")
        key = "summary.flags" if named else "summary.whole"
        items = [
            self.say("summary.source", source=Code(str(self.result.get("source", "")))),
            self.say(key, flags=Code(smallest_flags(self.result))),
        ]
        for side in ("good", "bad"):
            if oracle.get(side):
                items.append(self.say(f"summary.{side}", text=Code(str(oracle[side]))))
        blocks: list[Block] = [Paragraph(first), Bullets(tuple(items))]
        check = self.bisect.get("program_check") or {}
        if self.culprit and check.get("state") == "finding":  # nobody should have to read on for it
            blocks.insert(1, Paragraph(self.say("screen.finding", reason=self._told(check["text"]))))
        return blocks

    def _reproduce(self) -> list[Block]:
        facts = self.facts
        blocks: list[Block] = [
            Paragraph(self.say("reproduce.how", command=Code("sh repro.sh"), compiler=Code(facts.compiler_name)))
        ]
        if facts.repro_exit is None:
            blocks.append(Paragraph(self.say("reproduce.not_run", text=Foreign(facts.repro_text))))
        else:
            key = "reproduce.verified" if facts.repro_exit == 0 else "reproduce.unverified"
            word = {0: "verdict.present", 1: "verdict.gone"}.get(facts.repro_exit, "verdict.unknown")
            blocks.append(Paragraph(self.say(key, text=self.words.word(word))))
        if facts.reduced:
            blocks.append(Paragraph(self.say("reproduce.reduced", lines=facts.reduced[0], before=facts.reduced[1])))
        sides = self.bisect.get("reproduce") or {}
        lines = []
        for side in ("good", "bad"):
            commands = sides.get(side) or []
            lines += [f"# {side}", *(shlex.join(argv) for argv in commands)] if commands else []
        if lines and not facts.reduced:
            blocks.append(Listing("\n".join(lines), "sh", self.say("reproduce.sides")))
        if facts.source_text:
            shown = facts.source_text.splitlines()
            if len(shown) <= SOURCE_LINES:
                caption = (*self.say("reproduce.source"), " ", Code(facts.source_name))
                blocks.append(Listing(facts.source_text, "c", caption))
        return blocks

    def _versions(self) -> list[Block]:
        facts, result = self.facts, self.result
        toolchain = str(result.get("toolchain", ""))
        known = registry.find(toolchain)
        items = [self.say("versions.toolchain", name=Code(toolchain))]
        if facts.machine:
            items.append(self.say("versions.target", machine=Code(facts.machine)))
        host_only = known is not None and not known.device
        items.append(self.say("versions.host_only" if host_only else "versions.unknown_device"))
        items.append(self.say("versions.tool", version=Code(str(result.get("tool_version", "")))))
        version = facts.compiler_text or str((result.get("compiler") or {}).get("version") or "")
        blocks: list[Block] = [Bullets(tuple(items)), Listing(version, "", self.say("versions.compiler"))]
        if facts.toolkit:
            blocks.append(Listing(facts.toolkit, "json", self.say("versions.toolkit")))
        return blocks

    def _facts(self) -> list[Block]:
        rows = self.result.get("facts") or []
        if not rows:
            return [Paragraph(self.say("facts.none"))]
        items: list[Pieces] = []
        for row in rows:
            told: Pieces = (", ", self._told(row["text"])) if row["text"] else ()
            items.append((Code(self.words.told(row["build"])), ": ", self._verdict(row["verdict"]), *told))
        return [Bullets(tuple(items))]

    def _flags(self) -> list[Block]:
        items: list[Pieces] = []
        found = self.result.get("flag_sets") or {}
        for one in found.get("sets") or []:
            runs = {"fails": one["fails"], "runs": one["runs"]}
            items.append(self.say("flags.set", flags=Code(" ".join(one["flags"])), **runs))
            for flag, verdict in (one.get("needed") or {}).items():
                items.append(self.say("flags.needed", flag=Code(flag), verdict=self._verdict(verdict)))
            items += [self.say("flags.promise", text=self._told(text)) for text in one.get("promises") or []]
        for bundle, members in (found.get("opened") or {}).items():
            items.append(self.say("flags.opened", bundle=Code(bundle), members=Code(" ".join(members))))
        if not found:
            flags = self.bisect.get("flags") or []
            items += [self.say("flags.given", flags=Code(" ".join(flags)))] if flags else []
            items += [self.say("flags.promise", text=self._told(text)) for text in self.bisect.get("promises") or []]
        elif not found.get("complete", True):
            items.append(self.say("flags.incomplete"))
        items += [(self._told(note),) for note in found.get("notes") or []]
        return [Bullets(tuple(items))] if items else []

    def _culprit(self) -> list[Block]:
        culprit, bisect = self.culprit, self.bisect
        if not culprit:
            return []
        items = [self.say("culprit.pass", **{"pass": Code(culprit["pass"])})]
        if culprit.get("pass_argument"):
            items.append(self.say("culprit.argument", argument=Code(culprit["pass_argument"])))
        if culprit.get("function"):
            inferred = (" ", self.words.word("culprit.inferred")) if culprit.get("function_from") == "inferred" else ()
            items.append((*self.say("culprit.function", function=self._function()), *inferred))
        else:
            items.append(self.say("culprit.no_function"))
        items.append(self.say("culprit.execution", execution=culprit["execution"], total=culprit["total"]))
        objects = bisect.get("objects") or {}
        if objects.get("good") and objects.get("bad"):
            good, bad = (Code(objects[side][:SHORT]) for side in ("good", "bad"))
            items.append(self.say("culprit.objects", good=good, bad=bad))
        confirmation = bisect.get("confirmation") or {}
        if confirmation and bisect.get("status") != "found":
            items.append(self.say("culprit.caveat", text=self._told(confirmation["text"])))
        elif confirmation.get("kind") == "option" and confirmation.get("option"):
            items.append(self.say("culprit.confirmed.option", option=Code(confirmation["option"])))
        elif confirmation:
            items.append(self.say("culprit.confirmed.other", text=self._told(confirmation["text"])))
        blocks: list[Block] = [Bullets(tuple(items))]
        edges = bisect.get("edges") or []
        if len(edges) > 1:
            blocks += [Paragraph(self.say("culprit.edges")), Bullets(tuple(self._edge(edge) for edge in edges))]
        if bisect.get("log"):
            blocks.append(Listing("\n".join(bisect["log"]), "", self.say("culprit.log")))
        return blocks

    def _edge(self, edge: Mapping[str, Any]) -> Pieces:
        return self.say(
            "culprit.edge",
            execution=edge["execution"],
            before=self._verdict(edge["from"]),
            after=self._verdict(edge["to"]),
            **{"pass": Code(str(edge["pass"] or "?"))},
            function=Code(str(edge["function"] or "?")),
        )

    def _where(self) -> list[Block]:
        where = self.result.get("where") or {}
        if not where or not self.culprit:
            return []
        blocks: list[Block] = []
        found = self.result.get("first_bad_instruction")
        if found:
            named = {"function": Code(found["function"]), "block": Code(found["block"])}
            edit = "\n".join(f"{mark} {found[side]}" for mark, side in (("-", "before"), ("+", "after")) if found[side])
            blocks.append(Listing(edit, "diff", self.say("where.instruction", **named)))
            blocks.append(Paragraph(self.say(f"where.{found['confirmed']}", count=found["sufficient"])))
        else:
            reason = str(self.result.get("first_bad_instruction_reason") or where.get("reason") or "?")
            blocks.append(Paragraph(self.say("where.none", reason=self._told(reason))))
        if where.get("verifier"):
            blocks.append(Listing(where["verifier"], "", self.say("where.verifier_text")))
        if where.get("diff"):
            blocks.append(Listing(head_of(where["diff"], DIFF_LINES), "diff", self.say("where.diff")))
        if where.get("reproducer"):
            lines = "\n".join(shlex.join(argv) for argv in where["reproducer"])
            blocks.append(Listing(lines, "sh", self.say("where.reproducer")))
            ran = "verified" if where.get("reproducer_verified") else "unverified"
            blocks.append(Paragraph(self.say(f"where.reproducer_{ran}")))
        notes = where.get("notes") or []
        return [*blocks, Bullets(tuple((self._told(note),) for note in notes))] if notes else blocks

    def _table(self) -> list[Block]:
        rows = self.result.get("table") or self.bisect.get("table") or []
        if not rows:
            return []
        full = "pass_state" in rows[0]
        keys = ["flag", "pass", "function", "verdict", "runs", "object", "how"]
        keys = keys if full else [key for key in keys if key not in ("function", "runs")]
        cells = []
        for row in rows:
            cell: list[Pieces] = [self._on(row["flag"]), self._on(row["pass_state"] if full else row["pass"])]
            cell += [(self._told(row["function"]),)] if full else []
            cell.append((self._verdict(row["verdict"]),))
            cell += [(f"{row['fails']}/{row['runs']}",)] if full else []
            cells.append((*cell, self._short(row["object"]), (self._told(row["how"]),)))
        return [Table(tuple((self.words.word(f"table.{key}"),) for key in keys), tuple(cells))]

    def _workarounds(self) -> list[Block]:
        rows = self.result.get("workarounds") or []
        if not rows:
            return [Paragraph(self.say("work.none"))] if self.culprit else []
        simulated = bool(self.result.get("simulated"))
        speed = any(row.get("speed_s") is not None for row in rows)
        keys = ["change", "verdict", "runs", "error", "object", *(["speed"] if speed else []), "note"]
        cells = []
        for row in rows:
            error = row.get("max_err")
            cell: list[Pieces] = [
                (Code(self.words.told(row["change"])),),
                (self._verdict(row["verdict"]),),
                (f"{row['fails']}/{row['runs']}" if row.get("runs") else "-",),
                (f"{error:g}" if error is not None else "-",),
                self._short(row.get("object")),
            ]
            if speed:
                cell.append((f"{row['speed_s']:g}" if row.get("speed_s") is not None else "-",))
            notes: list[Piece] = [self._told(row["note"])] if row.get("note") else []
            if row["no_effect"] and "no effect" not in (row.get("note") or ""):
                nothing = self.words.word("work.no_effect_sim" if simulated else "work.no_effect")
                notes.append(f"; {nothing}" if notes else nothing)
            cells.append((*cell, tuple(notes) or ("-",)))
        blocks: list[Block] = [Table(tuple((self.words.word(f"work.{key}"),) for key in keys), tuple(cells))]
        if not speed:
            blocks.append(Paragraph(self.say("work.no_speed")))
        untried = self.result.get("workarounds_untried")
        if untried:
            blocks.append(Paragraph(self.say("work.untried", names=Code(", ".join(untried)))))
        return blocks

    def _checked(self) -> bool:
        """True when the program was checked and nothing was found: only then it may be called right."""
        screen, check = self.result.get("screen") or {}, self.bisect.get("program_check") or {}
        if self.of_why and screen.get("state") == "done" and screen.get("checks") and not screen.get("reason"):
            return True
        return bool(check.get("state") == "clean")

    def _screen(self) -> list[Block]:
        screen = self.result.get("screen") or {}
        check = self.bisect.get("program_check") or {}
        if not self.of_why and check.get("state") in ("clean", "finding"):
            key, field_name = {"clean": ("checked", "text"), "finding": ("finding", "reason")}[check["state"]]
            return [Paragraph(self.say(f"screen.{key}", **{field_name: self._told(check["text"])}))]
        if not self.of_why or not screen:
            return [Paragraph(self.say("screen.none"))]
        checks = screen.get("checks") or []
        if screen.get("reason"):
            first = self.say("screen.finding", reason=self._told(screen["reason"]))
        elif screen.get("state") != "done" or not checks:
            first = self.say("screen.skipped", state=self._told(str(screen.get("state"))))
        else:
            first = self.say("screen.clean")
        blocks: list[Block] = [Paragraph(first)]
        if checks:
            header = tuple((self.words.word(f"screen.{key}"),) for key in ("check", "part", "outcome", "text"))
            rows: list[tuple[Pieces, ...]] = []
            for one in checks:
                told: list[Pieces] = [(self._told(one[key] or "-"),) for key in ("part", "outcome", "text")]
                rows.append(((Code(self.words.told(one["name"])),), *told))
            blocks.append(Table(header, tuple(rows)))
        return blocks

    def _tested(self) -> list[Block]:
        bisect, items = self.bisect, []
        trials, verdicts = bisect.get("trials") or {}, bisect.get("verdicts") or {}
        if trials:
            counted = ", ".join(f"{self._verdict(name)} {count}" for name, count in sorted(verdicts.items())) or "-"
            made = {"compiles": trials["compiles"], "runs": trials["runs"]}
            items.append(self.say("tested.trials", **made, verdicts=counted))
        if self.culprit:
            items.append(self.say(f"tested.monotone.{str(bisect.get('monotone')).lower()}"))
        if verdicts.get("UNRESOLVED"):
            items.append(self.say("tested.unresolved", count=verdicts["UNRESOLVED"]))
        for step in ("flag_sets", "screen", "where"):
            state = (self.result.get(step) or {}).get("state")
            if state and state != "done":
                items.append(self.say("tested.step", step=Code(step), state=self._told(state)))
        for check in (self.result.get("screen") or {}).get("checks") or []:
            if check["outcome"] == "not run":
                what = f"{self.words.told(check['name'])}: {self.words.told(check['text'])}"
                items.append(self.say("tested.not_run", what=Code(what)))
        if self.result.get("simulated"):
            items.append(self.say("tested.device"))
        items.append(self.say("tested.other_compilers", command=Code("mccprobe recheck")))
        return [Bullets(tuple(items))]

    def _confidence(self) -> list[Block]:
        value, rate = self.bisect.get("confidence"), self.bisect.get("failure_rate")
        first = self.say("confidence.value", value=f"{value:.4f}") if value is not None else self.say("confidence.none")
        sets = (self.result.get("flag_sets") or {}).get("sets") or []
        if rate:
            second = self.say("confidence.rate", **{name: f"{rate[name]:.3g}" for name in ("estimate", "low", "high")})
        elif sets and sets[0]["runs"] and sets[0]["fails"] == sets[0]["runs"]:
            second = self.say("confidence.steady", fails=sets[0]["fails"], runs=sets[0]["runs"])
        else:
            second = self.say("confidence.unknown")
        return [Bullets((first, second))]

    def _signature(self) -> list[Block]:
        signature = self.result.get("signature") or {}
        if not signature.get("title"):
            return []
        items = [
            self.say("signature.shape", title=Code(signature["title"]), shape=self._told(signature.get("shape") or "?"))
        ]
        alike: dict[tuple[str, str], list[str]] = {}  # many kernels may have one reason not to be tried
        for other in signature.get("others") or []:
            key = {True: "signature.shows", False: "signature.shows_not"}.get(other["shows"], "signature.unknown")
            alike.setdefault((key, other.get("text") or ""), []).append(other["name"])
        for (key, text), names in alike.items():
            told: Pieces = (", ", self._told(text)) if text else ()
            listed = Code(", ".join(names))
            items.append((*self.say("signature.other", name=listed, text=self.words.word(key)), *told))
        return [Bullets(tuple(items))]

    def _notes(self) -> list[Block]:
        both = [*self.result.get("notes", []), *self.bisect.get("notes", [])]
        warnings = [*self.result.get("warnings", []), *self.bisect.get("warnings", [])]
        texts = dict.fromkeys([*both, *warnings])
        listed = [text for text in texts if not text.startswith("  ")]
        code = [text for text in texts if text.startswith("  ")]
        blocks: list[Block] = [Bullets(tuple((self._told(text),) for text in listed))] if listed else []
        return [*blocks, Listing("\n".join(code), "diff")] if code else blocks

    def _files(self) -> list[Block]:
        facts = self.facts
        items = [(Code(name), ": ", self.words.word(f"file.{key}")) for name, key in facts.files]
        more: list[Pieces] = [self.say("files.left_out", name=Code(name)) for name in facts.left_out]
        if facts.no_bitcode:
            more.append(self.say("files.no_bitcode", reason=Foreign(facts.no_bitcode)))
        if facts.removed is None:
            more.append(self.say("files.unscrubbed"))
        elif facts.removed:
            kinds = joined_pieces(
                [
                    self.say("files.removed_once", kind=self.words.word(f"kind.{kind}"))
                    if times == 1
                    else self.say("files.removed_kind", times=times, kind=self.words.word(f"kind.{kind}"))
                    for kind, times in sorted(facts.removed.items())
                ]
            )
            sentence = self.words.word("files.removed").partition("{kinds}")
            more.append((sentence[0], *kinds, sentence[2]))
        else:
            more.append(self.say("files.nothing_removed"))
        return [Bullets((*items, *more))]
