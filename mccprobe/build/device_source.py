"""A .mu or .cu source to something that a report can read: compiled with mcc, or with a stand-in that says so.

mcc's assembly text carries the metadata and is tried first; the installed llc may refuse `-S` (mtgpu.md
4.4), then the device bundle is taken. Without mcc only a kernel that ships with mccprobe is compiled for
the stand-in `amdgcn` by itself; a user's own kernel gets another GPU's numbers only on request.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from mccprobe.base.errors import SourceDoesNotCompile, UsageError
from mccprobe.base.paths import is_file, is_folder
from mccprobe.build.record import TranslationUnit
from mccprobe.build.step import compile_unit, run_step
from mccprobe.oracle.kernel.lookup import find_kernel
from mccprobe.oracle.kernel.shipped import FILE_NAME, is_shipped
from mccprobe.targets import registry
from mccprobe.targets.amdgcn.toolchain import COMPILE_TIMEOUT_S, amdgcn_toolchain
from mccprobe.targets.choose import choose, wanted_of
from mccprobe.targets.llvm.command import names_architecture
from mccprobe.targets.mcc.architecture import DEFAULT_ARCH
from mccprobe.targets.mcc.target import not_found
from mccprobe.targets.mcc.toolchain import MccPaths
from mccprobe.targets.protocol import ResourceText, Toolchain


@dataclass(frozen=True)
class SourceOptions:
    """How a source is compiled. args: () for those of kernel.toml, or -O3."""

    toolchain: str = "auto"
    mcc: MccPaths = field(default_factory=MccPaths)
    arch: str = DEFAULT_ARCH
    args: tuple[str, ...] = ()
    cache: Path = Path()


@dataclass(frozen=True)
class Compiled:
    """The file to read. heading: stands before every line about it. told: what the user should know."""

    path: Path
    heading: str = ""
    simulated: bool = False
    told: tuple[str, ...] = ()


def is_source(path: Path) -> bool:
    """True for a source, which only its name tells, and for a folder with a kernel.toml."""
    return registry.is_device_source(path.name) or is_file(path / FILE_NAME)


def compile_source(path: Path, options: SourceOptions, scratch: Path) -> list[Compiled]:
    """Compile the source, or each source of a kernel folder. Raises CompilerNotFound, SourceDoesNotCompile."""
    sources, args = sources_and_arguments(path, options)
    return [_compile(source, args, options, scratch, index) for index, source in enumerate(sources)]


def sources_and_arguments(path: Path, options: SourceOptions) -> tuple[Sequence[Path], Sequence[str]]:
    """The sources of a kernel folder, or the one; the options' compile arguments, else those of kernel.toml."""
    spec = find_kernel(path)
    sources = spec.sources if spec is not None and is_folder(path) else (path,)
    return sources, options.args or (spec.compile_args if spec is not None else ("-O3",))


def _compile(source: Path, args: Sequence[str], options: SourceOptions, scratch: Path, index: int) -> Compiled:
    shipped = is_shipped(source)
    name = options.toolchain
    if name == registry.AUTO:
        wanted = wanted_of(options.mcc, options.cache)
        offering = [target for target in registry.targets() if "report" in target.offers]
        if not any(target.present is not None and target.present(wanted) for target in offering):
            if not shipped:
                raise not_found(
                    wanted,
                    "install the MUSA SDK or name it with --mcc PATH; for another GPU's numbers, say so: "
                    "--toolchain amdgcn",
                )
            name = next(target.name for target in offering if target.compile_only)
    if name != registry.AUTO and registry.target(name).compile_only:
        if options.mcc.mcc or options.mcc.musa_path:
            raise UsageError(f"--mcc and --musa-path do not go with --toolchain {name}", hint="leave out one of them")
        stand_in = amdgcn_toolchain()
        made = stand_in.compile(source, scratch / f"{source.stem}-{index}.so", scratch, args)
        why = "" if options.toolchain == name else "no mcc here: "
        return Compiled(made.path, stand_in.heading, told=(f"{why}{source.name} compiled for the {stand_in.heading}",))
    choice = choose(name, sources=[str(source)], shipped=shipped, compiler=None, mcc=options.mcc, cache=options.cache)
    told = (choice.told,) if choice.told else ()
    if choice.toolchain.simulated:
        output = scratch / f"{source.stem}-{index}.bundle"
        given = ("-fstack-size-section", "-c", str(source), "-o", str(output))
        problem = _run(choice.toolchain, options.arch, args, given, scratch)
        if problem:
            raise _does_not_compile(source, choice.toolchain, problem)
        return Compiled(output, simulated=True, told=told)
    return _with_mcc(choice.toolchain, source, args, options, scratch, index, told)


def _with_mcc(
    mcc: Toolchain,
    source: Path,
    args: Sequence[str],
    options: SourceOptions,
    scratch: Path,
    index: int,
    told: tuple[str, ...],
) -> Compiled:
    text = scratch / f"{source.stem}-{index}.s"
    bundle = scratch / f"{source.stem}-{index}.bundle"
    problem = ""
    for language in _languages(source, args):
        given = (*language, *args)
        refused = _run(mcc, options.arch, given, ("-S", str(source), "-o", str(text)), scratch)
        if not refused and text.is_file():
            return Compiled(text, told=told)
        failed = _run(mcc, options.arch, given, ("-c", str(source), "-o", str(bundle)), scratch)
        if not failed:
            break
        problem = problem or failed
    else:
        raise _does_not_compile(source, mcc, problem)
    first = refused.splitlines()[0] if refused else "it wrote nothing"
    return Compiled(bundle, told=(*told, f"mcc -S does not work here ({first[:200]}): numbers from the device bundle"))


def _languages(source: Path, args: Sequence[str]) -> tuple[tuple[str, ...], ...]:
    """The language options to try: a driver that reads .cu as CUDA refuses the architectures of MUSA."""
    said = any(argument == "-mtgpu" or argument.startswith("-x") for argument in args)
    return ((),) if said or source.suffix == ".mu" else ((), ("-x", "musa"))


def _run(toolchain: Toolchain, arch: str, args: Sequence[str], given: Sequence[str], scratch: Path) -> str:
    """ "" if it worked, else the compiler's message."""
    named = () if any(map(names_architecture, args)) else (f"--offload-arch={arch}",)
    command = [*toolchain.driver, *named, *args, "--musa-device-only", *given]
    env = toolchain.environment(scratch)
    done = run_step(command, Path(given[-1]), scratch=scratch, env=env, timeout_s=COMPILE_TIMEOUT_S)
    return (done.detail or done.failure) if done.failure else ""


def resource_text(toolchain: Toolchain, printed: ResourceText, source: Path, args: Sequence[str], scratch: Path) -> str:
    """Compile one source; what the compiler prints about its kernels. Raises SourceDoesNotCompile."""
    unit = TranslationUnit(str(source.absolute()), tuple(args))
    output = scratch / f"{source.stem}.o"
    done = compile_unit(toolchain, unit, output, scratch=scratch, timeout_s=COMPILE_TIMEOUT_S, more=printed.arguments)
    if done.failure:
        raise SourceDoesNotCompile(
            f"{source} does not compile with {printed.compiler}: {done.failure}",
            detail=done.detail,
            hint="the headers of this stand-in hold what a WMMA kernel needs, not all of MUSA",
        )
    return done.text


def _does_not_compile(source: Path, toolchain: Toolchain, problem: str) -> SourceDoesNotCompile:
    return SourceDoesNotCompile(
        f"{source} does not compile with {toolchain.name}", detail=problem[-4000:], hint="the message is the compiler's"
    )
