r"""The jobs of a clang-style driver: read from `-###`, edited as argv lists, replayed.

Flow: text of `-###` -> Job records -> front-end / back-end argv of one cc1 job. Pure text and
lists, no I/O. Why jobs and not driver options: on clang 14 `-mllvm` reaches host and device
compiles alike, `-Xarch_device -mllvm` is refused, and inside `-Xarch_device` the joined form is
only a warning, so that a probe silently does nothing. Editing the device cc1 is the one way that
holds.

`-###` prints one job a line: a space, then every argument in double quotes, in which a backslash
protects the next character (clang/lib/Driver/Job.cpp, Command::printArg).
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

DEVICE_TRIPLES = ("mtgpu", "mthg", "amdgcn", "nvptx", "spir")
_ARCH_IN_NAME = re.compile(r"(?<![A-Za-z0-9])(mp_\d+|gfx[0-9a-f]+|sm_\d+)(?![A-Za-z0-9_])")


class JobKind(StrEnum):
    """What a job does, judged by its arguments."""

    COMPILE = "compile"
    DEVICE_COMPILE = "device compile"
    HOST_COMPILE_WITH_IMAGE = "host compile with a device image"
    DEVICE_LINK = "device link"
    BUNDLE = "bundle"
    LINK = "link"
    OTHER = "other"


@dataclass(frozen=True)
class Job:
    """One process that the driver would start.

    output: the file it writes ("" where none is seen); arch: device architecture or "".
    """

    argv: tuple[str, ...]
    kind: JobKind
    output: str = ""
    arch: str = ""

    def substitute(self, paths: Mapping[str, str]) -> Job:
        """The same job with whole paths replaced, also inside `-opt=a,b` arguments."""

        def one(text: str) -> str:
            if text in paths:
                return paths[text]
            head, equals, tail = text.partition("=")
            if equals and any(old in tail for old in paths if old):
                return head + equals + ",".join(paths.get(part, part) for part in tail.split(","))
            return text

        argv = (self.argv[0], *(one(argument) for argument in self.argv[1:]))
        return replace(self, argv=argv, output=paths.get(self.output, self.output))


_LINKER = re.compile(r"(?:^|-)(?:ld|lld|collect2|mold|gold)(?![a-z])")  # x86_64-linux-gnu-ld, ld.lld-14, ld64.lld


def parse_jobs(text: str) -> tuple[Job, ...]:
    """Read the jobs out of a driver's `-###` output; other lines are passed over."""
    jobs = []
    position = 0
    while position < len(text):
        if text.startswith(' "', position) and (position == 0 or text[position - 1] == "\n"):
            argv, position = _read_arguments(text, position)
            jobs.append(_classify(tuple(argv)))
        end = text.find("\n", position)
        if end < 0:
            break
        position = end + 1
    return _mark_device_links(jobs)


def _read_arguments(text: str, position: int) -> tuple[list[str], int]:
    """Quoted arguments up to the line's end; a newline inside quotes belongs to the argument."""
    arguments = []
    while position < len(text) and text[position] != "\n":
        if text[position] != '"':
            position += 1
            continue
        position += 1
        characters = []
        while position < len(text) and text[position] != '"':
            if text[position] == "\\" and position + 1 < len(text):
                position += 1
            characters.append(text[position])
            position += 1
        position += 1
        arguments.append("".join(characters))
    return arguments, position


def value_after(argv: Sequence[str], option: str) -> str:
    """The argument behind `option`, "" where it is absent."""
    for index in range(len(argv) - 1):
        if argv[index] == option:
            return argv[index + 1]
    return ""


def _classify(argv: tuple[str, ...]) -> Job:
    tool = argv[0].rsplit("/", 1)[-1]
    output = value_after(argv, "-o")
    if len(argv) > 1 and argv[1] == "-cc1":
        triple = value_after(argv, "-triple")
        if "-fcuda-is-device" in argv or triple.startswith(DEVICE_TRIPLES):
            return Job(argv, JobKind.DEVICE_COMPILE, output, _device_arch(argv, triple, output))
        if "-fcuda-include-gpubinary" in argv:
            return Job(argv, JobKind.HOST_COMPILE_WITH_IMAGE, output)
        return Job(argv, JobKind.COMPILE, output)
    if "offload-bundler" in tool:
        for argument in argv:
            name, _, value = argument.lstrip("-").partition("=")
            if name in ("outputs", "output"):
                output = value
        return Job(argv, JobKind.BUNDLE, output)
    if _LINKER.search(tool):
        return Job(argv, JobKind.LINK, output)
    return Job(argv, JobKind.OTHER, output)


def _device_arch(argv: Sequence[str], triple: str, output: str) -> str:
    cpu = value_after(argv, "-target-cpu")
    if cpu and triple.startswith(DEVICE_TRIPLES):
        return cpu
    found = _ARCH_IN_NAME.search(output.rsplit("/", 1)[-1])
    return found.group(1) if found else cpu


def _mark_device_links(jobs: list[Job]) -> tuple[Job, ...]:
    """A link whose inputs are device objects is a device link."""
    outputs = {job.output: job.arch for job in jobs if job.kind is JobKind.DEVICE_COMPILE}
    marked = []
    for job in jobs:
        fed = [outputs[a] for a in job.argv[1:] if a in outputs] if job.kind is JobKind.LINK else []
        marked.append(replace(job, kind=JobKind.DEVICE_LINK, arch=fed[0]) if fed else job)
    return tuple(marked)


