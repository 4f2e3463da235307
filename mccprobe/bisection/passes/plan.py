"""From options to a request: the source, the toolchain, the flags, the reference and the oracle."""

from __future__ import annotations

import os
import shlex
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from mccprobe.base.errors import InputError, UsageError
from mccprobe.base.paths import exists, is_file, is_folder, read_text
from mccprobe.bisection.passes.lto import refuse_lto
from mccprobe.bisection.passes.missed_files import named_in_arguments
from mccprobe.bisection.passes.options import BisectOptions
from mccprobe.bisection.passes.pasted import without_compiler, without_file, without_own_output
from mccprobe.bisection.passes.request import BisectRequest, OracleChoice
from mccprobe.build.record import of_command
from mccprobe.oracle.kernel.lookup import find_kernel, is_source_of
from mccprobe.oracle.kernel.shipped import DEFAULT_KERNEL, FILE_NAME, hint_of_shipped
from mccprobe.oracle.kernel.spec import KernelSpec, is_shipped, load_kernel, shipped_kernel
from mccprobe.oracle.run_input import stdin_file
from mccprobe.search.procedure import Settings
from mccprobe.targets import registry
from mccprobe.targets.choose import choose
from mccprobe.targets.flags.catalogue import Catalogue, ResolvedFlag, load_catalogue, promise_sentences
from mccprobe.targets.flags.given import CompilerFlag, refuse_twice
from mccprobe.targets.flags.levels import is_level
from mccprobe.targets.llvm.command import (
    Arguments,
    compile_options,
    is_source,
    kept_in_reference,
    language,
    link_options,
    mllvm_value,
    names_architecture,
    own_to_set,
    split_arguments,
    split_response_text,
    with_one_language,
    without_flags,
    without_side_outputs,
)
from mccprobe.targets.llvm.flag_probe import not_taken
from mccprobe.targets.llvm.inherited import environment_of, sentences
from mccprobe.targets.llvm.jobs import option_key
from mccprobe.targets.mcc.architecture import DEFAULT_ARCH
from mccprobe.targets.mcc.toolchain import MccPaths
from mccprobe.targets.protocol import Toolchain

NO_FLAG = ("no --flag and no --reference: one build is asked about, as it stands; what it is compared with is the same "
           "build with its passes held back")  # fmt: skip
_RESPONSE_DEPTH = 20  # response files inside response files; more is a circle


@dataclass(frozen=True)
class Plan:
    """A request and the sentences to tell before it starts."""

    request: BisectRequest
    told: tuple[str, ...]
    kernel: KernelSpec | None


def make_plan(options: BisectOptions, cache: Path, inherited: Mapping[str, str] | None = None) -> Plan:
    """Resolve everything. Raises UsageError, UnknownFlag, InputError, ToolchainError.

    inherited: what an earlier run's compiles took from the environment; None: from that of this process.
    """
    options, taken = without_compiler(options)
    arguments, own = _compiler_arguments(options.args)
    source, kernel = _source_and_kernel(options, arguments)
    arguments, again = without_file(arguments, source)
    shipped = is_shipped(source)
    choice = choose(
        options.toolchain,
        sources=[str(source), *arguments.inputs],
        shipped=shipped,
        compiler=options.compiler,
        mcc=MccPaths(options.mcc, options.musa_path),
        cache=cache,
        language=language(arguments),
    )
    toolchain = choice.toolchain
    if inherited is not None:
        toolchain.inherited = dict(inherited)
    told = [*taken, *own, *again, *([choice.told] if choice.told else [])]
    toolchain.check_driver()
    refuse_lto(options, arguments, source, toolchain)
    if kernel is not None:
        arguments = _kernel_arguments(kernel, arguments, toolchain)
    _require_inputs(arguments)
    flags = [_probed(load_catalogue(), name, toolchain) for name in options.flags]
    refuse_twice(((flag.given.key, flag.text) for flag in flags), "--flag")
    _refuse_own_limit(toolchain, arguments, flags)
    bare = without_flags(arguments, [flag.given for flag in flags])
    reference, exact_link = _reference_arguments(options, bare, flags)
    oracle = _oracle(options, kernel)
    if oracle.kind == "reference" and oracle.run_in is None:
        told += filter(None, [named_in_arguments(oracle.run_args, Path.cwd())])
    told += sentences(environment_of(toolchain), toolchain.identify().configuration)
    if reference is None:
        told.append(NO_FLAG)
    if reference is None and oracle.kind == "reference":
        raise UsageError(
            "nothing to compare with: the bad build has no reference",
            hint="give --flag NAME, --reference 'ARGS' or --oracle CMD",
        )
    flagged = (*compile_options(bare), *(argument for flag in flags for argument in flag.argv))
    request = BisectRequest(
        toolchain=toolchain,
        build=of_command(source, compile_options(bare), bare.inputs, link_options(bare), rest_args=flagged),
        flags=tuple(flag.given for flag in flags),
        flag_names=tuple(" ".join(flag.argv) for flag in flags),
        reference=None if reference is None else of_command(source, reference, bare.inputs, exact_link),
        only_flags_differ=options.reference is None,
        oracle=oracle,
        settings=Settings(
            endpoint_repeats=options.count,
            spot_checks=options.spot_checks,
            confidence=options.confidence,
            max_runs=options.max_runs,
            seed=options.seed,
            profile=options.profile,
        ),
        compile_timeout_s=options.compile_timeout,
        arch=options.arch,
        fixed_addresses=options.fixed_addresses,
        promises=_promises(flags, bare, reference),
    )
    return Plan(request, tuple(told), kernel)


