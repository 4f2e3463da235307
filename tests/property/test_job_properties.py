"""`-###` text and cc1 argument lists, for any arguments whatever."""

from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from mccprobe.targets.flags.given import CompilerFlag
from mccprobe.targets.llvm.command import Arguments, mllvm_value, split_arguments, without_flags
from mccprobe.targets.llvm.jobs import (
    Job,
    JobKind,
    back_end_argv,
    mllvm_options,
    option_key,
    parse_jobs,
    with_mllvm,
)

ANY = st.text(st.sampled_from(list("ab -=\\\"'$\n\t,@/.é")), max_size=8) | st.text(max_size=6)
PLAIN = st.sampled_from(["-O2", "-emit-obj", "-disable-free", "-target-cpu", "x86-64", "a b", "", "-D", "X=1"])
KEYS = ("a", "bb", "c-d", "e")


def printed(argv: list[str]) -> str:
    """clang/lib/Driver/Job.cpp, printArg with quotes: backslash before quote, backslash and dollar."""
    text = ""
    for argument in argv:
        escaped = "".join("\\" + char if char in '"\\$' else char for char in argument)
        text += f' "{escaped}"'
    return text + "\n"


@given(st.lists(st.lists(ANY, min_size=1, max_size=6), max_size=4), st.booleans())
def test_every_argument_comes_back(jobs: list[list[str]], around: bool) -> None:
    text = "".join(printed(argv) for argv in jobs)
    if around:
        text = "clang version 14.0.6\nTarget: x86_64\n (in-process)\n" + text + "clang: warning: unused\n"
    assert [list(job.argv) for job in parse_jobs(text)] == jobs


@given(st.text(max_size=60))
def test_any_text_is_read(text: str) -> None:
    for job in parse_jobs(text):
        assert job.argv


@st.composite
def spellings(draw: st.DrawFn) -> str:
    value = draw(st.sampled_from(["", "=1", "=x,y"]))
    return draw(st.sampled_from(["-", "--"])) + draw(st.sampled_from(KEYS)) + value


@given(
    st.lists(PLAIN | spellings().map(lambda option: f"-mllvm={option}") | spellings(), max_size=6),
    st.lists(spellings(), max_size=6),
)
def test_no_option_is_given_twice(present: list[str], added: list[str]) -> None:
    """Whatever was there stays as it was; what is added is added once, in front of the input."""
    argv = ["/c/clang", "-cc1"]
    for text in present:
        argv += ["-mllvm", text] if text.lstrip("-").partition("=")[0] in KEYS else [text]
    before = Counter(option_key(option) for option in mllvm_options(argv))
    result = with_mllvm([*argv, "-x", "c", "a.c"], added)
    after = Counter(option_key(option) for option in mllvm_options(result))
    assert all(after[key] == max(1, before[key]) for key in after)
    assert set(after) == set(before) | {option_key(option) for option in added}
    assert list(result[: len(argv)]) == argv and list(result[-3:]) == ["-x", "c", "a.c"]


@given(st.lists(PLAIN, max_size=6), st.lists(spellings(), max_size=4))
def test_a_back_end_writes_where_it_is_told(middle: list[str], options: list[str]) -> None:
    job = Job(("/c/clang", "-cc1", "-emit-obj", *middle, "-o", "old.o", "-x", "c", "a.c"), JobKind.COMPILE, "old.o")
    argv = back_end_argv(job, "in.bc", "new.o", options=options)
    assert argv[-3:] == ("-x", "ir", "in.bc") and argv.count("old.o") == middle.count("old.o")
    assert argv[argv.index("-o") + 1] == "new.o"


ARGUMENTS = st.sampled_from(
    ["-O2", "-mllvm", "-Xclang", "-x", "-I", "-D", "-a", "--a=1", "a.c", "b.o", "", "-", "-lm", "-mllvm=-a", "-Xarch_x"]
)


@given(st.lists(ANY | ARGUMENTS, max_size=10))
def test_split_loses_nothing_and_keeps_the_order(args: list[str]) -> None:
    found = split_arguments(args)
    rest = iter(args)
    for argument in found.flat:
        assert argument in rest, "the options stand in the user's order"
    rest = iter(args)
    assert all(name in rest for name in found.inputs)
    assert Counter([*found.flat, *found.inputs]) == Counter(args)


@given(st.lists(ARGUMENTS, max_size=10), st.sampled_from(KEYS))
def test_without_flags_leaves_no_spelling(args: list[str], key: str) -> None:
    bare = without_flags(split_arguments(args), [CompilerFlag(f"-{key}")])
    assert isinstance(bare, Arguments)
    assert key not in {option_key(value) for group in bare.options if (value := mllvm_value(group))}
