"""Readers of what runs leave and what users write: journals, run.json, TOML, command lines."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

from .reader import PARTS, as_file, files, lines_of, text_of

# ---- journals and run directories -----------------------------------------------------------------

TRIAL_LINES = lines_of(
    {"t": "journal", "version": 2},
    {"t": "compile", "id": "a", "label": "l", "limit": 3, "object": "0" * 64, "reason": "", "seconds": 0.5,
     "log": {"total": 9, "ran": 3, "function": "f", "function_from": "log", "at": [3, "P", "f", True], "around": ["x"]},
     "diagnostics": ""},
    {"t": "run", "object": "0" * 64, "oracle": "o", "ordinal": 0, "verdict": "GOOD", "reason": "", "max_err": 0.0,
     "seconds": 1.0},
    {"t": "note", "text": "x"},
)  # fmt: skip


@as_file("journal.jsonl")
def read_journal(path: Path) -> object:
    from mccprobe.build.journal import Journal
    from mccprobe.targets.llvm.opt_bisect import LogSummary

    journal = Journal(path)
    try:
        for entry in journal.compiles.values():
            log = LogSummary.from_dict(entry["log"])
            if log.at is not None:
                assert isinstance(log.at.function, str)
            float(entry["seconds"])
        return len(journal.runs)
    finally:
        journal.close()


def book_seed() -> list[bytes]:
    from mccprobe.journal.book import FORMAT
    from mccprobe.journal.entry import Entry, Figure
    from mccprobe.oracle.verdict import Verdict

    entry = Entry(
        "bench",
        "text",
        "why",
        "gemm",
        "abc-dirty",
        "sim",
        True,
        ("-O2", "--x=1"),
        Verdict.BAD,
        {"time": Figure(1.5, "ms")},
        {"ok": True, "mhz": 1750},
        "mccprobe-out/x",
        True,
        "aa11",
        "2026-01-02T03:04:05Z",
        "bb22",
    )
    note = replace(entry, kind="note", about="bb22", id="cc33", flags=())
    return [lines_of(FORMAT, entry.to_dict(), note.to_dict())]


@as_file("book.jsonl")
def read_book(path: Path) -> object:
    """journal list, show, dead-ends, compare and export."""
    from mccprobe.base.console import json_text
    from mccprobe.journal.book import Book
    from mccprobe.journal.review import dead_ends
    from mccprobe.report.text.journal import dead_end_lines, entry_lines, list_lines

    contents = Book(path).read()
    list_lines(contents.entries)
    for entry in contents.entries:
        entry_lines(entry)
        json_text(entry.to_dict())
    return dead_end_lines(dead_ends(contents.entries))


def run_seed() -> list[bytes]:
    from mccprobe.bisection.passes.options import BisectOptions

    options = BisectOptions(file="a.c", flags=("-O2",), args=("-lm",), max_runs=9)
    why = {
        "sets": ["gemm-s4000"],
        "steps": [],
        "also": [],
        "skip_screen": False,
        "reduce": False,
        "budget_s": 3.5,
        "bisect": options.to_dict(),
    }
    request = {
        "compiler": "/usr/bin/clang-14",
        "args": ["-O2"],
        "flags": [["-mllvm", "-x"]],
        "source": "a.c",
        "source_sha256": "0" * 64,
        "toolchain": "clang",
        "inputs": [],
        "link_args": [],
        "version": "14.0.6",
        "reference_args": ["-O0"],
        "oracle": {"kind": "reference"},
    }
    from mccprobe.tuning.flag_search.options import SearchOptions

    return [
        json.dumps(one).encode()
        for one in (
            {"options": options.to_dict(), "request": request},
            {"options": why, "request": request},
            {"search": SearchOptions().to_dict(), "request": request},
        )
    ]


def read_run_json(data: bytes, scratch: Path) -> object:
    """What --resume of each command reads first."""
    from mccprobe.base.errors import MccprobeError
    from mccprobe.bisection.passes.options import read_run_options
    from mccprobe.cli.run_session import check_unchanged, run_document
    from mccprobe.explain.options import read_why_options
    from mccprobe.tuning.flag_search.options import read_options

    (scratch / "run.json").write_bytes(data)
    document = run_document(scratch)
    for read in (read_run_options, read_why_options, read_options):
        try:
            json.dumps(read(document, scratch / "run.json").to_dict())
        except MccprobeError:
            continue
    check_unchanged(scratch, {"source": "a.c"}, journal=None)
    return None


def finished_seeds() -> list[bytes]:
    versioned = {"schema_version": 2}
    bisect, why, _ = (json.dumps(versioned | json.loads(seed)).encode() for seed in run_seed())
    found = {
        "schema_version": 2,
        "status": "found",
        "flags": ["-x"],
        "working_directory": ".",
        "culprit": {"title": "P", "execution": 3},
    }
    return [
        PARTS.join((bisect, json.dumps(found).encode())),
        PARTS.join((why, json.dumps({"schema_version": 2, "minimal_flag_sets": [["-x"]], "bisect": found}).encode())),
    ]


def read_finished(data: bytes, scratch: Path) -> object:
    """What bug-report reads of a run, and the properties that it asks for."""
    from mccprobe.explain.bundle.run import open_run

    asked, _, result = data.partition(PARTS)
    (scratch / "run.json").write_bytes(asked)
    (scratch / "result.json").write_bytes(result)
    run = open_run(scratch)
    return (
        run.source,
        run.flags,
        run.bad_args,
        run.flag_names,
        run.reference_link_args,
        run.inputs,
        run.culprit,
        run.rebuilt_options(),
    )


def search_seed() -> list[bytes]:
    trial = {
        "t": "trial",
        "ordinal": 1,
        "named": {"misched-postra": "-mllvm -misched-postra"},
        "state": "right",
        "verdict": "GOOD",
        "reason": "",
        "max_err": 0.5,
        "object": "ab",
        "value": 1.5,
        "samples": [1.0, 2.0],
        "same_as": None,
        "seconds": 0.1,
    }
    share = {
        "t": "share",
        "point": {},
        "against": {},
        "ratio": 0.9,
        "interval": [0.8, 1.0, 0.95],
        "exact": True,
        "reason": "",
        "again": False,
    }
    return [lines_of({"t": "journal", "version": 2}, {**trial, "named": {}}, share), lines_of(trial)]


@as_file("trials.jsonl")
def read_search_trials(path: Path) -> object:
    from mccprobe.tuning.flag_search.space import default_space
    from mccprobe.tuning.flag_search.trials import read_trials

    space = default_space("clang", None)
    trials, shares = read_trials(path, space)
    return [json.dumps(trial.line(space)) for trial in trials.values()], shares


# ---- our data files -------------------------------------------------------------------------------


@as_file("kernel.toml")
def read_kernel(path: Path) -> object:
    from mccprobe.oracle.kernel.spec import load_kernel
    from mccprobe.tuning.check.cases import plan_cases

    for name in ("gemm.mu", "narrow.mu", "gemm_main.mu"):
        (path.parent / name).touch()
    kernel = load_kernel(path)
    return plan_cases(replace(kernel, dispatch=kernel.dispatch[:1]), "sim", "default")


def kernel_seeds() -> list[bytes]:
    found = files("kernels/gemm/kernel.toml", "kernels/narrow/kernel.toml", "kernels/subwarp-divergence/kernel.toml")()
    return [one.replace(b"../common/", b"") for one in found]


def flag_seeds() -> list[bytes]:
    """One entry each of the shipped catalogue."""
    entries = [one for data in files("mccprobe/targets/*/data/flags.toml")() for one in data.split(b"[[flag]]")[1:12]]
    return [b"schema_version = 1\n\n[[flag]]" + one for one in entries]


@as_file("recipe.toml")
def read_recipe_file(path: Path) -> object:
    from mccprobe.bisection.passes.options import read_recipe

    return json.dumps(read_recipe(path).to_dict())


@as_file("space.toml")
def read_space(path: Path) -> object:
    from mccprobe.tuning.flag_search.space import load_space

    space = load_space(path, None)
    return space.size, [space.named(space.point_of({}))]


@as_file("flags.toml")
def read_catalogue(path: Path) -> object:
    from mccprobe.targets.flags.catalogue import load_catalogue

    catalogue = load_catalogue([path])
    return [catalogue.resolve_set(name) for name in catalogue.sets]


@as_file("set.toml")
def read_set(path: Path) -> object:
    from pathlib import PurePosixPath

    from mccprobe.build.wrapper.flagset import wrapper_sets
    from mccprobe.build.wrapper.script import generate

    return generate(Path(PurePosixPath("/opt/musa/bin/mcc")), wrapper_sets(str(path)))


SET_SEED = b"""schema_version = 1