def _require_inputs(arguments: Arguments) -> None:
    """`-###` passes over a missing object, so the link would be of another program."""
    for name in arguments.inputs:
        if not exists(name):
            raise InputError(f"{name}: no such file", hint="it stands among the compiler's arguments, behind --")


def _compiler_arguments(args: Sequence[str]) -> tuple[Arguments, tuple[str, ...]]:
    """The arguments after `--`, taken apart, and notes on them. Raises UsageError for what is mccprobe's own to set."""
    arguments, told = without_own_output(split_arguments(_without_response_files(args)))
    own = own_to_set(arguments)
    if own:
        raise UsageError(
            f"{own} is mccprobe's own to set", hint=f"give the arguments of the whole build: leave out {own}"
        )
    return with_one_language(without_side_outputs(arguments)), told


def _without_response_files(args: Sequence[str], depth: int = 0) -> list[str]:
    """The arguments with every `@FILE` replaced by what the file holds, as the driver does it."""
    expanded = []
    for argument in args:
        path = Path(argument[1:])
        if not argument.startswith("@") or not is_file(path):
            expanded.append(argument)
            continue
        if depth > _RESPONSE_DEPTH:
            raise UsageError(f"{argument}: response files that name each other")
        try:
            text = read_text(path, "surrogateescape")
        except OSError as error:
            raise InputError(f"{path}: {error.strerror or error}") from error
        expanded += _without_response_files(split_response_text(text), depth + 1)
    return expanded


def _source_and_kernel(options: BisectOptions, arguments: Arguments) -> tuple[Path, KernelSpec | None]:
    if options.file is None:
        if any(is_source(name) for name in arguments.inputs):
            raise UsageError("which file is to be bisected?", hint="mccprobe bisect FILE ... -- further arguments")
        named = registry.find(options.toolchain)
        if options.compiler or (named is not None and not named.device):
            raise UsageError("no FILE to bisect", hint="mccprobe bisect prog.c --compiler clang-14 --flag X -- -O2")
        if not (options.flags or options.args or options.oracle or options.reference):
            raise UsageError(
                "no FILE and no --flag: nothing to bisect",
                hint="mccprobe bisect prog.c --flag X -- -O2 bisects your program; with --flag X alone the shipped "
                "kernel gemm is bisected",
            )
        kernel = shipped_kernel(DEFAULT_KERNEL)
        return kernel.sources[0], kernel
    path = Path(options.file)
    if str(path).startswith("-"):  # Path drops the "./" that kept it from being an option
        path = path.absolute()
    if not is_file(path) or path.name == FILE_NAME:
        found = load_kernel(path) if is_folder(path) else find_kernel(path)
        if found is None:
            usual = "name the source to bisect, a kernel folder, or a kernel of mccprobe"
            raise InputError(f"{path}: no such file", hint=hint_of_shipped(path) or usual)
        return found.sources[0], found
    if not is_source(path.name, language(arguments)):
        usual = "C, C++, .mu, .cu, .ll or .bc; objects go behind --"
        raise InputError(f"{path}: not a source that a compiler takes", hint=hint_of_shipped(path) or usual)
    found = find_kernel(path) if registry.is_device_source(path.name) else None
    return path, found if found is not None and is_source_of(path, found) else None


def _kernel_arguments(kernel: KernelSpec, given: Arguments, toolchain: Toolchain) -> Arguments:
    """The kernel's own arguments first; the user's come behind and win."""
    own = split_arguments([*kernel.compile_args, *kernel.link_args])
    options = [group for group in own.options if not (_is_level(group) and any(map(_is_level, given.options)))]
    if not any(names_architecture(group[0]) for group in given.options):
        options.append((f"--offload-arch={DEFAULT_ARCH}",))
    if not any(group[0] == "-lmusart" for group in given.options):
        options.append(("-lmusart",))
    rest = [str(path) for path in (*kernel.sources[1:], *kernel.host_sources)]
    return Arguments((*options, *given.options), (*rest, *own.inputs, *given.inputs))


def _is_level(group: Sequence[str]) -> bool:
    return is_level(group[0])


