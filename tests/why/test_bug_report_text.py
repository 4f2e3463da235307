"""The text of a bug report: both languages whole, foreign text harmless, every step's answer shown."""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from mccprobe.report.bug_report import ORDER, STYLES, build_document
from mccprobe.report.bug_report_blocks import BundleFacts
from mccprobe.report.bug_report_words import LANGUAGES, Code, Foreign, Words, load_words
from mccprobe.report.fence import code, escaped, fenced, plain
from mccprobe.report.record import (
    BisectReport,
    CheckState,
    Confirmation,
    Culprit,
    EdgeRecord,
    ExecutionRange,
    ProgramCheck,
    Status,
)
from mccprobe.report.render_bug import render
from mccprobe.report.why_record import (
    BadInstruction,
    BuildFact,
    Confirmed,
    FlagSet,
    FlagSets,
    OtherKernel,
    PassCell,
    Screen,
    ScreenCheck,
    ScreenOutcome,
    Signature,
    StepState,
    Where,
    WhyReport,
    Workaround,
    Workarounds,
)

FIELD = re.compile(r"\{(\w+)\}")
GOLDENS = Path(__file__).parent / "goldens"
MARKDOWN = MarkdownIt("gfm-like", {"html": True, "linkify": False})
# What a compiler, a program or a kernel's name may hold to become more than text.
HOSTILE = (
    "```\n# owned\n```", "<script>alert(1)</script>", "<img src=x onerror=alert(1)>", "[click](javascript:alert(1))",
    "![x](http://example.org/x.png)", "@alice see #17 and https://example.org/a_b", "| a | b |\n| --- | --- |",
    "\x1b[31mred\x1b[0m\x07", "right\u202eleft\u2066", "zero\u200bwidth\ufeff", "</details><h1>x</h1>", "<!-- gone",
    "* * *", "- [ ] task", "$x$ ~~gone~~ **bold**", "a\rb", "&lt;b&gt;", "    indented", "`tick", "\\`", "1. one",
)  # fmt: skip


def hostile_report(text: str) -> WhyReport:
    """A whole report with the same text wherever foreign text may stand."""
    culprit = Culprit(text, text, text, text, "inferred", 7, 9)
    bisect = BisectReport(
        status=Status.FOUND,
        toolchain="clang",
        compiler_path="clang",
        compiler_version=text,
        simulated=False,
        source=text,
        flags=(text,),
        culprit=culprit,
        confirmation=Confirmation("ir-changed", text),
        edges=(EdgeRecord(7, "GOOD", "BAD", text, text), EdgeRecord(8, "BAD", "GOOD", text, text)),
        good_output=text,
        bad_output=text,
        log_lines=(text, text),
        notes=(text, f"  {text}"),
        warnings=(text,),
        reproduce_good=((text,),),
        reproduce_bad=((text,),),
        verdicts={"BAD": 2, "GOOD": 2},
    )
    check = ScreenCheck(text, "host", ScreenOutcome.NOT_RUN, text)
    return WhyReport(
        toolchain="clang",
        simulated=False,
        compiler_path="clang",
        compiler_version=text,
        source=text,
        flags=(text,),
        flag_sets=FlagSets(
            StepState.DONE,
            (FlagSet((text,), 3, 3, None, {text: "GOOD"}, (text,)),),
            opened={text: (text,)},
            notes=(text,),
        ),
        screen=Screen(StepState.DONE, (check,), text),
        bisect=bisect,
        where=Where(
            StepState.DONE,
            "mir",
            BadInstruction(text, text, text, text, Confirmed.ALL_TOGETHER, 3),
            "",
            text,
            ((text, text),),
            True,
            text,
            notes=(text,),
        ),
        table=(PassCell("on", "off", text, "GOOD", text, 0, 2, text),),
        signature=Signature(text, text, (OtherKernel(text, None, text),)),
        workarounds=Workarounds(StepState.DONE, (Workaround(text, (text,), "GOOD", 0.5, text, note=text),), (text,)),
        facts=(BuildFact(text, "BAD", text),),
        notes=(text,),
        warnings=(text,),
        stopped="",
    )


# -- words ----------------------------------------------------------------------------------------------


