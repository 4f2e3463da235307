"""A made-up vendor: its own driver, limit, log, level and object format, in one folder."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Sequence
from pathlib import Path

from mccprobe.base.process import RunSpec, run
from mccprobe.objects.binary.records import KernelMetadata
from mccprobe.targets import protocol as p
from mccprobe.targets.llvm.locate import identify

FOLDER = Path(__file__).parent
_LINE = re.compile(r"#(\d+) (ran|held) (\w+)@(\w+)")


class Log:
    def __init__(self, around: int) -> None:
        self.around, self.text = around, b""

    def feed(self, chunk: bytes) -> bytes:
        self.text += chunk
        return b""

    def finish(self) -> tuple[p.LogSummary, bytes]:
        lines = self.text.decode("utf-8", "replace").splitlines()
        seen = [found for found in map(COUNTER.parse_line, lines) if found is not None]
        at = next((one for one in seen if one.number == (self.around or len(seen))), None)
        other = "\n".join(line for line in lines if COUNTER.parse_line(line) is None)
        named = (at.target, "log") if at else ("", "")
        return p.LogSummary(len(seen), sum(one.ran for one in seen), at, *named), other.encode()


class Counter:
    option, has_ir, verify = "--stop-after", False, ""

    def counts(self, job: p.Job) -> bool:
        return "-c" in job.argv

    def spelled(self, limit: int) -> str:
        return f"{self.option}={'all' if limit == p.UNLIMITED else limit}"

    def driver_arguments(self, limit: int) -> tuple[str, ...]:
        return (self.spelled(limit),)

    def sets_limit(self, option: str) -> bool:
        return option.startswith(self.option)

    def front_end(self, job: p.Job, output: str) -> tuple[str, ...]:
        return ()

    def at_limit(
        self, job: p.Job, source: str, output: str, *, limit: int | None, options: Sequence[str] = (), **more: object
    ) -> tuple[str, ...]:
        limited = () if limit is None else (self.spelled(limit),)
        return (*job.substitute({job.output: output}).argv, *options, *limited)

    def with_options(self, argv: Sequence[str], options: Sequence[str]) -> tuple[str, ...]:
        return (*argv, *options)

    def code_generator(self, argv: Sequence[str]) -> tuple[str, ...]:
        return tuple(argv)

    def plain(self, argv: Sequence[str]) -> tuple[str, ...]:
        return tuple("-O0" if word == "-O9" else word for word in argv)

    def reader(self, around: int = 0) -> Log:
        return Log(around)

    def parse_line(self, line: str) -> p.PassExecution | None:
        found = _LINE.fullmatch(line)
        return p.PassExecution(int(found[1]), found[3], found[4], found[2] == "ran") if found else None


COUNTER = Counter()


class Tern:
    name, simulated, root, incomplete, heading, takes_catalogue = "tern", False, None, "", "", False
    counter = COUNTER

    def __init__(self) -> None:
        self.driver: tuple[str, ...] = (str(FOLDER / "ternc"),)
        self.inherited: dict[str, str] | None = None

    def check_driver(self) -> None:
        self.identify()

    def identify(self) -> p.Identity:
        return identify(self.driver)

    def capabilities(self) -> p.Capabilities:
        return p.Capabilities(compile=True, run=True, bisect=True)

    def environment(self, scratch: Path) -> dict[str, str]:
        return {**os.environ, "TMPDIR": str(scratch)}

    def refusal(self, argv: Sequence[str], scratch: Path) -> str:
        return run(RunSpec([*self.driver, *argv, "-c", os.devnull, "-o", str(scratch / "o")])).stderr_text

    def record(self, args: Sequence[str], scratch: Path, *, cwd: Path | None = None) -> p.Recording:
        kind = p.JobKind.COMPILE if "-c" in args else p.JobKind.LINK
        argv = (*self.driver, *args)
        return p.Recording(argv, (p.Job(argv, kind, args[list(args).index("-o") + 1]),))

    def compile_argv(self, options: Sequence[str], source: str, output: str) -> tuple[str, ...]:
        return (*self.driver, *options, "-c", source, "-o", output)

    def link_argv(self, inputs: Sequence[str], options: Sequence[str], output: str) -> tuple[str, ...]:
        return (*self.driver, *inputs, "-o", output)

    def check_fresh(self, ran: int, limit: int, what: str) -> None:
        assert ran == limit, f"{what}: {ran} executions instead of {limit}"


def limit_holds(toolchain: p.Toolchain, folder: Path) -> tuple[bool, str]:
    (folder / "one.c").write_text("one = 2 * 3\n", "utf-8")
    argv = toolchain.compile_argv(["-O9", COUNTER.spelled(1)], str(folder / "one.c"), str(folder / "one.o"))
    lines = run(RunSpec(argv, timeout_s=60.0)).stderr_text.splitlines()
    return sum(" ran " in line for line in lines) == 1, "; ".join(lines)


def kernels(data: bytes, origin: str) -> list[KernelMetadata] | None:
    if not data.startswith(b"TERN1\n"):
        return None
    rest = (None, None, None, None, None, None, ())  # nothing but registers is known
    return [
        KernelMetadata(name, name, "tern-1", "tern", {"vector": len(terms)}, *rest, raw={"terms": len(terms)})
        for name, terms in json.loads(data[6:]).items()
    ]


TARGET = p.Target(
    name="tern",
    help="a made-up compiler of sums",
    offers=frozenset({"bisect", "doctor"}),
    find=lambda wanted: p.Choice(Tern()),
    programs=True,
    pass_data=(FOLDER / "passes.toml",),
    claims=(p.Claim("limit", "one pass runs at 1", "ternc", "target:Counter", "a wrong pass is named", limit_holds),),
    reads=kernels,
)
