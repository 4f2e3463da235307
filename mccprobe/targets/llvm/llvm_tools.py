"""`opt` and `llc` of the very LLVM that compiles: found next to it, their version probed, never assumed."""

from __future__ import annotations

import functools
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from mccprobe.base.process import RunSpec, run
from mccprobe.targets.flags.levels import code_generator_level
from mccprobe.targets.llvm.jobs import mllvm_options, value_after
from mccprobe.targets.llvm.locate import QUERY_TIMEOUT_S

_VERSION = re.compile(r"version (\d+\.\d+\.\d+\S*)")
# cc1 -> llc. The driver passes these as flags of the target machine, not in the IR (clang 14,
# clang/lib/CodeGen/BackendUtil.cpp, initTargetOptions); several spellings: the first that llc's help has.
_CODEGEN_FLAGS = (
    ("-faddrsig", ("addrsig",)),
    ("--mrelax-relocations", ("relax-elf-relocations", "x86-relax-relocations")),
    ("-mrelax-relocations=yes", ("relax-elf-relocations", "x86-relax-relocations")),
    ("-ffunction-sections", ("function-sections",)),
    ("-fdata-sections", ("data-sections",)),
    ("-menable-no-nans", ("enable-no-nans-fp-math",)),
    ("-menable-no-infs", ("enable-no-infs-fp-math",)),
    ("-fno-signed-zeros", ("enable-no-signed-zeros-fp-math",)),
    ("-menable-unsafe-fp-math", ("enable-unsafe-fp-math",)),
    ("-funsafe-math-optimizations", ("enable-unsafe-fp-math",)),
    ("-fapprox-func", ("enable-approx-func-fp-math",)),
)


@dataclass(frozen=True)
class LlvmTool:
    """A tool of the compiler's own LLVM. options: what it knows, from its hidden help."""

    path: Path
    options: frozenset[str]


def find_tool(name: str, compiler: str, *, elsewhere: bool) -> LlvmTool | str:
    """The tool beside the program that runs cc1, or why there is none.

    elsewhere: llvm-config of that folder may name another folder (a distribution's clang); a vendor's
    compiler is only served by the tools that it ships, whatever version another one prints.
    """
    program = Path(compiler).resolve()
    wanted = _version(str(program))
    if not wanted:
        return f"{program} does not tell its version"
    folders = [program.parent]
    if elsewhere:
        major = wanted.partition(".")[0]
        for config in (str(program.parent / "llvm-config"), f"llvm-config-{major}"):
            answer = run(RunSpec([config, "--bindir"], timeout_s=QUERY_TIMEOUT_S))
            if answer.ok:
                folders.append(Path(answer.stdout_text.strip()))
    seen = []
    for path in dict.fromkeys(folder / name for folder in folders):
        if not path.is_file():
            continue
        version = _version(str(path))
        if version == wanted:
            return LlvmTool(path, _options(str(path)))
        seen.append(f"{path} is of version {version or 'unknown'}, the compiler of {wanted}")
    return "; ".join(seen) or f"no {name} beside {program}"


@functools.cache
def _version(program: str) -> str:
    result = run(RunSpec([program, "--version"], timeout_s=QUERY_TIMEOUT_S))
    found = _VERSION.search(result.stdout_text)
    return found.group(1).rstrip(",") if result.ok and found else ""


@functools.cache
def _options(program: str) -> frozenset[str]:
    result = run(RunSpec([program, "--help-hidden"], timeout_s=QUERY_TIMEOUT_S))
    return frozenset(re.findall(r"^ +--?([\w-]+)", result.stdout_text, re.MULTILINE))


def plugins(cc1: Sequence[str]) -> list[str]:
    """The `-load FILE` of a cc1."""
    return [part for index in range(len(cc1) - 1) if cc1[index] == "-load" for part in ("-load", cc1[index + 1])]


def llc_arguments(cc1: Sequence[str], llc: LlvmTool) -> list[str]:
    """The options with which llc generates the code of this cc1, without those of -mllvm."""
    argv = plugins(cc1)
    argv.append("-O" + code_generator_level(cc1))
    for option, spelt in (("-mrelocation-model", "relocation-model"), ("-target-cpu", "mcpu")):
        if value := value_after(cc1, option):
            argv.append(f"-{spelt}={value}")
    models = [argument.partition("=")[2] for argument in cc1 if argument.startswith("-mcmodel=")]
    argv += [f"-code-model={model}" for model in models[-1:]]
    features = [cc1[index + 1] for index in range(len(cc1) - 1) if cc1[index] == "-target-feature"]
    argv += [f"-mattr={','.join(features)}"] if features else []
    if any(argument in ("-ffp-contract=fast", "-ffp-contract=fast-honor-pragmas") for argument in cc1):
        argv.append("-fp-contract=fast")
    for given, spellings in _CODEGEN_FLAGS:
        known = [f"-{name}" for name in spellings if name in llc.options]
        if given in cc1 and known and known[0] not in argv:
            argv.append(known[0])
    return argv


def llvm_options(cc1: Sequence[str]) -> list[str]:
    """The -mllvm options of a cc1, less a bisect limit."""
    return [option for option in mllvm_options(cc1) if not option.lstrip("-").startswith("opt-bisect-limit")]