def test_both_languages_say_the_same_things() -> None:
    english, chinese = (load_words(language).table for language in LANGUAGES)
    assert english.keys() == chinese.keys()
    for key, sentence in english.items():
        assert sorted(FIELD.findall(sentence)) == sorted(FIELD.findall(chinese[key])), key
        assert sentence.strip() and chinese[key].strip(), key


def test_every_sentence_of_chinese_is_chinese() -> None:
    untranslated = {"work.error", "table.pass", "h.culprit"}  # terms that Chinese engineers write in English
    for key, sentence in load_words("zh").table.items():
        if key not in untranslated:
            assert re.search(r"[\u4e00-\u9fff\uff00-\uffef]", sentence), key


class Recorded(dict[str, str]):
    """A table that remembers what was read from it."""

    def __init__(self, table: dict[str, str]) -> None:
        super().__init__(table)
        self.read: set[str] = set()

    def __getitem__(self, key: str) -> str:
        self.read.add(key)
        return super().__getitem__(key)


def test_every_sentence_is_used() -> None:
    words = Words("en", Recorded(load_words("en").table))
    whole = whole_report()
    assert whole.bisect and whole.where.instruction
    bisects = [dataclasses.replace(whole.bisect, status=status, culprit=None, verdicts={}) for status in Status]
    bisects += [
        dataclasses.replace(
            whole.bisect,
            culprit=dataclasses.replace(whole.bisect.culprit, function=None),
            monotone=monotone,
            failure_rate=None,
            status=status,
            confidence=None,
            confirmation=Confirmation("ir-changed", "x"),
            bad_output="signal SIGSEGV",
        )
        for monotone in (True, None)
        for status in (Status.FOUND, Status.EXPOSED)
    ]
    unchecked = dataclasses.replace(whole.bisect, status=Status.FOUND)
    bisects += [dataclasses.replace(unchecked, program_check=ProgramCheck(state, "x")) for state in CheckState]
    bisects.append(
        dataclasses.replace(
            unchecked,
            status=Status.EXPOSED,
            culprit=None,
            range=ExecutionRange(whole.bisect.culprit, whole.bisect.culprit, 3),
        )
    )
    named = [dataclasses.replace(whole.where.instruction, confirmed=how) for how in Confirmed]
    wheres = [
        dataclasses.replace(whole.where, verifier="x", reproducer_verified=False, instruction=found)
        for found in (None, *named)
    ]
    others = tuple(OtherKernel("x", shows, "") for shows in (True, False, None))
    hostile = hostile_report("x")
    reports = [
        whole,
        hostile,
        dataclasses.replace(hostile, simulated=True),
        dataclasses.replace(whole, bisect=None, stopped="x"),
        dataclasses.replace(whole, signature=Signature("x", "", others), facts=(), simulated=True),
        dataclasses.replace(whole, workarounds=Workarounds(StepState.NOT_RUN), flags=()),
        dataclasses.replace(whole, screen=Screen(StepState.SKIPPED), where=Where(StepState.BUDGET)),
        dataclasses.replace(whole, workarounds=Workarounds(StepState.DONE, (Workaround("x", (), "UNRESOLVED"),))),
        *(dataclasses.replace(whole, bisect=bisect) for bisect in bisects),
        *(dataclasses.replace(whole, where=where) for where in wheres),
    ]
    results = [report.to_dict("1") for report in reports]
    results += [dataclasses.replace(bisect, promises=("x",)).to_dict("1") for bisect in bisects]
    results += [dataclasses.replace(bisect, toolchain="clang", flags=()).to_dict("1") for bisect in bisects]
    names = tuple((key, key.removeprefix("file.")) for key in words.table if key.startswith("file."))
    kinds = [key.removeprefix("kind.") for key in words.table if key.startswith("kind.")]
    removed = {kind: times for times, kind in enumerate(kinds, start=1)}
    facts = [
        BundleFacts(
            "cc",
            repro_exit=status,
            removed=counted,
            files=names,
            no_bitcode="x",
            left_out=("x",),
            reduced=(1, 2),
            source_text="x",
            toolkit="x",
            machine="x",
        )
        for status, counted in ((0, removed), (1, {}), (2, None), (None, None))
    ]
    for result in results:
        for one in facts:
            build_document(result, one, words, "llvm")
            build_document(result, dataclasses.replace(one, reduced=None), words, "llvm")
    assert isinstance(words.table, Recorded)
    assert sorted(words.table.keys() - words.table.read) == []


