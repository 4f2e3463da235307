"""The reproducer of a bug report, built and run once where the report is made; and its bitcode."""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from mccprobe.base.errors import MccprobeError
from mccprobe.base.process import RunSpec, run
from mccprobe.build.step import run_step
from mccprobe.explain.bundle.making import Making
from mccprobe.explain.bundle.repro import Check, Repro, ReproBuild
from mccprobe.explain.bundle.run import FinishedRun
from mccprobe.explain.bundle.sources import Layout, map_paths
from mccprobe.oracle.checks import observe_files
from mccprobe.oracle.written import Written
from mccprobe.report.bug_report import bisect_part, title_pieces
from mccprobe.report.bug_report_words import load_words, plain_text
from mccprobe.targets import registry
from mccprobe.targets.llvm.command import is_cxx
from mccprobe.targets.llvm.inherited import mapped
from mccprobe.targets.llvm.jobs import JobKind
from mccprobe.targets.protocol import Toolchain

REPRO_TIMEOUT_S = 1800.0  # of one compile, and of repro.sh: ends what hangs
PROGRAM = "PROGRAM"


def make_repro(making: Making, temporary: Path) -> tuple[Repro, dict[str, Any]]:
    """The reproducer, and how the bad build's program ends here ({} where it was not built)."""
    finished, layout = making.run, making.layout
    request = finished.request

    def mapped(args: Sequence[str]) -> tuple[str, ...]:
        return map_paths(args, lambda value: layout.place(finished.where / value))

    own = ReproBuild("bad", mapped(finished.bad_args), mapped(request["link_args"]))
    reference_args = request.get("reference_args")
    reference = None
    if reference_args is not None:
        reference = ReproBuild("good", mapped(reference_args), mapped(finished.reference_link_args))
    kind, command, run_args = str(request["oracle"][0]), list(request["oracle"][1]), list(request["oracle"][2])
    cxx = "++" not in Path(request["compiler"]).name and is_cxx(finished.source.name)
    told = {**finished.result, "bad_args": finished.bad_args}
    shown = bisect_part(finished.result).get("reproduce") or {}
    setarch = any("setarch" in argv[:3] for argv in shown.get("bad", []))  # behind `env NAME=VALUE`, where that is
    taken = carried_environment(finished, layout)
    present = {path.relative_to(making.staging).as_posix() for path in making.staging.rglob("*") if path.is_file()}
    repro = Repro(
        title=making.scrubber.text(plain_text(title_pieces(told, load_words("en")))),
        toolchain=str(request["toolchain"]),
        simulated=bool(finished.result.get("simulated")),
        compiler=Path(request["compiler"]).name,
        driver_args=registry.target(str(request["toolchain"])).cxx_arguments if cxx else (),
        source=layout.place(finished.source),
        inputs=tuple(layout.place(path) for path in finished.inputs),
        bad=own,
        reference=reference,
        check=_check(kind, command, run_args, finished, layout),
        files={name: (making.staging / name).read_bytes() for name in sorted(layout.names.values()) if name in present},
        fixed_addresses=setarch,
        executable=frozenset(name for name in present if os.access(making.staging / name, os.X_OK)),
        inherited=taken,
        configuration=carried_configuration(finished, layout),
    )
    bad: dict[str, Any] = {}
    if making.toolchain is not None:
        making.toolchain.inherited = taken
        work = temporary / "work"
        shutil.copytree(making.staging, work)
        if reference is not None and kind == "reference":
            ended = _build_and_run(repro, reference, making.toolchain, work)
            if ended is not None:
                text = making.scrubber.text(ended[0].decode("utf-8", "surrogateescape"))
                check = replace(
                    repro.check,
                    expected=text.encode("utf-8", "surrogateescape"),
                    expected_status=ended[1],
                    files=_compared_files(making, ended[2]),
                )
                repro = replace(repro, check=check)
        ended = _build_and_run(repro, own, making.toolchain, work)
        if ended is not None:
            bad = {"sha256": hashlib.sha256(ended[0]).hexdigest(), "status": ended[1]}
    return repro, bad


def _compared_files(making: Making, written: Sequence[Written]) -> dict[str, bytes]:
    """The files that the run compared, as far as they are small and hold nothing private."""
    observed = bisect_part(making.run.result).get("observed") or {}
    names = {one["name"] for one in observed.get("files") or [] if one["compared"]}
    found = {one.name: one.head for one in written if one.name in names and one.whole}
    return {
        name: data
        for name, data in found.items()
        if making.scrubber.text(data.decode("utf-8", "surrogateescape")).encode("utf-8", "surrogateescape") == data
    }


def carried_environment(finished: FinishedRun, layout: Layout) -> dict[str, str]:
    """Variables of the environment that were in every compile, with the bundle's folders."""

    def place(value: str) -> str:
        return layout.place(finished.where / value)

    return mapped(finished.inherited, place, lambda args: map_paths(args, place))


