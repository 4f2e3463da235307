"""Probes of the command line: version, toolkit, jobs, limits, flags, environment."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

from mccprobe.base.errors import MccprobeError
from mccprobe.doctor.probes import probe
from mccprobe.doctor.subject import (
    CONFIRMED,
    NOT_RUNNING,
    RUNNING,
    SAID,
    Made,
    ProbeAnswer,
    Subject,
    Unasked,
    answer,
    no,
    why,
    yes,
)
from mccprobe.targets.flags.ask import REFUSALS, Compiler, ask_flags, ask_options
from mccprobe.targets.flags.catalogue import load_catalogue
from mccprobe.targets.flags.entries import Flag
from mccprobe.targets.llvm.jobs import JobKind, front_end_argv
from mccprobe.targets.llvm.probe import ARCHITECTURES, KERNEL, accepted_pins
from mccprobe.targets.mcc.target import TARGET as MCC
from mccprobe.targets.mcc.toolkit import toolkit_root

LLVM_MAJOR = 14  # of mcc 5.2.0 and of the article's 3.1.0
LIMIT = "-opt-bisect-limit"
VERSION_KEYS = frozenset({"musa_toolkits", "mcc"})  # of version.json, at least


@probe
def version_line(subject: Subject) -> ProbeAnswer:
    found = re.search(r"^mcc version \S.*$", subject.version_text, re.MULTILINE)
    return yes(found[0].strip()[:SAID]) if found else no(f"--version prints: {_flat(subject.version_text)}")


@probe
def clang_version(subject: Subject) -> ProbeAnswer:
    major = subject.toolchain.identify().clang_major
    found = re.search(r"^.*clang version .*$", subject.version_text, re.MULTILINE)
    return answer(major == LLVM_MAJOR, found[0].strip()[:SAID] if found else f"prints: {_flat(subject.version_text)}")


@probe
def toolkit_root_marks(subject: Subject) -> ProbeAnswer:
    mcc = subject.toolchain.identify().path
    root = toolkit_root(mcc, None)
    return yes(str(root)) if root else no(f"nothing of a toolkit above {mcc.resolve().parent}")


@probe
def toolkit_pins(subject: Subject) -> ProbeAnswer:
    mcc = subject.toolchain.identify().path
    taken = accepted_pins(mcc, subject.require_root(), subject.environment())
    return answer(len(taken) == 2, f"taken: {', '.join(taken) or 'neither'}")


@probe
def version_json(subject: Subject) -> ProbeAnswer:
    path = subject.require_root() / "version.json"
    try:
        document = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        return no(f"{path}: {error}")
    keys = sorted(document) if isinstance(document, dict) else []
    return answer(set(keys) >= VERSION_KEYS, f"keys: {', '.join(keys) or 'none'}")


@probe
def device_source(subject: Subject) -> ProbeAnswer:
    made = subject.object
    return answer(bool(made.data), f"{len(made.data)} bytes of object" if made.data else made.problem)


@probe
def offload_arch(subject: Subject) -> ProbeAnswer:
    taken = [arch for arch in ARCHITECTURES if subject.by_arch[arch].data]
    refused = [f"{arch}: {subject.by_arch[arch].problem}" for arch in ARCHITECTURES if arch not in taken]
    return answer(bool(taken), f"taken: {', '.join(taken) or 'none'}{'; ' if refused else ''}{'; '.join(refused)}")


@probe
def language_musa(subject: Subject) -> ProbeAnswer:
    argv = ["-x", "musa", "--musa-device-only", "-c", os.devnull, "-o", str(subject.folder / "nothing.o")]
    result = subject.run([*subject.toolchain.driver, *argv])
    return answer(result.ok, "an empty source compiles" if result.ok else why(result))


@probe
def jobs_shown(subject: Subject) -> ProbeAnswer:
    result = subject.jobs_text
    kinds = ", ".join(job.kind.value for job in subject.jobs)
    return answer(result.ok and bool(kinds), f"jobs: {kinds}" if kinds else f"no job is shown: {why(result)}")


def _shows(subject: Subject, kind: JobKind) -> ProbeAnswer:
    if not subject.jobs:
        raise Unasked("-### shows no job at all")
    found = next((job for job in subject.jobs if job.kind is kind), None)
    kinds = ", ".join(job.kind.value for job in subject.jobs)
    return yes(f"{Path(found.argv[0]).name} {found.arch}".strip()) if found else no(f"jobs: {kinds}")


@probe
def device_cc1(subject: Subject) -> ProbeAnswer:
    return _shows(subject, JobKind.DEVICE_COMPILE)


@probe
def device_link(subject: Subject) -> ProbeAnswer:
    return _shows(subject, JobKind.DEVICE_LINK)


@probe
def bundle_job(subject: Subject) -> ProbeAnswer:
    return _shows(subject, JobKind.BUNDLE)


@probe
def host_embeds(subject: Subject) -> ProbeAnswer:
    return _shows(subject, JobKind.HOST_COMPILE_WITH_IMAGE)


@probe
def cc1_replay(subject: Subject) -> ProbeAnswer:
    first = subject.replayed
    if not first.data:
        return no(first.problem)
    second = subject.replay("replayed-again.o").data
    same = first.data == second
    return answer(same, f"{len(first.data)} and {len(second)} bytes, {'equal' if same else 'different'}")


@probe
def bitcode_route(subject: Subject) -> ProbeAnswer:
    direct = subject.replayed.require("the object of the direct compile")
    bitcode = subject.folder / "front.bc"
    result = subject.run(front_end_argv(subject.require_job(JobKind.DEVICE_COMPILE), str(bitcode)))
    if not result.ok or not bitcode.is_file():
        return no(f"no bitcode: {why(result)}")
    made = subject.replay("from-bitcode.o", bitcode=bitcode)
    same = made.data == direct
    return answer(same, "equal objects" if same else made.problem or "the objects differ")


@probe
def bisect_log(subject: Subject) -> ProbeAnswer:
    made = subject.replay("unlimited.o", f"{LIMIT}=-1")
    if not made.result.ok:
        return no(made.problem)
    lines, elsewhere = made.result.stderr_text.count(RUNNING), made.result.stdout_text.count(RUNNING)
    if lines or not elsewhere:
        return answer(lines > 0, f"{lines} pass executions are logged" if lines else "no BISECT line is printed")
    return no(f"{elsewhere} BISECT lines are on standard output, none is on standard error")


@probe
def bisect_limit(subject: Subject) -> ProbeAnswer:
    at = {limit: subject.replay(f"limit{limit}.o", f"{LIMIT}={limit}") for limit in (-1, 0, 1)}
    failed = next((made for made in at.values() if not made.data), None)
    if failed is not None:
        return no(failed.problem)
    effect = _effect(at[0], at[-1])
    ran = _lines(at[1]).count(RUNNING)
    if effect.state != CONFIRMED or not _logs(at[1]):
        return effect
    return answer(ran == 1, f"{effect.evidence}; with limit 1 the log shows {ran} executions")


@probe
def mllvm_device(subject: Subject) -> ProbeAnswer:
    return _limit_of_driver(subject, LIMIT)


@probe
def mllvm_dashes(subject: Subject) -> ProbeAnswer:
    return _limit_of_driver(subject, f"-{LIMIT}")


def _limit_of_driver(subject: Subject, option: str) -> ProbeAnswer:
    """The limit as the driver's own option: the objects decide, whatever the log shows."""
    name = f"driver{option}"
    plain = subject.object.require("a device object")
    unlimited = subject.device("-mllvm", f"{option}=-1", "-c", name=f"{name}-all.o")
    if not unlimited.data:
        return no(unlimited.problem)
    none = subject.device("-mllvm", f"{option}=0", "-c", name=f"{name}-none.o")
    if not none.data:
        return no(none.problem)
    if plain != unlimited.data:
        raise Unasked("the object differs from compile to compile, so objects of two limits cannot be compared")
    return _effect(none, unlimited)


