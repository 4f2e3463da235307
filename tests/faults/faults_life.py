"""Lives of one command: begun, killed, resumed until it ends, and what must hold over all of them.

A Scene is a command with its inputs. A Chain runs it in a folder of its own; each life may end by SIGKILL. After
each death and at the end the chain looks at what can be seen from outside: journals, logs that the compiler and
the program wrote, processes, temporary files.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
TESTS = HERE.parent
FAKES = TESTS / "fakes"
PROGRAMS = TESTS / "cli" / "programs"
CLEAN_UP_S = 5.0  # what a killed run leaves is gone by then, on the busiest machine
LIFE_S = 600.0  # ends a hang; measures nothing
VOLATILE = frozenset("seconds phases compiles runs replayed counters run_directory working_directory resumed".split())
TAG = "FAULTS_PLACE"  # in the environment of every process of a chain


@dataclass(frozen=True)
class Scene:
    """A command with its inputs.

    command: words of mccprobe before the options. options: before `--`; after: behind it.
    """

    name: str
    command: tuple[str, ...]
    options: tuple[str, ...]
    after: tuple[str, ...]
    files: tuple[Path, ...] = ()
    width: int = 1


FIELD = (PROGRAMS / "field.c", PROGRAMS / "field.h", PROGRAMS / "field_main.c", HERE / "tells.c")
LOOP = ("field.c", "--flag", "-enable-loopinterchange")
REST = ("-O3", "field_main.c", "tells.c")
KNOWN = TESTS / "flag_search"
SCENES = {
    scene.name: scene
    for scene in (
        Scene("bisect", ("bisect",), LOOP, REST, FIELD),
        Scene("profile", ("bisect",), (*LOOP, "--profile"), REST, FIELD),
        Scene("why", ("why",), LOOP, REST, FIELD),
        Scene(
            "search", ("flags", "search"),
            ("known.c", "--space", "known.toml", "--objective", "code-size", "--strategy", "exhaustive"),
            ("-O1", "-fno-unroll-loops", "tells.c", "-lm"),
            (KNOWN / "known.c", KNOWN / "known.toml", HERE / "tells.c"),
        ),
    )
}  # fmt: skip


@dataclass(frozen=True)
class Moment:
    """When to kill: at a step (of those whose path holds `on`), or after seconds."""

    step: int = 0
    on: str = ""
    seconds: float = 0.0


@dataclass(frozen=True)
class Death:
    """How a life ended: at which step, or after how long."""

    kind: str
    path: str = ""


@dataclass
class Life:
    """One process of the command."""

    command: str
    code: int
    stdout: str
    stderr: str
    death: Death | None = None
    steps: int = 0

    def __str__(self) -> str:
        ended = f"$ {self.command}\nexit {self.code}"
        return f"{ended}\n--- stdout\n{self.stdout[-3000:]}\n--- stderr\n{self.stderr[-3000:]}"


@dataclass
class Answer:
    """What a finished chain gave: the exit code and the document without times and counts of one life."""

    code: int
    document: Any
    journalled: Counter[str]
    ran: Counter[str]


@dataclass(frozen=True)
class Undisturbed:
    """A run that nothing happened to: its answer, steps, time and folder."""

    answer: Answer
    steps: int
    seconds: float
    run: Path


class Chain:
    """One scene in a folder of its own."""

    python = sys.executable

    def __init__(self, scene: Scene, place: Path, cache: Path, *, run: str = "run") -> None:
        self.scene, self.place, self.cache = scene, place, cache
        self.cwd, self.tmp, self.logs = place / "cwd", place / "tmp", place / "logs"
        for folder in (self.cwd, self.tmp, self.logs):
            folder.mkdir(parents=True)
        for path in scene.files:
            shutil.copy(path, self.cwd)
        self.run = self.cwd / run
        self.given: list[str] = []  # arguments of every life, where the scene's are not meant
        self.more: dict[str, str] = {}  # set in the environment of every life
        self.prefix: tuple[str, ...] = ()
        self.root = Path("/")  # where the lives' files are seen from here
        self.lives: list[Life] = []
        self.kept: dict[Path, bytes] = {}

    def enter(self, prefix: tuple[str, ...], root: Path) -> None:
        """The next lives run behind `prefix`, in a namespace whose files are seen below `root`."""
        self.prefix, self.root = (*prefix, "env", "-C", str(self.cwd)), root

    def seen(self, path: Path) -> Path:
        return self.root / path.relative_to("/")

    # -- one life --------------------------------------------------------------------------------

    def environment(self, more: Mapping[str, str] | None = None) -> dict[str, str]:
        return {
            **os.environ,
            "PYTHONSAFEPATH": "1",
            "MCCPROBE_CACHE": str(self.cache),
            "TMPDIR": str(self.tmp),
            "FAKE_LOG": str(self.logs / "compiles"),
            "RUN_LOG": str(self.logs / "runs"),
            TAG: str(self.place),
            **self.more,
            **(more or {}),
        }

    def arguments(self) -> list[str]:
        """The next life's: from the start as long as nothing can be resumed, then --resume."""
        if self.given:
            return self.given
        scene = self.scene
        jobs = ("--jobs", str(scene.width), "--json")
        run = str(self.run.relative_to(self.cwd)) if self.root == Path("/") else str(self.run)
        if (self.seen(self.run) / "run.json").is_file():
            return [*scene.command, "--resume", run, *jobs]
        compiler = ("--compiler", str(FAKES / "mcc_keeps_a_log"), "--toolchain", "clang")
        return [*scene.command, *scene.options, *compiler, *jobs, "-o", run, "--", *scene.after]

    def begin(self, argv: Sequence[str], more: Mapping[str, str] | None = None) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [*self.prefix, *argv],
            cwd=self.cwd,
            env=self.environment(more),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            errors="replace",
            start_new_session=True,
        )

    def live(self, *, die_at: int = 0, on: str = "", how: str = "before", number: int = signal.SIGKILL) -> Life:
        """A life that gets a signal at its n-th step (0: none); with `on` only steps count whose path holds it."""
        told = self.logs / "told"
        told.unlink(missing_ok=True)
        arguments = self.arguments()
        more = {
            "DIE_AT": str(die_at),
            "DIE_ON": on,
            "DIE_HOW": how,
            "DIE_OF": str(int(number)),
            "DIE_IN": str(self.place),
            "DIE_TOLD": str(told),
        }
        process = self.begin([sys.executable, str(HERE / "die_at.py"), *arguments], more)
        stdout, stderr = process.communicate(timeout=LIFE_S)
        first, second, *rest = (told.read_text().split(maxsplit=2) if told.is_file() else ["0", "?"]) + [""]
        life = Life(" ".join(arguments), process.returncode, stdout, stderr)
        if first == "count":
            life.steps = int(second)
        elif process.returncode == (-number if number == signal.SIGKILL else 130):
            life.steps, life.death = int(first), Death(second, os.path.relpath(rest[0].strip() or "?", self.run))
        return self._over(life)

    def live_for(self, seconds: float, number: int = signal.SIGKILL) -> Life:
        """A life that gets a signal after this time, whatever it is doing."""
        arguments = self.arguments()
        process = self.begin([sys.executable, "-m", "mccprobe", *arguments])
        try:
            stdout, stderr = process.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            process.send_signal(number)
            stdout, stderr = process.communicate(timeout=LIFE_S)
        life = Life(" ".join(arguments), process.returncode, stdout, stderr)
        if process.returncode == -number:
            life.death = Death(f"after {seconds:.2f} s")
        return self._over(life)

    def live_until(self, ready: Callable[[], bool], after_s: float) -> Life:
        """A life that is killed outright so long after `ready`, if it has not ended by then."""
        arguments = self.arguments()
        process = self.begin([sys.executable, "-m", "mccprobe", *arguments])
        deadline = time.monotonic() + LIFE_S
        while process.poll() is None and not ready() and time.monotonic() < deadline:
            time.sleep(0.005)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(after_s)
        process.kill()
        stdout, stderr = process.communicate(timeout=LIFE_S)
        life = Life(" ".join(arguments), process.returncode, stdout, stderr)
        if process.returncode == -signal.SIGKILL:
            life.death = Death(f"{after_s:.2f} s after it was ready")
        return self._over(life)

    def _over(self, life: Life) -> Life:
        self.lives.append(life)
        assert "Traceback" not in life.stderr and "bug in mccprobe" not in life.stderr, life
        self._nothing_lives()
        self._nothing_lost()
        return life

    # -- what must hold --------------------------------------------------------------------------

    def _nothing_lives(self) -> None:
        deadline = time.monotonic() + CLEAN_UP_S
        while left := processes_of(self.place):
            if time.monotonic() > deadline:
                for pid in left:
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(pid, signal.SIGKILL)
                raise AssertionError(f"processes left running: {left}\n{self.lives[-1]}")
            time.sleep(0.01)
        files = below(self.tmp)
        assert not files, f"temporary files left: {files}\n{self.lives[-1]}"

    def journals(self) -> list[Path]:
        return sorted(self.seen(self.cwd).rglob("journal.jsonl"))

    def _nothing_lost(self) -> None:
        """Every whole line that a journal held is still there, at its place."""
        for path in self.journals():
            data = path.read_bytes()
            before = self.kept.get(path, b"")
            assert data.startswith(before), f"{path} lost lines\n{self.lives[-1]}"
            self.kept[path] = data[: data.rfind(b"\n") + 1]

    def answer(self) -> Answer:
        """After a life that was not killed: its answer, when everything else holds."""
        life = self.lives[-1]
        assert life.death is None, life
        assert life.code in (0, 1), life
        document = json.loads(life.stdout)
        assert json.loads((self.seen(self.run) / "result.json").read_text()) == document, life
        journalled = self._nothing_twice(life)
        for trials in self.seen(self.run).rglob("trials"):
            assert not list(trials.iterdir()), f"{trials} is not empty: {list(trials.iterdir())}"
        drafts = [name for name in below(self.seen(self.cwd)) if re.search(r"(^|/)\.[^/]*$|\.tmp$|/builds/.", name)]
        assert not drafts, f"left behind: {drafts}"
        return Answer(life.code, self.settled(document), journalled, self.ran())

    def settled(self, document: Any) -> Any:
        return settled(document, {str(self.run): "RUN", str(self.place): "PLACE"})

    def ran(self) -> Counter[str]:
        """How often each program was run that stands in a journal: not the reference's, which each life looks at."""
        found = (line.partition("/programs/")[2] for line in lines(self.logs / "runs"))
        return Counter(name for name in found if name and not name.startswith("reference-"))

    def _nothing_twice(self, life: Life) -> Counter[str]:
        """No question stands in a journal twice, and of what ran, at most what was in flight at a death does not."""
        journalled: Counter[str] = Counter()
        for path in self.journals():
            if path.parent.name == "mccprobe-out":
                continue  # across runs: looked at below
            keys = [key for line in path.read_text().splitlines() if (key := question(json.loads(line)))]
            twice = [key for key, count in Counter(keys).items() if count > 1]
            assert not twice, f"{path}: twice: {twice}\n{life}"
            journalled.update(key[0] for key in keys)
        deaths = len(self.lives) - 1  # or errors: each may have cost what was in flight
        compiles = [line for line in lines(self.logs / "compiles") if "/trials/compile-" in line]
        spare = deaths * self.scene.width
        assert len(compiles) <= journalled["compile"] + spare + self.scene.width, (
            f"{len(compiles)} compiles ran, {journalled['compile']} stand in the journals, {deaths} deaths\n{life}"
        )
        book = self.seen(self.cwd) / "mccprobe-out" / "journal.jsonl"
        texts = []
        for line in lines(book)[1:]:
            with contextlib.suppress(ValueError):  # half a line of a killed writer stays, as a line of its own
                texts.append(json.loads(line)["text"])
        assert len(texts) == len(set(texts)), f"{book}: an entry stands there twice"
        return journalled