def with_stable_cuid(jobs: Iterable[Job], seed: str) -> tuple[Job, ...]:
    """Give the jobs a compilation-unit id that does not change from recording to recording.

    The driver draws a random `-cuid=` for each call (clang/lib/Driver/Driver.cpp, CUIDKind::Random). With
    it, no compile of a resumed run would be known again. It must only be the same for host and device.
    """
    fixed = "-cuid=" + hashlib.sha256(os.fsencode(seed)).hexdigest()[:16]

    def edited(job: Job) -> Job:
        if not any(argument.startswith("-cuid=") for argument in job.argv):
            return job
        argv = tuple(fixed if argument.startswith("-cuid=") else argument for argument in job.argv)
        return replace(job, argv=argv)

    return tuple(edited(job) for job in jobs)


# ---------------------------------------------------------------------------------------------
# options of the LLVM command line inside a cc1 argv


def option_key(text: str) -> str:
    """`--mtgpu-x=1` and `-mtgpu-x` are one option: "mtgpu-x" (LLVM's cl::opt takes one or two dashes)."""
    return text.lstrip("-").partition("=")[0]


def mllvm_options(argv: Sequence[str]) -> list[str]:
    """The `-mllvm` options of a driver or cc1 argv, in order, in all spellings."""
    found = []
    index = 0
    while index < len(argv):
        argument = argv[index]
        if argument == "-mllvm" and index + 1 < len(argv):
            # a driver may also be given `-Xclang -mllvm -Xclang OPTION`
            through = argv[index + 1] == "-Xclang" and index + 2 < len(argv)
            index += 2 if through else 1
            found.append(argv[index])
        elif argument.startswith("-mllvm="):
            found.append(argument[len("-mllvm=") :])
        index += 1
    return found


def with_mllvm(argv: Sequence[str], options: Iterable[str]) -> tuple[str, ...]:
    """Add LLVM options before the cc1 input. One that is there already keeps its value.

    clang 14 ends with an error when a single-valued option is given twice, even with one value.
    """
    present = {option_key(option) for option in mllvm_options(argv)}
    added: list[str] = []
    for option in options:
        if option_key(option) not in present:
            present.add(option_key(option))
            added += ["-mllvm", option]
    at = _input_index(argv)
    return (*argv[:at], *added, *argv[at:])


def replace_mllvm(argv: Sequence[str], options: Sequence[str]) -> tuple[str, ...]:
    """Add LLVM options; one that is there already loses its value to them: a trial asks for this very setting."""
    wanted = {option_key(option) for option in options}
    kept: list[str] = []
    index = 0
    while index < len(argv):
        width = 2 if argv[index] == "-mllvm" and index + 1 < len(argv) else 1
        group = argv[index : index + width]
        if not any(option_key(option) in wanted for option in mllvm_options(group)):
            kept += group
        index += width
    return with_mllvm(kept, options)


def _input_index(argv: Sequence[str]) -> int:
    """Index of the `-x LANGUAGE FILE` that ends a cc1 argv."""
    for index in range(len(argv) - 1, 0, -1):
        if argv[index] == "-x":
            return index
    return len(argv)


def cc1_input(argv: Sequence[str]) -> str:
    """The source of a cc1 argv, "" where none is seen."""
    at = _input_index(argv)
    return argv[at + 2] if at + 2 < len(argv) else ""


def emits_object(job: Job) -> bool:
    """True if this cc1 goes all the way to an object, so that every pass runs in it."""
    return "-emit-obj" in job.argv


def front_end_argv(job: Job, bitcode: str) -> tuple[str, ...]:
    """The cc1 that stops before the first pass: source -> bitcode.

    Measured on clang 14, 15, 16 and 19: from this bitcode the numbering and the object bytes are
    those of the direct compile; every run checks it once more on its own input.
    """
    argv = ["-emit-llvm-bc" if argument == "-emit-obj" else argument for argument in job.argv]
    return without_llvm_passes(_with_output(argv, bitcode))


def without_llvm_passes(argv: Sequence[str]) -> tuple[str, ...]:
    """The cc1 that runs no IR pass of its own (the code generator still runs if it emits an object)."""
    at = _input_index(argv)
    return (*argv[:at], "-disable-llvm-passes", *argv[at:])


def back_end_argv(
    job: Job,
    source: str,
    output: str,
    *,
    language: str = "ir",
    options: Iterable[str] = (),
    emit: str = "-emit-obj",
) -> tuple[str, ...]:
    """The cc1 from bitcode (language "ir") or from the source itself (language "") to an object."""
    argv = list(_with_output(with_mllvm(job.argv, options), output))
    if emit != "-emit-obj":
        argv = [emit if argument == "-emit-obj" else argument for argument in argv]
    if language:
        at = _input_index(argv)
        argv[at:] = ["-x", language, source]
    return tuple(argv)


def _with_output(argv: Sequence[str], output: str) -> tuple[str, ...]:
    result = list(argv)
    for index in range(len(result) - 1):
        if result[index] == "-o":
            result[index + 1] = output
            return tuple(result)
    at = _input_index(result)
    return (*result[:at], "-o", output, *result[at:])