@pytest.mark.parametrize("style", STYLES)
def test_every_style_has_every_section(style: str) -> None:
    assert sorted(ORDER[style]) == sorted(ORDER["llvm"])


# -- foreign text -----------------------------------------------------------------------------------------


@given(st.text(alphabet=st.sampled_from("`~\n a<>&|\x1b\u202e\r\t"), max_size=60))
def test_a_fence_holds_whatever_is_in_it(text: str) -> None:
    tokens = MARKDOWN.parse(fenced(text) + "\n\nbehind\n")
    assert [token.type for token in tokens] == ["fence", "paragraph_open", "inline", "paragraph_close"]
    assert tokens[0].content.rstrip("\n") == plain(text).rstrip("\n")


@given(st.text(alphabet=st.sampled_from("`~*_[]()<>!#|\\@:/.&$-+=1a \n\x1b\u2066"), max_size=40))
def test_escaped_text_is_only_text(text: str) -> None:
    tokens = MARKDOWN.parse("x " + escaped(text) + " y\n")
    kinds = {child.type for token in tokens for child in token.children or ()}
    assert kinds <= {"text", "code_inline", "text_special", "softbreak", "entity"}, kinds
    assert [token.type for token in tokens] == ["paragraph_open", "inline", "paragraph_close"]


@given(st.text(alphabet=st.sampled_from("-+#=>1. )a`"), min_size=1, max_size=12))
def test_escaped_text_starts_no_block(text: str) -> None:
    kinds = [token.type for token in MARKDOWN.parse(escaped(text, at_start=True) + "\n")]
    assert kinds in ([], ["paragraph_open", "inline", "paragraph_close"]), kinds


@given(st.text(alphabet=st.sampled_from("`a |\\<"), max_size=20))
def test_a_code_span_holds_its_text(text: str) -> None:
    shown = " ".join(plain(text).split())
    children = MARKDOWN.parseInline(f"x{code(text)}y")[0].children or []
    inside = [child.content for child in children if child.type == "code_inline"]
    assert inside == ([shown] if shown else [])


@pytest.mark.parametrize("text", HOSTILE)
@pytest.mark.parametrize("language", LANGUAGES)
def test_nothing_foreign_becomes_markup(text: str, language: str) -> None:
    result = hostile_report(text).to_dict("0")
    facts = BundleFacts(text, text, text, text, None, text, (3, 9), text, text, ((text, "source"),), (text,), text, {})
    rendered = render(build_document(result, facts, load_words(language), "vendor"), "vendor")
    flat = list(MARKDOWN.parse(rendered))
    children = [child for token in flat for child in token.children or ()]
    assert not [token for token in flat if token.type in ("html_block", "hr")]
    assert {child.type for child in children} <= {
        "text",
        "code_inline",
        "text_special",
        "softbreak",
        "strong_open",
        "strong_close",
    }, {child.type for child in children}
    headings = [flat[index + 1].content for index, token in enumerate(flat) if token.type == "heading_open"]
    assert len(headings) == 1 + len(ORDER["vendor"]), headings
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f\u202a-\u202e\u2066-\u2069\u200b-\u200f\ufeff]", rendered)
    tables = [token for token in flat if token.type == "table_open"]
    assert len(tables) == 3
    # a mention or a reference outside of code would notify people and link issues
    words = "".join(child.content for child in children if child.type in ("text", "text_special"))
    assert "@alice" not in words and "#17" not in words and "https://" not in words


@pytest.mark.parametrize("text", HOSTILE)
def test_the_folded_part_of_the_tracker_style_is_ours_alone(text: str) -> None:
    report = hostile_report(text)
    long = "\n".join([text] * 40)
    report = dataclasses.replace(report, where=dataclasses.replace(report.where, diff=long))
    document = build_document(report.to_dict("0"), BundleFacts("cc"), load_words("en"), "llvm")
    html = [token.content for token in MARKDOWN.parse(render(document, "llvm")) if token.type == "html_block"]
    for block in html:
        assert re.fullmatch(r"<details><summary>[^<>]*</summary>\n?|</details>\n?", block), block