def lines(path: Path) -> list[str]:
    return path.read_text(errors="replace").splitlines() if path.is_file() else []


def below(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))


def question(entry: dict[str, Any]) -> tuple[str, ...]:
    """What a journal line answers; () for one that answers nothing."""
    kind = entry["t"]
    if kind == "compile":
        return kind, entry["id"]
    if kind == "run":
        return kind, entry["object"], entry["oracle"], str(entry["ordinal"])
    if kind in ("trial", "share"):
        return kind, json.dumps({key: entry.get(key) for key in ("named", "point", "against", "again")})
    return ()


def settled(value: Any, names: Mapping[str, str]) -> Any:
    """A document without times, counts of one life and the chain's own places."""
    if isinstance(value, dict):
        return {key: settled(one, names) for key, one in value.items() if key not in VOLATILE}
    if isinstance(value, list):
        return [settled(one, names) for one in value]
    if isinstance(value, str):
        for place, name in names.items():
            value = value.replace(place, name)
    return value


def processes_of(place: Path) -> dict[int, str]:
    """Process id -> command line of what runs for this chain."""
    mark = f"{TAG}={place}".encode()
    found = {}
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if (folder / "stat").read_text(errors="replace").rpartition(")")[2].split()[0] in "ZX":
                continue
            if mark in (folder / "environ").read_bytes().split(b"\0"):
                line = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
                found[int(folder.name)] = line[:200]
    return found


def killed_until_done(chain: Chain, rng: random.Random, moments: Sequence[Moment]) -> list[Death]:
    """A life for each moment, then one that ends by itself. Returns the deaths there were."""
    for moment in moments:
        if moment.seconds:
            life = chain.live_for(moment.seconds)
        else:
            life = chain.live(die_at=moment.step, on=moment.on, how=rng.choice(("before", "half")))
        if life.death is None:
            break
    else:
        chain.live()
    return [life.death for life in chain.lives if life.death is not None]
