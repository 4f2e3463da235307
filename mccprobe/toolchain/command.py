"""Compiler arguments as lists: which of them compile, which link, which are inputs.

Pure. The lists below name the clang options that take their value as the next argument
(clang/include/clang/Driver/Options.td, kinds Separate and JoinedOrSeparate); a wrapper that does
not know them drops or splits `-mllvm X` (gllvm#52).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from mccprobe.toolchain.jobs import option_key

TAKES_NEXT = frozenset(
    "-o -x -I -L -D -U -l -T -u -z -e -F -B -A -G -include -imacros -isystem -iquote -idirafter -isysroot "
    "-iprefix -iwithprefix -iwithprefixbefore -iwithsysroot -cxx-isystem -c-isystem -include-pch -Xclang "
    "-mllvm -Xlinker -Xassembler -Xpreprocessor -Xanalyzer -Xcuda-ptxas -Xcuda-fatbinary -Xopenmp-target "
    "-target -MF -MT -MQ -MJ -arch -framework --param -rpath -dumpdir -dumpbase -resource-dir -sysroot "
    "-working-directory --serialize-diagnostics -serialize-diagnostics -fmodules-user-build-path "
    "-Xarch_device -Xarch_host -index-header-map -current_version -allowable_client".split()
)
SOURCE_SUFFIXES = frozenset(".c .cc .cpp .cxx .c++ .C .cu .mu .hip .cl .m .mm .i .ii .ll .bc .s .S".split())
CXX_SUFFIXES = frozenset(".cc .cpp .cxx .c++ .C .ii .mm".split())
# kept in the reference build when --reference replaces the compile arguments (issue wording);
# -U, -isystem, -include and -iquote are of the same kind: without them the source does not compile.
_KEPT_PREFIXES = ("-l", "-L", "-Wl,", "-I", "-D", "-U", "-isystem", "-include", "-iquote", "-idirafter", "-imacros")
_LINK_PREFIXES = ("-l", "-L", "-Wl,")
_LINK_ONLY = frozenset("-Xlinker -rpath -T -u -z -e -rdynamic -static -shared -pie -no-pie -pthread -s".split())


@dataclass(frozen=True)
class Arguments:
    """Compiler arguments taken apart.

    options: as given, each with its value (one tuple an option); inputs: sources, objects, archives.
    """

    options: tuple[tuple[str, ...], ...]
    inputs: tuple[str, ...]

    @property
    def flat(self) -> tuple[str, ...]:
        """The options as one list."""
        return tuple(argument for group in self.options for argument in group)


def split_arguments(args: Sequence[str]) -> Arguments:
    """Separate options (with their values) from inputs."""
    options: list[tuple[str, ...]] = []
    inputs: list[str] = []
    index = 0
    while index < len(args):
        argument = args[index]
        if argument in TAKES_NEXT and index + 1 < len(args):
            pairs = ("-mllvm", "-load", "-plugin")
            if argument == "-Xclang" and args[index + 1] in pairs and index + 3 < len(args):
                options.append(tuple(args[index : index + 4]))
                index += 4
                continue
            options.append((argument, args[index + 1]))
            index += 2
            continue
        if argument.startswith("-") and argument != "-":
            options.append((argument,))
        else:
            inputs.append(argument)
        index += 1
    return Arguments(tuple(options), tuple(inputs))


def is_source(name: str) -> bool:
    """True for a file that the driver compiles."""
    return Path(name).suffix in SOURCE_SUFFIXES


def is_cxx(name: str) -> bool:
    """True for C++ source, which clang's C driver would link without its library."""
    return Path(name).suffix in CXX_SUFFIXES


def link_options(arguments: Arguments) -> tuple[str, ...]:
    """Only the options that a compile-only command would call unused."""
    return tuple(a for group in arguments.options if _is_link_only(group[0]) for a in group)


def compile_options(arguments: Arguments) -> tuple[str, ...]:
    """The options without those that only the linker reads."""
    return tuple(a for group in arguments.options if not _is_link_only(group[0]) for a in group)


def _is_link_only(option: str) -> bool:
    return option.startswith(_LINK_PREFIXES) or option in _LINK_ONLY - {"-pthread"}


def kept_in_reference(arguments: Arguments) -> tuple[str, ...]:
    """The options that stay when `--reference` replaces the compile arguments."""
    return tuple(a for group in arguments.options if group[0].startswith(_KEPT_PREFIXES) for a in group)


def mllvm_value(group: Sequence[str]) -> str:
    """The LLVM option that this group passes, in any spelling; "" if it passes none."""
    if group[0] == "-mllvm" and len(group) == 2:
        return group[1]
    if group[0].startswith("-mllvm="):
        return group[0].partition("=")[2]
    if len(group) == 4 and tuple(group[:3]) == ("-Xclang", "-mllvm", "-Xclang"):
        return group[3]
    return ""


def without_flags(arguments: Arguments, flags: Iterable[Sequence[str]]) -> Arguments:
    """The arguments less those that `flags` (driver argv each) give, in any spelling."""
    llvm_keys = set()
    drivers = set()
    for flag in flags:
        value = mllvm_value(tuple(flag))
        if value:
            llvm_keys.add(option_key(value))
        else:
            drivers.add(tuple(flag))
    kept = []
    for group in arguments.options:
        value = mllvm_value(group)
        if (value and option_key(value) in llvm_keys) or group in drivers:
            continue
        kept.append(group)
    return Arguments(tuple(kept), arguments.inputs)