def _effect(none: Made, unlimited: Made) -> ProbeAnswer:
    """Whether limit 0 changes the object of the probe kernel, which every optimiser changes."""
    if none.data != unlimited.data:
        return yes("limit 0 and no limit give different objects")
    held = _lines(none).count(NOT_RUNNING)
    log = f"the log shows {held} passes as NOT running, and " if held else ""
    return no(f"the limit has no effect: {log}limit 0 and no limit give equal objects")


def _lines(made: Made) -> str:
    """The log, on whichever stream it is."""
    return made.result.stderr_text if "BISECT:" in made.result.stderr_text else made.result.stdout_text


def _logs(made: Made) -> bool:
    return "BISECT:" in _lines(made)


@probe
def unknown_option(subject: Subject) -> ProbeAnswer:
    made = subject.device("-mllvm", "-mccprobe-no-such-option", "-c", name="unknown.o")
    if made.data:
        return no("an option that nobody knows is taken in silence")
    return answer(bool(REFUSALS.search(made.result.stderr_text)), made.problem)


@probe
def help_hidden(subject: Subject) -> ProbeAnswer:
    try:
        found = ask_options(subject.toolchain)
    except MccprobeError as error:
        return no(error.message[:SAID])
    return yes(f"{len(found.options)} options")


def _taken(subject: Subject, flags: list[Flag]) -> ProbeAnswer:
    compiler: Compiler = subject.toolchain
    refused, silent = [], []
    for said in ask_flags(compiler, flags):
        if said.state == "refused":
            refused.append(said.flag.name)
        elif said.state == "unknown":
            silent.append(said.flag.name)
        subject.check_time()
    if refused:
        return no(f"refused: {', '.join(refused)}")
    if silent:
        raise Unasked(f"no clear answer for: {', '.join(silent)}")
    return yes(f"all {len(flags)} are taken")


def _catalogue(*confidences: str) -> list[Flag]:
    flags = load_catalogue().flags.values()
    return [f for f in flags if f.option == "mllvm" and MCC.options_of in f.compilers and f.confidence in confidences]


@probe
def shipped_flags(subject: Subject) -> ProbeAnswer:
    return _taken(subject, _catalogue("S", "I"))


@probe
def article_flags(subject: Subject) -> ProbeAnswer:
    return _taken(subject, _catalogue("A"))


@probe
def no_compile_cache(subject: Subject) -> ProbeAnswer:
    first = subject.object.require("a device object")
    kept = subject.source.read_bytes()
    try:
        subject.source.write_text(KERNEL.format(factor="3.0f"), encoding="utf-8")
        second = subject.device("-c", name="changed.o")
    finally:
        subject.source.write_bytes(kept)
    if not second.data:
        raise Unasked(f"the changed source does not compile: {second.problem}")
    return answer(first != second.data, "the object changes" if first != second.data else "the same object comes again")


@probe
def quiet_environment(subject: Subject) -> ProbeAnswer:
    env = {name: value for name, value in subject.environment().items() if not name.startswith("MUSA_")}
    target = subject.folder / "quiet.o"
    argv = [*subject.toolchain.driver, "-O2", "--musa-device-only", "-c", str(subject.source), "-o", str(target)]
    result = subject.run(argv, env)
    return answer(result.ok and target.is_file(), "compiles without any" if result.ok else why(result))


def _flat(text: str) -> str:
    return " ".join(text.split())[:SAID] or "nothing"
