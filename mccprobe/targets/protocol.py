"""The one interface behind which every compiler stands, and the records that cross it.

A toolchain knows commands and runs only short queries (version, `-###`, probes). Compiling,
caching and linking trials is `mccprobe.build`'s work, with the commands from here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from mccprobe.objects.binary.records import KernelMetadata
from mccprobe.targets.llvm.jobs import Job, JobKind
from mccprobe.targets.llvm.opt_bisect import LogSummary, PassExecution

if TYPE_CHECKING:
    from mccprobe.targets.inventory import Entry

__all__ = ["NOT_PROBED", "UNLIMITED", "Capabilities", "Choice", "Claim", "Identity", "Job", "JobKind", "LogStream",
           "LogSummary", "PassCounter", "PassExecution", "Recording", "ResourceText", "Target", "Toolchain",
           "Wanted"]  # fmt: skip

NOT_PROBED = "not probed"
UNLIMITED = -1  # as a limit: every pass runs; each counter spells it in its own way


@dataclass(frozen=True)
class Identity:
    """Which compiler it is.

    path: as found; resolved: with links followed. version: its own first version line.
    clang_major: 14 for "clang version 14.0.6", None where it does not say.
    fingerprint: changes when the installed compiler changes (path, version text, size, time).
    configuration: the file whose options it reads by itself, "" for none.
    """

    path: Path
    resolved: Path
    version: str
    clang_major: int | None
    fingerprint: str
    configuration: str = ""

    @property
    def is_mcc(self) -> bool:
        """True for mcc and its stand-in, by the line of their own that they print below clang's."""
        return self.version.startswith(("mcc version", "mccprobe-sim version"))


@dataclass(frozen=True)
class Capabilities:
    """What was found by running it: True, False, or "not probed"."""

    compile: bool | str = NOT_PROBED
    run: bool | str = NOT_PROBED
    bisect: bool | str = NOT_PROBED
    resources: bool | str = NOT_PROBED
    timing: bool | str = NOT_PROBED
    bundle: bool | str = NOT_PROBED
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Recording:
    """The jobs of one driver command, in the driver's order, as `-###` shows them."""

    command: tuple[str, ...]
    jobs: tuple[Job, ...]
    env: Mapping[str, str] = field(default_factory=dict)


class LogStream(Protocol):
    """Reads the log of one compile out of its standard error."""

    def feed(self, chunk: bytes) -> bytes:
        """Take one chunk, return the text in it that is not of the log."""

    def finish(self) -> tuple[LogSummary, bytes]:
        """The summary, and the text of an unfinished last line."""


class PassCounter(Protocol):
    """How a compiler counts the pass executions of one compile and holds back those above a limit.

    A limit is UNLIMITED, None for a compile without the option, or the number of executions that run.
    Counters are values: a compile that travels to another machine takes its counter along.
    """

    @property
    def option(self) -> str:
        """The limit's spelling in messages, such as "-opt-bisect-limit"."""

    @property
    def has_ir(self) -> bool:
        """True where a compile can stop at an intermediate code and start from it, and print it as text."""

    @property
    def verify(self) -> str:
        """The option that checks machine code after every pass, "" for none."""

    def counts(self, job: Job) -> bool:
        """True for a compile whose passes can all be counted: it ends in an object."""

    def spelled(self, limit: int) -> str:
        """The option with this limit, for messages and for tools of the same family."""

    def driver_arguments(self, limit: int) -> tuple[str, ...]:
        """The limit as the driver takes it."""

    def sets_limit(self, option: str) -> bool:
        """True for an option that sets the limit, in any spelling."""

    def front_end(self, job: Job, output: str) -> tuple[str, ...]:
        """The command that stops before the first pass; only where `has_ir`."""

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
        """The recorded compile at one limit.

        options: further options of the optimiser. bitcode: `source` is what `front_end` wrote, else it is not used.
        """

    def with_options(self, argv: Sequence[str], options: Sequence[str]) -> tuple[str, ...]:
        """The same command with these options of the optimiser in place of their earlier values."""

    def code_generator(self, argv: Sequence[str]) -> tuple[str, ...]:
        """A command from intermediate code, less the passes on it; only where `has_ir`."""

    def plain(self, argv: Sequence[str]) -> tuple[str, ...]:
        """The same command at the lowest level of optimisation."""

    def reader(self, around: int = 0) -> LogStream:
        """Reads one compile's log. around: the execution to look at closely; 0: the last one."""

    def parse_line(self, line: str) -> PassExecution | None:
        """One line of the log, None for any other text."""


