"""A compile as it travels to another machine, and what is done with it there: no disk is shared.

An input travels with every file that the front end reads for it, and the compiler finds them under their own
names through a virtual file system, so that the object is the one that would be made at home. Nothing here
knows how things are sent.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import json
import os
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from mccprobe import __version__
from mccprobe.base.files import file_digest
from mccprobe.base.process import RunSpec, run
from mccprobe.build.job import OUTPUT, SCRATCH, CompileJob, CompileOutcome, compile_once
from mccprobe.build.store import TEMPORARY, disk_errors
from mccprobe.targets.llvm.jobs import cc1_input, value_after

QUERY_S = 30.0  # of `--version` and of the list of a compiler's libraries
DEPENDENCIES_S = 120.0  # of one preprocessing; a header-heavy unit takes a second
# what steers a compile and is no secret; the rest of this machine's environment stays here
STEERING = ("MUSA_", "MCCSIM_", "CCC_", "SOURCE_DATE_EPOCH", "LC_ALL", "CCACHE_DISABLE", "SCCACHE_RECACHE")


@dataclass(frozen=True)
class Travelling:
    """One compile as it goes to a worker.

    named: further files of the command line, such as plugins, which the worker finds in its own folder.
    read: the input and what the front end reads, under their own names. folder: the working directory here.
    """

    job: CompileJob
    compiler: str
    digest: str
    named: tuple[str, ...]
    read: tuple[str, ...]
    folder: str


@dataclass(frozen=True)
class StaysHere:
    """Why a compile does not travel."""

    why: str


# ---- at home ------------------------------------------------------------------------------------


def overlay_text(places: Mapping[str, str]) -> str:
    """clang's -ivfsoverlay: virtual path -> file. It keeps the virtual names (`__FILE__`, debug info)."""
    folders: dict[str, list[dict[str, str]]] = {}
    for name, place in places.items():
        folder, _, last = name.rpartition("/")
        folders.setdefault(folder or "/", []).append({"type": "file", "name": last, "external-contents": place})
    roots = [{"type": "directory", "name": name, "contents": entries} for name, entries in folders.items()]
    return json.dumps({"version": 0, "case-sensitive": "true", "use-external-names": "false", "roots": roots})


def dependency_names(text: str) -> list[str]:
    """The prerequisites of the one rule of a make dependency file."""
    names, current = [], ""
    characters = iter(text.partition(":")[2].replace("\\\n", " ").rstrip("\n"))
    for character in characters:
        if character == "\\":
            following = next(characters, "")
            current += following if following in " #\\" else character + following
        elif character == "$":
            current += next(characters, "")
        elif character.isspace():
            names += [current] if current else []
            current = ""
        else:
            current += character
    return [*names, current] if current else names


def compiler_of(argv: Sequence[str]) -> str:
    """The compiler whose single process this command is, "" for a driver or another program: those stay here."""
    at = next((index for index, argument in enumerate(argv[:4]) if argument == "-cc1"), 0)
    return argv[at - 1] if at else ""


class Packer:
    """Makes compiles ready to travel; what a source reads is asked once."""

    def __init__(self) -> None:
        self._read: dict[tuple[str, ...], tuple[str, ...]] = {}

    def pack(self, job: CompileJob) -> Travelling | StaysHere:
        """The compile as it travels, or why it stays."""
        compiler = compiler_of(job.argv)
        if not compiler:
            return StaysHere(f"{Path(job.argv[0]).name}: not the compile of one process: done here")
        folder = job.cwd or Path.cwd()
        named = [one for one in job.argv[1:] if one.startswith("/") and one != compiler and Path(one).is_file()]
        read: tuple[str, ...] = ()
        given = cc1_input(job.argv)
        if value_after(job.argv, "-x") == "ir" and given:
            read = (os.path.normpath(folder / given),)
        elif given:
            read = self._front_end_reads(job, compiler, folder)
        if not read:
            return StaysHere("a source whose includes cannot be listed: done here")
        named = [one for one in named if os.path.normpath(one) not in read]
        env = {
            name: value for name, value in job.env.items() if name.startswith(STEERING) or os.environ.get(name) != value
        }
        sent = replace(job, env=env)
        return Travelling(sent, compiler, compiler_digest(compiler), tuple(named), read, str(folder))

    def _front_end_reads(self, job: CompileJob, compiler: str, folder: Path) -> tuple[str, ...]:
        """Every file that the front end reads, as absolute paths without dots; () if they cannot be listed."""
        argv = [os.devnull if one == OUTPUT else one for one in job.argv[job.argv.index(compiler) :]]
        key = tuple(_without_llvm_options(argv))  # they say nothing about what is read
        if key not in self._read:
            with disk_errors(job.trials), tempfile.TemporaryDirectory(prefix="reads-", dir=job.trials) as scratch:
                listed = Path(scratch, "list")
                asked = [*argv, "-Eonly", "-dependency-file", str(listed), "-MT", "x", "-sys-header-deps"]
                env = {name: value.replace(SCRATCH, scratch) for name, value in job.env.items()}
                result = run(RunSpec(asked, cwd=folder, env=env, timeout_s=DEPENDENCIES_S))
                names = dependency_names(listed.read_text("utf-8", "surrogateescape")) if result.ok else []
            self._read[key] = tuple(dict.fromkeys(os.path.normpath(folder / name) for name in names))
        return self._read[key]


