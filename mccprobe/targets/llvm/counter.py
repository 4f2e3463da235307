"""How clang's cc1 counts pass executions: -opt-bisect-limit, BISECT lines on standard error, LLVM IR in between."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mccprobe.targets.flags.levels import is_level
from mccprobe.targets.llvm.jobs import (
    Job,
    back_end_argv,
    emits_object,
    front_end_argv,
    option_key,
    replace_mllvm,
    without_llvm_passes,
)
from mccprobe.targets.llvm.opt_bisect import LogReader, PassExecution, parse_line


@dataclass(frozen=True)
class Cc1Counter:
    """See mccprobe.targets.protocol.PassCounter."""

    option: str = "-opt-bisect-limit"
    has_ir: bool = True
    verify: str = "-verify-machineinstrs"

    def counts(self, job: Job) -> bool:
        return emits_object(job)

    def spelled(self, limit: int) -> str:
        return f"{self.option}={limit}"

    def driver_arguments(self, limit: int) -> tuple[str, ...]:
        return ("-mllvm", self.spelled(limit))

    def sets_limit(self, option: str) -> bool:
        return option_key(option) == option_key(self.option)

    def front_end(self, job: Job, output: str) -> tuple[str, ...]:
        return front_end_argv(job, output)

    def at_limit(
        self,
        job: Job,
        source: str,
        output: str,
        *,
        limit: int | None,
        options: Sequence[str] = (),
        emit: str = "-emit-obj",
        bitcode: bool = False,
    ) -> tuple[str, ...]:
        every = [*options, *(() if limit is None else (self.spelled(limit),))]
        return back_end_argv(job, source, output, language="ir" if bitcode else "", options=every, emit=emit)

    def with_options(self, argv: Sequence[str], options: Sequence[str]) -> tuple[str, ...]:
        return replace_mllvm(argv, options)

    def code_generator(self, argv: Sequence[str]) -> tuple[str, ...]:
        return without_llvm_passes(argv)

    def plain(self, argv: Sequence[str]) -> tuple[str, ...]:
        return tuple("-O0" if is_level(argument) else argument for argument in argv)

    def reader(self, around: int = 0) -> LogReader:
        return LogReader(around)

    def parse_line(self, line: str) -> PassExecution | None:
        return parse_line(line)


CC1 = Cc1Counter()