class Toolchain(Protocol):
    """One compiler installation."""

    name: str
    simulated: bool
    driver: tuple[str, ...]
    inherited: dict[str, str] | None  # in the place of what this process has in its environment; None: keep that

    @property
    def counter(self) -> PassCounter | None:
        """How it counts pass executions; None where it cannot."""

    @property
    def root(self) -> Path | None:
        """The toolkit that it belongs to, with its headers and libraries; None where there is none."""

    @property
    def incomplete(self) -> str:
        """What this installation lacks, "" if nothing."""

    @property
    def takes_catalogue(self) -> bool:
        """True where every flag of the catalogue is known to be taken, so that none is asked about."""

    @property
    def heading(self) -> str:
        """What every figure of it is marked with: it is of another device than asked for; "" where it is not."""

    def check_driver(self) -> None:
        """Raise ToolchainError when it cannot be driven; run before anything is written."""

    def identify(self) -> Identity:
        """Version and fingerprint. Raises ToolchainError when it cannot be run."""

    def capabilities(self) -> Capabilities:
        """Probed by running it; cheap answers are kept."""

    def environment(self, scratch: Path) -> dict[str, str]:
        """The environment of every compile: temporary files and compile caches under `scratch`."""

    def refusal(self, argv: Sequence[str], scratch: Path) -> str:
        """What the compiler says against these arguments; empty if it takes them."""

    def record(self, args: Sequence[str], scratch: Path, *, cwd: Path | None = None) -> Recording:
        """Ask the driver for its jobs without running them. cwd: the folder that the compile runs in.

        Raises SourceDoesNotCompile or ToolchainError with the driver's own message.
        """

    def compile_argv(self, options: Sequence[str], source: str, output: str) -> tuple[str, ...]:
        """The plain command for one object. options: as mcc or clang takes them."""

    def link_argv(self, inputs: Sequence[str], options: Sequence[str], output: str) -> tuple[str, ...]:
        """The plain command for the program; inputs are objects and libraries."""

    def check_fresh(self, ran: int, limit: int, what: str) -> None:
        """Raise StaleCompileCache when a compile's log shows another limit than was asked for."""


@dataclass(frozen=True)
class Wanted:
    """What a command knows when it asks for a toolchain.

    options: the paths that the user gave, by option name: "compiler", "mcc", "musa_path".
    shipped: the source is one of the kernels that come with mccprobe. device: a source is device code.
    anew: probe again, also where an answer is kept.
    """

    cache: Path
    sources: tuple[str, ...] = ()
    shipped: bool = False
    device: bool = False
    options: Mapping[str, str] = field(default_factory=dict)
    anew: bool = False


@dataclass(frozen=True)
class Choice:
    """The toolchain and the sentence that tells the user about it ("" when it is what was asked for)."""

    toolchain: Toolchain
    told: str = ""


@dataclass(frozen=True)
class Claim:
    """One thing that mccprobe takes for granted of a target, and how `doctor` asks for it.

    where: the code that relies on it, as module:name. breaks: what goes wrong where it does not hold.
    ask: (toolchain, empty folder) -> whether it holds, and the evidence in one line.
    """

    id: str
    statement: str
    source: str
    where: str
    breaks: str
    ask: Callable[[Toolchain, Path], tuple[bool, str]]


@dataclass(frozen=True)
class ResourceText:
    """Resources of kernels that no object holds and the compiler prints.

    compiler: its name for people. arguments: make it print. uncounted: why no instruction is counted.
    """

    compiler: str
    arguments: tuple[str, ...]
    parse: Callable[[str], Sequence[KernelMetadata]]
    uncounted: str


@dataclass(frozen=True)
class Target:
    """One vendor, as its `target.py` describes it; `mccprobe.targets.registry` is the list.

    name: what `--toolchain` takes. help: its line in `mccprobe help toolchains`.
    offers: which commands take it, members of `registry.OFFERS`.
    find: the toolchain for an explicit `--toolchain`; raises CompilerNotFound, ToolchainError.
    automatic: the same for `--toolchain auto`; gives None where another target is meant.
    present: True where its compiler is installed, so that a command without `--toolchain` may ask it.
    listed: its lines in `mccprobe toolchains`; None for one line that `find` gives.
    path_option: the option that names its compiler, "" where it finds the compiler by itself alone.

    device: it compiles device code. real_device: kernels run and are timed on a GPU. emulated: kernels run in an
    emulator. compile_only: nothing that it makes can be run here. programs: it compiles ordinary programs.
    stock: a stock clang: -M, -flto, sanitizers and bundles of flags are as clang documents them, and another installed
    clang can stand in for it.
    sdk_headers: kernels are compiled with the vendor's own headers. own_tools: only LLVM tools beside the compiler
    are of its version. graded: the article's grader scores it. health_tool: reports the device's health, "" for none.
    cxx_arguments: make its C driver a C++ driver.

    suffixes: of source files that are device code by their name.
    wrapped: the command that `mccprobe wrapper` is put in front of. absent: what its absence costs.
    flag_data, pass_data, space, assumptions: data files. options_of: whose flags it takes, a name in flag data.
    claims: the self-test of `mccprobe doctor`, for a target without a table of assumptions.
    reads: kernels in bytes that no other reader knows: (data, origin) -> kernels, None for foreign bytes.
    printed: resources of kernels that the compiler prints; None where its objects hold them.
    """

    name: str
    help: str
    offers: frozenset[str]
    find: Callable[[Wanted], Choice]
    automatic: Callable[[Wanted], Choice | None] | None = None
    present: Callable[[Wanted], bool] | None = None
    listed: Callable[[Wanted], list[Entry]] | None = None
    path_option: str = ""
    device: bool = False
    real_device: bool = False
    emulated: bool = False
    compile_only: bool = False
    programs: bool = False
    stock: bool = False
    sdk_headers: bool = False
    own_tools: bool = False
    graded: bool = False
    health_tool: str = ""
    cxx_arguments: tuple[str, ...] = ()
    suffixes: tuple[str, ...] = ()
    wrapped: str = ""
    absent: str = ""
    flag_data: Path | None = None
    pass_data: tuple[Path, ...] = ()
    space: Path | None = None
    options_of: str = ""
    assumptions: Path | None = None
    claims: tuple[Claim, ...] = ()
    reads: Callable[[bytes, str], Sequence[KernelMetadata] | None] | None = None
    printed: ResourceText | None = None