def _without_llvm_options(argv: Sequence[str]) -> Iterator[str]:
    rest = iter(argv)
    for argument in rest:
        if argument == "-mllvm":
            next(rest, None)
        else:
            yield argument


# ---- there --------------------------------------------------------------------------------------


def compiler_digest(path: str) -> str:
    """SHA-256 of a compiler: its file, the libraries that it loads, what it says of itself. "" if it is not there."""
    try:
        resolved = Path(path).resolve(strict=True)
        state = resolved.stat()
    except OSError:
        return ""
    return _digest_of(str(resolved), path, state.st_size, state.st_mtime_ns)


@functools.lru_cache(maxsize=64)
def _digest_of(resolved: str, path: str, size: int, changed_ns: int) -> str:
    """Of one state of the file (size and time only tell the cache that it changed)."""
    parts = [file_digest(Path(resolved))]
    with Path(resolved).open("rb") as file:
        is_elf = file.read(4) == b"\x7fELF"
    if is_elf:  # the loader itself lists what it would load, and runs nothing
        listed = run(RunSpec([resolved], env={**os.environ, "LD_TRACE_LOADED_OBJECTS": "1"}, timeout_s=QUERY_S))
        for line in listed.stdout_text.splitlines():
            library = line.partition("=>")[2].split()
            if library and Path(library[0]).is_file():
                parts.append(file_digest(Path(library[0])))
    parts.append(run(RunSpec([path, "--version"], timeout_s=QUERY_S)).stdout_text)
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()


def refusal(compiler: str, digest: str, version: str) -> str:
    """Why this machine must not answer, "" if it may. compiler: "" where none is needed."""
    if __version__ != version:
        return f"it has mccprobe {__version__}, not {version}"
    here = compiler_digest(compiler) if compiler else digest
    if here == digest:
        return ""
    return f"its {compiler} is another compiler ({here[:12]}, not {digest[:12]})" if here else f"it has no {compiler}"


def compile_there(sent: Travelling, files: Mapping[str, bytes]) -> tuple[CompileOutcome, bytes | None]:
    """One compile in a folder of its own, which is removed; with the object's bytes."""
    with _folder() as scratch:
        root = scratch / "root"
        places = {name: Path(f"{root}{name}") for name in files}
        for name, data in files.items():
            places[name].parent.mkdir(parents=True, exist_ok=True)
            places[name].write_bytes(data)
        objects, trials, cwd = scratch / "objects", scratch / "trials", Path(f"{root}{sent.folder}")
        for folder in (objects, trials, cwd):
            folder.mkdir(parents=True, exist_ok=True)
        argv = [str(places[one]) if one in sent.named else one for one in sent.job.argv]
        if sent.read:
            overlay = scratch / "overlay.json"
            overlay.write_text(overlay_text({name: str(places[name]) for name in sent.read}))
            argv += ["-ivfsoverlay", str(overlay)]
        env = {**os.environ, **sent.job.env}
        outcome = compile_once(replace(sent.job, argv=tuple(argv), env=env, objects=objects, trials=trials, cwd=cwd))
        made = (objects / outcome.object).read_bytes() if outcome.object is not None else None
        return replace(outcome, diagnostics=outcome.diagnostics.replace(str(root), "")), made


@contextlib.contextmanager
def _folder() -> Iterator[Path]:
    """A folder of the worker for one job. What the file system says against it is RunDirectoryUnusable."""
    place = Path(tempfile.gettempdir())
    with disk_errors(place, elsewhere=TEMPORARY), tempfile.TemporaryDirectory(prefix="mccprobe-worker-") as name:
        yield Path(name)


def run_there(function: Callable[..., Any], files: Mapping[str, bytes]) -> Any:
    """`function(program, scratch, *beside)` with the files as the programs, each in a folder of its own."""
    with _folder() as scratch:
        (scratch / "run").mkdir()
        programs = []
        for number, data in enumerate(files.values()):
            program = scratch / str(number) / "program"  # one length of path for all: it is in the process's memory
            program.parent.mkdir()
            program.write_bytes(data)
            program.chmod(0o755)
            programs.append(program)
        return function(programs[0], scratch / "run", *programs[1:])