@pytest.mark.parametrize("text", HOSTILE)
def test_mail_is_plain_text(text: str) -> None:
    document = build_document(hostile_report(text).to_dict("0"), BundleFacts("cc"), load_words("en"), "gcc")
    rendered = render(document, "gcc")
    assert rendered.startswith("Subject: ") and rendered.count("\nSubject: ") == 0
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f\u202a-\u202e\u2066-\u2069]", rendered)


def test_pieces_keep_our_words_and_theirs_apart() -> None:
    pieces = (*load_words("en").say("table.pass"), Foreign("a*b"), Code("a*b"))
    assert pieces == ("pass", Foreign("a*b"), Code("a*b"))


# -- what is said -------------------------------------------------------------------------------------------


def whole_report() -> WhyReport:
    """A finished `why` on a made-up kernel, with every step's answer."""
    scheduler = "Machine Instruction Scheduler"
    culprit = Culprit(scheduler, "machine-scheduler", "saxpy(float*)", "_Z5saxpyPf", "log", 70, 90)
    bisect = BisectReport(
        status=Status.FOUND,
        toolchain="mcc",
        compiler_path="mcc",
        compiler_version="mcc version 1.2",
        simulated=False,
        source="saxpy.mu",
        flags=("-mllvm -bad",),
        culprit=culprit,
        confirmation=Confirmation("option", "with it off it is right", "-enable-misched=false"),
        monotone=False,
        confidence=0.995,
        failure_rate=(0.2, 0.4, 0.6),
        total=90,
        good_object="a" * 64,
        bad_object="b" * 64,
        compiles=30,
        runs=20,
        verdicts={"GOOD": 9, "BAD": 8, "UNRESOLVED": 3},
        good_output="0/64 wrong",
        bad_output="3/64 wrong",
        log_lines=("BISECT: running pass (70) Machine Instruction Scheduler on function (_Z5saxpyPf)",),
        edges=(
            EdgeRecord(70, "GOOD", "BAD", "Machine Instruction Scheduler", "saxpy(float*)"),
            EdgeRecord(80, "BAD", "GOOD", "Branch Probability", None),
        ),
    )
    return WhyReport(
        toolchain="mcc",
        simulated=False,
        compiler_path="mcc",
        compiler_version="mcc version 1.2",
        source="saxpy.mu",
        flags=("bad", "fine"),
        flag_sets=FlagSets(
            StepState.DONE,
            (FlagSet(("bad",), 8, 8, "c" * 64, {"bad": "GOOD"}, ("bad promises nothing",)),),
            given=("bad", "fine"),
            opened={"-Od3": ("bad", "fine")},
            tested=4,
            complete=False,
        ),
        screen=Screen(
            StepState.DONE,
            (
                ScreenCheck("UBSan", "host", ScreenOutcome.CLEAN),
                ScreenCheck("TSan", "kernel", ScreenOutcome.NOT_RUN, "device code"),
            ),
        ),
        bisect=bisect,
        where=Where(
            StepState.DONE,
            "mir",
            BadInstruction("%1 = FMA %2", "%1 = FMA %3", "saxpy", "bb.1", Confirmed.BOTH_SIDES),
            diff="--- good\n+++ bad\n-%1 = FMA %2\n+%1 = FMA %3",
            reproducer=(("llc", "-run-pass=machine-scheduler"),),
            reproducer_verified=True,
        ),
        table=(
            PassCell("on", "on", "-", "BAD", "d" * 64, 8, 8, "the bad build"),
            PassCell("on", "off", "-", None, None, 0, 0, "no switch"),
        ),
        signature=Signature("machine-scheduler", "operand replaced in FMA", (OtherKernel("gemm", False, "right"),)),
        workarounds=Workarounds(
            StepState.DONE,
            (
                Workaround("-enable-misched=false", ("-mllvm",), "GOOD", 0.25, "e" * 64, fails=0, runs=2, speed_s=0.5),
                Workaround("-misched=ilpmax", ("-mllvm",), "BAD", None, "d" * 64, no_effect=True),
            ),
            ("-misched=converge",),
        ),
        facts=(BuildFact("-O0", "GOOD"), BuildFact("-Od3", None, "not an option here")),
    )


