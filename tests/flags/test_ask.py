"""Asking a compiler: what counts as accepted, refused and unknown."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from mccprobe.targets.clang.toolchain import ClangToolchain
from mccprobe.targets.flags.ask import ask_flag, ask_flags
from mccprobe.targets.flags.catalogue import load_catalogue
from mccprobe.targets.sim.toolchain import sim_toolchain

CATALOGUE = load_catalogue()


class Scripted:
    """A compiler that says `complaints[last argument]`, and nothing against others."""

    driver = ("cc",)

    def __init__(self, **complaints: str) -> None:
        self.complaints = complaints
        self.asked: list[tuple[str, ...]] = []

    def environment(self, scratch: Path) -> dict[str, str]:
        return {}

    def refusal(self, argv: Sequence[str], scratch: Path) -> str:
        self.asked.append(tuple(argv))
        if not argv:
            return self.complaints.get("nothing", "")
        return self.complaints.get(argv[-1].rpartition("=")[2].lstrip("-"), self.complaints.get("other", ""))


UNKNOWN_OPTION = "clang (LLVM option parsing): Unknown command line argument '-x'.  Try: '--help'"


@pytest.mark.parametrize(
    ("complaint", "state"),
    [
        ("", "accepted"),
        (UNKNOWN_OPTION, "refused"),
        ("clang: error: unknown argument: '-mtgpu'", "refused"),
        ("mcc: error: unsupported CUDA gpu architecture: zz", "refused"),
        ("error: invalid integral value 'd3' in '-Od3'", "refused"),
        ("for the --misched option: Cannot find option named 'foo'!", "refused"),
        ("clang: warning: x\nclang: error: unsupported option '-fgpu-rdc'", "refused"),
        # the option is there: somebody in between gives it already
        ("clang: for the --misched option: may only occur zero or one times!", "unknown"),
        ("error: unable to load plugin 'x.so'", "unknown"),
        ("warning: argument unused during compilation: '-fgpu-rdc'", "unknown"),
        ("timeout after 30.0 s", "unknown"),
        ("signal SIGSEGV", "unknown"),
        ("fatal error: no licence\nfor the record: option", "unknown"),
        ("\n", "unknown"),
    ],
)
def test_only_a_parsers_words_are_a_refusal(complaint: str, state: str, tmp_path: Path) -> None:
    answer = ask_flag(Scripted(other=complaint), CATALOGUE.flags["mtgpu-use-sl"], tmp_path)
    assert answer.state == state
    assert bool(answer.reason) is (state != "accepted")
    assert answer.reason.isprintable()


def test_each_public_value_is_asked(tmp_path: Path) -> None:
    compiler = Scripted(relaxed=UNKNOWN_OPTION, mixed="signal SIGSEGV")
    answer = ask_flag(compiler, CATALOGUE.flags["FenceSetting"], tmp_path)
    assert [(one.value, one.state) for one in answer.questions] == [
        ("strict", "accepted"),
        ("mixed", "unknown"),
        ("relaxed", "refused"),
        ("graph_color", "accepted"),
    ]
    assert answer.state == "accepted" and answer.reason == ""
    assert compiler.asked[0] == ("-mllvm", "--FenceSetting=strict")
    assert ask_flag(Scripted(), CATALOGUE.flags["x"], tmp_path).questions[0].argv == ("-x", "musa")
    bare = ask_flag(Scripted(), CATALOGUE.flags["mtgpu-enable-postra-sched"], tmp_path)
    assert [one.value for one in bare.questions] == [None, "0", "1"]


def test_refused_by_some_and_failed_for_others_is_unknown(tmp_path: Path) -> None:
    compiler = Scripted(strict="signal SIGSEGV", other=UNKNOWN_OPTION)
    answer = ask_flag(compiler, CATALOGUE.flags["FenceSetting"], tmp_path)
    assert (answer.state, answer.reason) == ("unknown", "signal SIGSEGV")


@pytest.mark.parametrize(
    ("name", "why"),
    [("mcpu", "llc alone"), ("mtgpu_tiny_offset", "attribute"), ("musa-path", "no public value")],
)
def test_what_cannot_be_asked_stays_unknown(name: str, why: str) -> None:
    compiler = Scripted()
    (answer,) = ask_flags(compiler, [CATALOGUE.flags[name]])
    assert answer.state == "unknown" and why in answer.reason
    assert compiler.asked == [()]


def test_a_compiler_that_compiles_nothing_accuses_no_flag() -> None:
    """A driver that refuses --musa-device-only words it as a refusal, but not of the flag."""
    compiler = Scripted(nothing="clang: error: unsupported option '--musa-device-only'", other=UNKNOWN_OPTION)
    for answer in ask_flags(compiler, [CATALOGUE.flags["FenceSetting"], CATALOGUE.flags["Od3"]]):
        assert answer.state == "unknown" and "does not compile without it: clang: error" in answer.reason


@pytest.mark.toolchain
def test_clang_14_takes_the_upstream_flags_and_not_mccs(compiler: Callable[[int], str]) -> None:
    names = "enable-newgvn pre-RA-sched misched mtgpu-if-convert Od3 FenceSetting fplugin fgpu-rdc".split()
    answers = list(ask_flags(ClangToolchain([compiler(14)]), [CATALOGUE.flags[name] for name in names]))
    assert [answer.state for answer in answers] == [
        "accepted",
        "accepted",
        "accepted",
        "refused",
        "refused",
        "refused",
        "unknown",
        "unknown",
    ]
    misched = {one.value: one.state for one in answers[2].questions}
    assert misched == {
        "default": "accepted",
        "converge": "accepted",
        "mtgpu-max-ilp": "refused",
        "mtgpu-max-occupancy": "refused",
    }


@pytest.mark.toolchain("clang-14")
def test_the_stand_in_takes_mccs_back_end_flags(root: Path) -> None:
    names = ["mtgpu-if-convert", "FenceSetting", "misched", "Od3", "rdc", "musa-device-obj-only"]
    sim = sim_toolchain(root / ".test-cache")
    states = [answer.state for answer in ask_flags(sim, [CATALOGUE.flags[name] for name in names])]
    assert states == [*["accepted"] * 5, "refused"]