def carried_configuration(finished: FinishedRun, layout: Layout) -> str:
    """Where the file of options that the compiler read by itself lies in the bundle, "" if there was none."""
    path = finished.configuration
    return layout.place(path) if path is not None and path.is_file() else ""


def _check(kind: str, command: Sequence[str], run_args: Sequence[str], finished: FinishedRun, layout: Layout) -> Check:
    options, oracle = finished.options, finished.request["oracle"]
    if kind == "kernel":
        argv = [PROGRAM, "--case", str(oracle[3]), "--seed", str(oracle[4]), "--input", "random", "--json"]
    elif kind == "command":
        argv = [layout.place(finished.where / part) if (finished.where / part).is_file() else part for part in command]
        if not any("{exe}" in part for part in argv):
            argv.append("{exe}")
        argv = [part.replace("{exe}", PROGRAM) for part in argv]
    else:
        argv = [PROGRAM, *run_args]
    return Check(
        kind,
        tuple(argv),
        options.timeout,
        bad_if_timeout="timeout" in options.bad_if,
        bad_if_crash="crash" in options.bad_if,
        stdin=layout.place(finished.stdin) if finished.stdin else "",
    )


def _build_and_run(
    repro: Repro, build: ReproBuild, toolchain: Toolchain, work: Path
) -> tuple[bytes, int, tuple[Written, ...]] | None:
    """Output, status and written files of one program, made as repro.sh makes it; None when that does not work."""
    rest = repro.reference.args if repro.reference else repro.bad.args
    for argv in build.commands(repro.source, repro.inputs, rest):
        command, output = (*toolchain.driver, *argv), work / argv[argv.index("-o") + 1]
        env = toolchain.environment(work)
        done = run_step(command, output, scratch=work, env=env, timeout_s=REPRO_TIMEOUT_S, cwd=work)
        if done.failure:
            return None
    argv = [part.replace(PROGRAM, f"./{build.name}") for part in repro.check.command]
    stdin = work / repro.check.stdin if repro.check.stdin else None
    if not argv[0].startswith("./"):
        return None
    seen = observe_files(work / argv[0], work, args=argv[1:], timeout_s=repro.check.timeout_s, stdin=stdin)
    if seen.result.returncode is None or seen.result.timed_out:
        return None
    return seen.result.stdout, seen.result.returncode, seen.files


def try_repro(making: Making, temporary: Path, missing: str) -> tuple[int | None, str]:
    """Run repro.sh alone in an empty folder."""
    if making.toolchain is None:
        return None, missing
    empty = temporary / "empty"
    empty.mkdir()
    shutil.copyfile(making.staging / "repro.sh", empty / "repro.sh")
    argv = ["sh", "repro.sh", making.toolchain.driver[0]]
    result = run(RunSpec(argv, cwd=empty, env={**os.environ, "TMPDIR": str(temporary)}, timeout_s=REPRO_TIMEOUT_S))
    lines = result.stdout_text.strip().splitlines()
    text = making.scrubber.text(lines[-1] if lines else result.describe())
    return (None if result.timed_out else result.returncode), text


def add_bitcode(making: Making, temporary: Path) -> str:
    """Bitcode before the first optimisation, from source/ with relative names. Returns why there is none."""
    assert making.toolchain is not None
    finished = making.run
    args = map_paths(finished.bad_args, lambda value: making.layout.place(finished.where / value))
    source = making.layout.place(finished.source)
    work = temporary / "work"
    maps = [f"-ffile-prefix-map={work}=.", f"-ffile-prefix-map={work.resolve()}=."]
    try:
        recording = making.toolchain.record([*args, *maps, "-c", str(work / source), "-o", str(work / "all.o")], work)
    except MccprobeError as error:
        return error.message
    jobs = [job for job in recording.jobs if job.kind is JobKind.DEVICE_COMPILE]
    jobs = jobs or [job for job in recording.jobs if job.kind is JobKind.COMPILE]
    counter = making.toolchain.counter
    if counter is None or not counter.has_ir:
        return f"{making.toolchain.name} shows no intermediate code"
    for job in jobs:
        name = f"bitcode/{Path(source).stem}{'-' + job.arch if job.arch and len(jobs) > 1 else ''}.bc"
        output = work / "out.bc"
        argv = [
            source if argument == str(work / source) else _without_folder(argument)
            for argument in counter.front_end(job, str(output))
        ]
        result = run(RunSpec(argv, cwd=work, env=making.toolchain.environment(work), timeout_s=REPRO_TIMEOUT_S))
        if not result.ok or not output.is_file():
            return f"the front end alone {result.describe()}"
        making.add(name, output.read_bytes(), "bitcode")
    return "" if jobs else "the driver shows no compile"


def _without_folder(argument: str) -> str:
    """A cc1 argument without the folder that the driver ran in: it would stand in the debug information."""
    for option in ("-fdebug-compilation-dir=", "-fcoverage-compilation-dir="):
        if argument.startswith(option):
            return f"{option}."
    return argument