@pytest.mark.parametrize(("style", "language"), [("llvm", "en"), ("gcc", "en"), ("vendor", "zh")])
def test_a_whole_report(style: str, language: str, update_goldens: bool) -> None:
    facts = BundleFacts(
        "mcc",
        "mcc version 1.2\ncommit 0123abc",
        "Linux x86_64",
        '{"driver": "1.0"}',
        0,
        "BUG PRESENT",
        (12, 340),
        "source/saxpy.mu",
        "int main() {}\n",
        (("report.md", "report.md"), ("source/", "source")),
        ("data.bin",),
        "",
        {"home": 3, "user": 1},
    )
    document = build_document(whole_report().to_dict("1.0"), facts, load_words(language), style)
    rendered = render(document, style)
    golden = GOLDENS / f"bug-report-whole-{style}-{language}.txt"
    if update_goldens:
        golden.write_text(rendered, "utf-8")
    assert rendered == golden.read_text("utf-8")


def test_what_did_not_run_is_said_not_left_out() -> None:
    report = dataclasses.replace(
        whole_report(),
        screen=Screen(StepState.SKIPPED, reason=""),
        where=Where(StepState.BUDGET, reason="no time left"),
        workarounds=Workarounds(StepState.NOT_RUN),
        facts=(),
    )
    rendered = render(build_document(report.to_dict("1"), BundleFacts("mcc"), load_words("en"), "llvm"), "llvm")
    for sentence in (
        "The program was not screened for undefined behaviour: skipped",
        "No instruction is named: no time left",
        "not done: `where` (budget spent)",
        "Not looked for in this run.",
        "Not tried in this run",
        "It was not run when this report was written",
    ):
        assert sentence in rendered, rendered


def test_a_screen_finding_takes_the_accusation_back() -> None:
    report = dataclasses.replace(
        whole_report(),
        bisect=None,
        stopped="the program, not yet the compiler: TSan found a race",
        screen=Screen(
            StepState.DONE, (ScreenCheck("TSan", "host", ScreenOutcome.FINDING, "a race"),), "TSan found a race"
        ),
    )
    rendered = render(build_document(report.to_dict("1"), BundleFacts("mcc"), load_words("en"), "llvm"), "llvm")
    assert "No pass is accused: the program, not yet the compiler: TSan found a race" in rendered
    assert "so the compiler is not to blame yet: TSan found a race" in rendered
    assert "confirmed" not in rendered


def test_simulated_says_so_on_every_line_of_an_answer() -> None:
    report = dataclasses.replace(whole_report(), simulated=True, toolchain="sim")
    document = build_document(report.to_dict("1"), BundleFacts("mcc"), load_words("en"), "llvm")
    rendered = render(document, "llvm")
    assert rendered.startswith("# [SIMULATED]") and "Do not file this report" in rendered
    own = re.sub(r"(?ms)^```.*?^```$", "", rendered.partition("## Files")[0])
    said = [line for line in own.splitlines() if line.startswith(("- ", "| ")) and "---" not in line]
    headers = [line for line in said if re.fullmatch(r"\| (flag|change|check) .*", line)]
    assert all("[sim]" in line for line in said if line not in headers), said


@pytest.mark.parametrize(
    ("told", "parts"),
    [
        ("2 of 3 runs BAD; 8191/65536 wrong, max_err 3.1", ["3 次运行中 BAD 2 次", "65536 个元素中错误 8191 个"]),
        ("good side: the pass without the flags under examination", ["正确一侧", "该 pass 不带被检查的选项"]),
        (
            "the program or a promise may be at fault, not yet the compiler: TSan (host): WARNING: x; -O0 (program): "
            "right",
            ["暂不归咎于编译器", "TSan", "主机端", "WARNING: x", "-O0", "程序", "正确"],
        ),
        ("main.c:3: error: what the compiler says", ["main.c:3: error: what the compiler says"]),
    ],
)
def test_what_steps_told_is_chinese_too(told: str, parts: list[str]) -> None:
    chinese = load_words("zh").told(told)
    assert [part for part in parts if part not in chinese] == [], chinese
    assert load_words("en").told(told) == told


def test_every_phrase_is_a_pattern_with_its_groups() -> None:
    for pattern, replacement in load_words("zh").phrases:
        assert re.search(r"[\u3001-\uffef]", replacement), replacement
        assert {int(number) for number in re.findall(r"\\(\d)", replacement)} <= set(range(1, pattern.groups + 1))