def _probed(catalogue: Catalogue, text: str, toolchain: Toolchain) -> ResolvedFlag:
    """Resolve a flag and ask the compiler whether it takes it.

    A text with a dash is tried as an LLVM option first, then as the driver's own.
    """
    flag = catalogue.resolve(text)
    if toolchain.takes_catalogue and not flag.verbatim:
        return flag
    with tempfile.TemporaryDirectory(prefix="mccprobe-probe-") as folder:
        complaint = toolchain.refusal(flag.argv, Path(folder))
        if not complaint:
            return flag
        refused = ""
        if flag.verbatim:
            other = CompilerFlag(words=(text,)) if flag.given.option else CompilerFlag(text)
            refused = toolchain.refusal(other.argv, Path(folder))
            if not refused and _reaches_the_compile(toolchain, other, Path(folder)):
                return replace(flag, given=other)
    raise not_taken(toolchain, flag.argv, text, complaint, otherwise=refused)


def _reaches_the_compile(toolchain: Toolchain, flag: CompilerFlag, scratch: Path) -> bool:
    """True if a driver option changes the compile itself: `-enable-x`, misspelt, is `-e nable-x` for the linker."""
    if flag.option:
        return True
    base = ["-x", "c++", "-c", os.devnull, "-o", str(scratch / "probe.o")]
    with_it, without = (toolchain.record([*extra, *base], scratch).jobs for extra in (flag.words, ()))
    return [job.argv for job in with_it] != [job.argv for job in without]


def _refuse_own_limit(toolchain: Toolchain, arguments: Arguments, flags: Sequence[ResolvedFlag]) -> None:
    given = [mllvm_value(group) or group[0] for group in arguments.options]
    for option in (*given, *(flag.given.option or flag.given.words[0] for flag in flags)):
        if toolchain.counter is not None and toolchain.counter.sets_limit(option):
            raise UsageError(f"{option} is mccprobe's own to set", hint="leave it out of the compiler arguments")


def _reference_arguments(
    options: BisectOptions, bare: Arguments, flags: Sequence[ResolvedFlag]
) -> tuple[tuple[str, ...] | None, tuple[str, ...]]:
    """Compile and link options of the reference build; None without one."""
    if options.reference is None:
        if options.reference_exact:
            raise UsageError("--reference-exact goes with --reference 'ARGS'")
        if not flags:
            return None, ()
        return compile_options(bare), link_options(bare)
    try:
        given = split_arguments(shlex.split(options.reference))
    except ValueError as error:
        raise UsageError(f"--reference cannot be split: {error}: {options.reference}") from error
    if options.reference_exact:
        return compile_options(given), link_options(given)
    kept = split_arguments(kept_in_reference(bare))
    forced = language(bare)
    spoken = ("-x", forced) if forced else ()
    return (*spoken, *compile_options(kept), *compile_options(given)), (*link_options(kept), *link_options(given))


def _oracle(options: BisectOptions, kernel: KernelSpec | None) -> OracleChoice:
    base = OracleChoice(
        "reference",
        run_in=Path(options.run_in).absolute() if options.run_in else None,
        seed=options.seed,
        ignored_files=options.ignore_files,
        timeout_s=options.timeout,
        bad_if_timeout="timeout" in options.bad_if,
        bad_if_crash="crash" in options.bad_if,
    )
    if options.stdin is not None and (options.oracle is not None or (kernel is not None and kernel.host_sources)):
        raise UsageError(
            "--stdin goes with a program that is compared with its reference",
            hint="a check of --oracle opens the file itself; a kernel's host program reads none",
        )
    if options.oracle is not None:
        try:
            command = tuple(shlex.split(options.oracle))
        except ValueError as error:
            raise UsageError(f"--oracle cannot be split: {error}: {options.oracle}") from error
        if not command:
            raise UsageError("--oracle is empty", hint="for example --oracle './check.sh {exe}'")
        return replace(base, kind="command", command=command)
    if kernel is not None and kernel.host_sources:
        case = kernel.case(options.case or kernel.default_case)
        # by its shape: a name is kernel.toml's, and the host program need not know it
        return replace(base, kind="kernel", case=f"{case.m}x{case.n}x{case.k}")
    if options.case is not None:
        raise UsageError("--case goes with a kernel that has a kernel.toml")
    try:
        stdin = stdin_file(options.stdin) if options.stdin is not None else None
        return replace(base, run_args=tuple(shlex.split(options.run_args or "")), stdin=stdin)
    except ValueError as error:
        raise UsageError(f"--run-args cannot be split: {error}: {options.run_args}") from error


def _promises(flags: Sequence[ResolvedFlag], bare: Arguments, reference: Sequence[str] | None) -> tuple[str, ...]:
    """Options of the bad build alone by which the user promises something: a wrong result may break the promise."""
    catalogue = load_catalogue()
    told = {flag.text: (flag.flag, flag.value) for flag in flags}
    for group in bare.options:
        if reference is not None and group[-1] not in reference:
            option = mllvm_value(group) or group[0]
            value = option.partition("=")[2] or None
            told.setdefault(option, (catalogue.find(option_key(option)), value))
    return tuple(sentence for text, known in told.items() for sentence in promise_sentences(text, *known))