[[set]]
name = "searched-gemm"
summary = "SIMULATED: gemm: time 0.9"
source = "mccprobe flags search"
flags = [
    "-O2",
    "-mllvm -enable-x",
]
"""


def read_expression(data: bytes, scratch: Path) -> object:
    from mccprobe.oracle.kernel.expression import Expression
    from mccprobe.oracle.kernel.records import parse_shape

    text = text_of(data)
    parse_shape(text)
    return Expression(text).evaluate({"M": 512, "N": 512, "K": 4096})


# ---- command lines --------------------------------------------------------------------------------


def read_arguments(data: bytes, scratch: Path) -> object:
    """A response file, and what is asked of its arguments."""
    from mccprobe.targets.llvm import command

    args = command.split_response_text(text_of(data))
    taken = command.split_arguments(args)
    for one in (
        command.own_to_set,
        command.without_side_outputs,
        command.with_one_language,
        command.link_options,
        command.compile_options,
        command.kept_in_reference,
        command.language,
    ):
        one(taken)
    command.without_flags(taken, map(command.flag_of, taken.options[::2]))
    return [command.is_source(name) for name in taken.inputs]


def read_flag_text(data: bytes, scratch: Path) -> object:
    from mccprobe.explain.options import parse_budget
    from mccprobe.tuning.check.subject import split_flags

    split_flags(text_of(data))
    return parse_budget(text_of(data)[:100])
