"""The options of `mccprobe flags search` as one record, and from it what is searched."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mccprobe.base.errors import InputError, JournalUnreadable, UsageError
from mccprobe.base.paths import is_file, is_folder
from mccprobe.oracle.kernel.lookup import find_kernel
from mccprobe.oracle.kernel.shipped import DEFAULT_KERNEL, FILE_NAME, hint_of_shipped
from mccprobe.oracle.kernel.spec import KernelSpec
from mccprobe.oracle.run_input import stdin_file
from mccprobe.targets import registry
from mccprobe.targets.amdgcn.toolchain import amdgcn_toolchain
from mccprobe.targets.choose import choose
from mccprobe.targets.llvm.command import is_source
from mccprobe.targets.mcc.architecture import DEFAULT_ARCH
from mccprobe.targets.mcc.toolchain import MccPaths
from mccprobe.tuning.check.subject import kernel_toolchain, runnable_kernel
from mccprobe.tuning.flag_search.evaluate import SearchLimits
from mccprobe.tuning.flag_search.objectives import default_objective, make_meter
from mccprobe.tuning.flag_search.run import SearchRequest, taken_choices
from mccprobe.tuning.flag_search.space import default_space, load_space, require_bounded
from mccprobe.tuning.flag_search.subjects import CompiledKernel, GatedKernel, GateSettings, OrdinaryProgram, Subject
from mccprobe.tuning.flag_search.tpe import require_optuna


@dataclass(frozen=True)
class SearchOptions:
    """As the user gave them; paths as text. Times in seconds."""

    file: str = DEFAULT_KERNEL
    args: tuple[str, ...] = ()
    space: str | None = None
    strategy: str = "article"
    objective: str | None = None
    toolchain: str = "auto"
    compiler: str | None = None
    mcc: str | None = None
    musa_path: str | None = None
    arch: str = DEFAULT_ARCH
    cases: str = "legacy"
    seeds: tuple[int, ...] = (1, 2, 3)
    run_args: tuple[str, ...] = ()
    stdin: str | None = None
    bound: int = 256
    random_seed: int = 1
    storage: str | None = None
    timeout: float = 300.0
    compile_timeout: float = 300.0
    why: str = ""

    def to_dict(self) -> dict[str, Any]:
        """For run.json."""
        return {key: list(v) if isinstance(v, tuple) else v for key, v in dataclasses.asdict(self).items()}


def read_options(document: Any, where: Path) -> SearchOptions:
    """From run.json. Raises JournalUnreadable."""
    values = document.get("search") if isinstance(document, dict) else None
    known = {field.name: field for field in dataclasses.fields(SearchOptions)}
    if not isinstance(values, dict) or not values.keys() <= known.keys():
        raise JournalUnreadable(f"{where}: holds no options of a flag search", hint="start a new run")
    clean: dict[str, Any] = {}
    for name, value in values.items():
        if not _fits(name, value, known[name].default):
            raise JournalUnreadable(f"{where}: search.{name} is not what a flag search writes", hint="start a new run")
        clean[name] = tuple(value) if isinstance(value, list) else value
    return SearchOptions(**clean)


_LOWEST = {"bound": 2, "random_seed": 0, "seeds": 0, "timeout": 0.1, "compile_timeout": 1}
_HIGHEST = {"timeout": 2e6, "compile_timeout": 2e6}  # s; above, no system call takes a time


def _fits(name: str, value: Any, default: Any) -> bool:
    """True for a value of run.json as the command line would have given it."""
    if isinstance(default, tuple):
        one = default[0] if default else ""
        return isinstance(value, list) and all(_fits(name, item, one) for item in value)
    if isinstance(default, int | float):
        kinds = int if isinstance(default, int) else int | float
        high = _HIGHEST.get(name, 1 << 63)
        return isinstance(value, kinds) and not isinstance(value, bool) and _LOWEST[name] <= value <= high
    return (value is None and default is None) or (isinstance(value, str) and "\0" not in value)


@dataclass(frozen=True)
class Planned:
    """refused: choices that the compiler does not take. told: before it starts. place: whose git commit is recorded."""

    request: SearchRequest
    refused: Mapping[str, str]
    told: tuple[str, ...]
    place: Path

    def described(self) -> dict[str, Any]:
        """What a resumed run must find unchanged."""
        space = self.request.space
        dimensions = [[one.name, *(choice.text for choice in one.choices)] for one in space.dimensions]
        return {
            "dimensions": dimensions,
            "objective": self.request.meter.objective,
            "subject": self.request.subject.described(),
        }


def plan_search(options: SearchOptions, cache: Path, *, max_trials: int, budget_s: float | None) -> Planned:
    """Resolve everything. Raises UsageError, InputError, ToolchainError, BadDataFile, UnknownFlag."""
    if options.strategy == "tpe":
        require_optuna()  # told before anything is built
    subject, kernel, told, place = _subject(options, cache)
    path = Path(options.space) if options.space is not None else None
    space = load_space(path, kernel) if path is not None else default_space(subject.toolchain.name, kernel)
    space, refused = taken_choices(subject, space)
    if options.strategy == "exhaustive":
        require_bounded(space, options.bound)
    objective = options.objective or default_objective(subject)
    meter = make_meter(objective, subject, options.timeout)
    deadline = None if budget_s is None else time.monotonic() + budget_s
    request = SearchRequest(
        subject,
        space,
        meter,
        options.strategy,
        options.bound,
        options.random_seed,
        Path(options.storage) if options.storage else None,
        SearchLimits(max_trials, deadline),
    )
    return Planned(request, refused, told, place)


def _subject(options: SearchOptions, cache: Path) -> tuple[Subject, KernelSpec | None, tuple[str, ...], Path]:
    path = Path(options.file)
    if _is_program(options, path):
        return _program(options, path, cache)
    if options.args:
        raise UsageError("arguments behind -- go with an ordinary source", hint="a kernel's stand in its kernel.toml")
    if options.toolchain != registry.AUTO and registry.target(options.toolchain).compile_only:
        return _compiled(options, path)
    if options.run_args:
        raise UsageError("--run-args goes with an ordinary source", hint="a kernel's program is run by its cases")
    if options.stdin is not None:
        raise UsageError("--stdin goes with an ordinary source", hint="a kernel's program is run by its cases")
    kernel = runnable_kernel(options.file)
    choice = kernel_toolchain(
        kernel, options.toolchain, mcc=options.mcc, musa_path=options.musa_path, cache=cache, compiler=options.compiler
    )
    settings = GateSettings(options.cases, options.seeds, options.timeout, options.compile_timeout, options.arch)
    subject = GatedKernel(kernel, choice.toolchain, settings, _options_of(options))
    return subject, kernel, (choice.told,) if choice.told else (), kernel.folder


def _is_program(options: SearchOptions, path: Path) -> bool:
    if not is_file(path) or path.name == FILE_NAME or not is_source(path.name):
        return False
    return not registry.is_device_source(path.name) and not is_file(path.absolute().parent / FILE_NAME)


def _program(
    options: SearchOptions, path: Path, cache: Path
) -> tuple[Subject, KernelSpec | None, tuple[str, ...], Path]:
    if options.toolchain != registry.AUTO and not registry.target(options.toolchain).programs:
        raise UsageError(f"{path}: an ordinary source is compiled by clang, not {options.toolchain}")
    choice = choose(
        options.toolchain,
        sources=[str(path)],
        shipped=False,
        compiler=options.compiler,
        mcc=MccPaths(options.mcc, options.musa_path),
        cache=cache,
    )
    subject = OrdinaryProgram(
        path.absolute(),
        options.args,
        choice.toolchain,
        run_args=options.run_args,
        timeout_s=options.timeout,
        compile_timeout_s=options.compile_timeout,
        given=options.file,
        options=_options_of(options),
        stdin=None if options.stdin is None else stdin_file(options.stdin),
    )
    return subject, None, (choice.told,) if choice.told else (), path


def _compiled(options: SearchOptions, path: Path) -> tuple[Subject, KernelSpec | None, tuple[str, ...], Path]:
    kernel: KernelSpec | None = None
    if is_folder(path) or find_kernel(options.file) is not None:
        kernel = runnable_kernel(options.file)
    elif not is_file(path):
        raise InputError(f"{options.file}: no such kernel or source", hint=hint_of_shipped(path))
    toolchain = amdgcn_toolchain()
    sources = kernel.sources if kernel is not None else (path.absolute(),)
    args = kernel.compile_args if kernel is not None else ("-O3",)
    name = kernel.name if kernel is not None else path.name
    told = f"amdgcn: {toolchain.heading}; compiled only, nothing is run, so nothing is a winner"
    return CompiledKernel(sources, args, toolchain, name), kernel, (told,), kernel.folder if kernel else path


def _options_of(options: SearchOptions) -> tuple[str, ...]:
    """The toolchain's options, for the command that follows a finding."""
    named = {
        "--toolchain": "" if options.toolchain == "auto" else options.toolchain,
        "--compiler": options.compiler,
        "--mcc": options.mcc,
        "--musa-path": options.musa_path,
    }
    return tuple(word for name, value in named.items() if value for word in (name, value))
