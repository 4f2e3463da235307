"""The files that the builds read: hashed at the start, at the end and where an answer surprises.

A source, a header or a library that changes while the search runs gives objects of two programs, which look like a
non-deterministic compiler or a fault of a pass.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future
from pathlib import Path

from mccprobe.base.errors import InputsChanged
from mccprobe.base.files import file_digest
from mccprobe.base.process import RunSpec, run
from mccprobe.bisection.passes.request import BisectRequest
from mccprobe.build.executor import Executor, Urgency
from mccprobe.targets import registry
from mccprobe.targets.llvm.command import is_source, language, split_arguments

_HEADERS = frozenset((".h", ".hh", ".hpp", ".hxx", ".inc", ".inl", ".cuh", ".muh", ".def"))
_IR = frozenset((".ll", ".bc"))
_LIST_LIMIT_S = 60.0
_WORD = re.compile(r"(?:\\.|[^\s\\])+")
_State = tuple[int, int, int, int, int]


class InputsWatch:
    """Remembers what the files held when it was made or told of them."""

    def __init__(self, request: BisectRequest, executor: Executor) -> None:
        self._states: dict[Path, tuple[_State, str]] = {}
        commands = [Path(word) for word in request.oracle.command]
        self.add([request.source, *map(Path, request.inputs), *commands, *_headers_near(request)])
        self._listed: list[Future[list[Path]]] = []
        if registry.target(request.toolchain.name).stock:
            forced = language(split_arguments(request.bad_args))
            for name in (str(request.source), *request.inputs):
                if is_source(name, forced) and Path(name).suffix not in _IR:
                    self._listed.append(executor.submit_as(Urgency.LATER, _headers_of, request, name))

    def add(self, paths: Iterable[Path]) -> None:
        """Remember these as well; what is no file, and what is remembered already, is passed over."""
        for path in paths:
            if path not in self._states and (found := _look(path)) is not None:
                self._states[path] = found

    def add_linked(self, argv: Sequence[str], run_root: Path) -> None:
        """The files and libraries in the command of a linker, without those of the run itself."""
        self.add(path for path in _linked(argv) if not path.is_relative_to(run_root))

    def settle(self) -> None:
        """Take the lists of headers that are ready."""
        for future in [one for one in self._listed if one.done()]:
            self._listed.remove(future)
            if not future.cancelled() and future.exception() is None:
                self.add(future.result())

    def require_unchanged(self) -> None:
        """Raise InputsChanged, with the names, if a file does not hold what it held."""
        self.settle()
        changed = []
        for path, (state, digest) in self._states.items():
            now = _state(path)
            if now != state:
                found = _look(path)
                if found is None or found[1] != digest:
                    changed.append(str(path))
        if changed:
            raise InputsChanged(changed)


def _state(path: Path) -> _State | None:
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns


def _look(path: Path) -> tuple[_State, str] | None:
    """State and hash of a regular file that can be read."""
    try:
        state = _state(path)
        return (state, file_digest(path)) if state is not None and path.is_file() else None
    except OSError:
        return None


def _headers_near(request: BisectRequest) -> list[Path]:
    try:
        return sorted(path for path in request.source.absolute().parent.iterdir() if path.suffix in _HEADERS)
    except OSError:
        return []


def _headers_of(request: BisectRequest, name: str) -> list[Path]:
    """What the preprocessor reads for this source, as the driver lists it."""
    argv = [*request.toolchain.driver, *request.bad_args, "-M", "-w", name]
    result = run(RunSpec(argv, timeout_s=_LIST_LIMIT_S))
    if not result.ok:
        return []
    rule = result.stdout_text.replace("\\\n", " ").partition(": ")[2]
    return [Path(re.sub(r"\\(.)", r"\1", word).replace("$$", "$")) for word in _WORD.findall(rule)]


def _linked(argv: Sequence[str]) -> Iterator[Path]:
    folders = [Path(word[2:]) for word in argv if word.startswith("-L") and len(word) > 2]
    for word in argv[1:]:
        if word.startswith("-l"):
            names = [f"lib{word[2:]}.so", f"lib{word[2:]}.a"]
            found = (folder / name for folder in folders for name in names)
            yield from [path for path in found if path.exists()][:1]
        elif not word.startswith("-"):
            yield Path(word)
