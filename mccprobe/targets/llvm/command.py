"""Compiler arguments as lists: which of them compile, which link, which are inputs.

Pure. The lists below name the clang options that take their value as the next argument
(clang/include/clang/Driver/Options.td, kinds Separate and JoinedOrSeparate); a wrapper that does
not know them drops or splits `-mllvm X` (gllvm#52).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from mccprobe.targets.flags.given import CompilerFlag
from mccprobe.targets.llvm.jobs import option_key

_ARCHITECTURE = ("--offload-arch", "--cuda-gpu-arch")  # joined with "=" in clang; MUSA projects also give two words
TAKES_NEXT = frozenset(
    (
        *_ARCHITECTURE,
        "-A", "-allowable_client", "--analyzer-output", "-arch", "-arcmt-migrate-report-output", "--assert",
        "-B", "-b", "--bootclasspath", "-bundle_loader", "-c-isystem", "-ccc-arcmt-migrate", "-ccc-gcc-name",
        "-ccc-install-dir", "-ccc-objcmt-migrate", "--CLASSPATH", "--classpath", "-client_name",
        "-compatibility_version", "--config", "-current_version", "-cxx-isystem", "-D",
        "--define-macro", "-dependency-dot",
        "-dependency-file", "-dsym-dir", "-dumpdir", "--dyld-prefix", "-dylib_file", "-e", "--encoding",
        "-exported_symbols_list", "--extdirs", "-F", "-fdebug-compilation-dir", "-filelist",
        "-fmodules-user-build-path", "--for-linker", "--force-link", "-force_load", "-framework",
        "-ftrapv-handler", "-G", "-gen-cdb-fragment-path", "-I", "-iapinotes-modules", "-idirafter",
        "-iframework", "-iframeworkwithsysroot", "--imacros", "-imacros", "-image_base", "-imultilib",
        "--include", "-include", "--include-directory", "-include-pch", "-init", "-install_name", "-iprefix",
        "-iquote", "-isysroot", "-isystem", "-isystem-after", "-ivfsoverlay", "-iwithprefix",
        "-iwithprefixbefore", "-iwithsysroot", "-L", "-l", "--language", "-lazy_framework", "-lazy_library",
        "--library-directory", "-meabi", "-MF", "-MJ", "-mllvm", "-mmlir", "-module-dependency-dir", "-MQ",
        "-MT", "-mthread-model", "-multiply_defined", "-o", "-object-file-name", "--output",
        "--output-class-directory", "-pagezero_size", "--param", "--prefix", "-read_only_relocs",
        "-reexport_framework", "-reexport_library", "--resource", "-resource-dir", "-rpath", "--rtlib",
        "-seg1addr", "-seg_addr_table", "-seg_addr_table_filename", "-segs_read_only_addr",
        "-segs_read_write_addr", "--serialize-diagnostics", "-serialize-diagnostics", "--std", "--stdlib",
        "-stdlib++-isystem", "-sub_library", "-sub_umbrella", "--sysroot", "-sysroot", "-T", "-target", "-Tbss",
        "-Tdata", "-Ttext", "-U", "-u", "-umbrella", "--undefine-macro", "-undefined",
        "-unexported_symbols_list", "-V", "-weak_framework", "-weak_library", "-working-directory", "-x",
        "-Xanalyzer", "-Xassembler", "-Xclang", "-Xcuda-fatbinary", "-Xcuda-ptxas", "-Xlinker",
        "-Xmicrosoft-visualc-tools-root", "-Xoffload-linker", "-Xopenmp-target", "-Xpreprocessor", "-z",
    )
)  # fmt: skip
# for one of several compiles: -Xarch_mp_22 ARG
_TAKE_NEXT_TOO = ("-Xarch_", "-Xopenmp-target=", "-Xoffload-linker-")
SOURCE_SUFFIXES = frozenset(
    (".c", ".cc", ".cpp", ".cxx", ".c++", ".C", ".cu", ".mu", ".hip", ".cl", ".m", ".mm", ".i", ".ii", ".ll",
     ".bc", ".s", ".S")
)  # fmt: skip
CXX_SUFFIXES = frozenset((".cc", ".cpp", ".cxx", ".c++", ".C", ".ii", ".mm"))
_OBJECT_SUFFIXES = frozenset((".o", ".a", ".so", ".obj", ".lo", ".la"))
# kept in the reference build when --reference replaces the compile arguments (issue wording);
# -U, -isystem, -include and -iquote are of the same kind: without them the source does not compile.
_KEPT_PREFIXES = (
    "-l", "-L", "-Wl,", "-I", "-D", "-U", "-isystem", "-include", "-iquote", "-idirafter", "-imacros", "-pthread",
)  # fmt: skip
# what a command with -c calls unused, an error under -Werror
_LINK_PREFIXES = ("-l", "-L", "-Wl,", "-fuse-ld=", "--ld-path=", "-rtlib=", "--rtlib=", "-unwindlib=")
_LINK_ONLY = frozenset(
    ("-Xlinker", "--for-linker", "-rpath", "-T", "-Tbss", "-Tdata", "-Ttext", "--rtlib", "-u", "-z", "-e", "-init",
     "-rdynamic", "-static", "-static-pie", "-shared", "-pie", "-no-pie", "-s", "-nostdlib", "-nodefaultlibs",
     "-nostartfiles", "-nolibc", "-static-libgcc", "-static-libstdc++", "-shared-libgcc", "--library-directory")
)  # fmt: skip
# they write files beside the object and change nothing in it: no trial may do that in the user's folder
_WRITES_BESIDE = frozenset(
    ("-MD", "-MMD", "-MP", "-MG", "-MV", "-MF", "-MT", "-MQ", "-MJ", "-dependency-file", "-dependency-dot",
     "-gen-cdb-fragment-path", "-save-temps", "-serialize-diagnostics", "--serialize-diagnostics")
)  # fmt: skip
# they end the compile before the object, or name an output: mccprobe's own to set
_OWN = frozenset(
    ("-c", "-dc", "-S", "-E", "-M", "-MM", "-o", "--output", "-###", "-fsyntax-only", "-emit-llvm", "--preprocess",
     "--compile", "--assemble")
)  # fmt: skip
_OUTPUT = frozenset(
    ("-c", "-dc", "--compile", "-o", "--output", "--cuda-device-only", "--musa-device-only", "--musa-device-obj-only")
)  # of these, what a compile command of a build log has


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
        taken = 1
        if not argument.startswith("-") or argument == "-":
            inputs.append(argument)
        else:
            if argument in TAKES_NEXT or argument.startswith(_TAKE_NEXT_TOO):
                taken = 4 if _is_clang_pair(args[index : index + 4]) else 2
            options.append(tuple(args[index : index + taken]))
        index += taken
    return Arguments(tuple(options), tuple(inputs))


def _is_clang_pair(four: Sequence[str]) -> bool:
    """`-Xclang -mllvm -Xclang X`: an option of cc1 and its value, one at a time."""
    return len(four) == 4 and four[0] == four[2] == "-Xclang" and four[1] in ("-mllvm", "-load", "-plugin")


def names_architecture(argument: str) -> bool:
    """True for the option that names a device architecture, joined with it or in front of it."""
    return argument.partition("=")[0] in _ARCHITECTURE


def split_response_text(text: str) -> list[str]:
    """The arguments in a response file, by the rules of llvm::cl::TokenizeGNUCommandLine."""
    arguments: list[str] = []
    current: list[str] | None = None  # characters of the argument that was begun
    quote = ""
    characters = iter(text)
    for character in characters:
        if not quote and character in " \t\r\n":
            if current is not None:
                arguments.append("".join(current))
            current = None
            continue
        current = [] if current is None else current
        if character == "\\":
            current.append(next(characters, ""))
        elif character == quote:
            quote = ""
        elif not quote and character in "\"'":
            quote = character
        else:
            current.append(character)
    return arguments if current is None else [*arguments, "".join(current)]


def own_to_set(arguments: Arguments) -> str:
    """The first option that is mccprobe's own to set, "" if there is none."""
    for group in arguments.options:
        if group[0] in _OWN or (group[0].startswith("-o") and not group[0].startswith("-obj")):
            return group[0]
    return ""


def without_output(arguments: Arguments) -> tuple[Arguments, list[str]]:
    """Without `-c` and `-o FILE`, and those as they were given."""
    own = [
        group
        for group in arguments.options
        if group[0] in _OUTPUT
        or group[0].startswith("--output=")
        or (group[0].startswith("-o") and not group[0].startswith("-obj"))
    ]
    kept = tuple(group for group in arguments.options if group not in own)
    return Arguments(kept, arguments.inputs), [" ".join(group) for group in own]


def without_side_outputs(arguments: Arguments) -> Arguments:
    """Without the options that write further files and change nothing in the object."""
    kept = [
        group
        for group in arguments.options
        if group[0] not in _WRITES_BESIDE and not group[0].startswith(("-save-temps=", "-MF", "-MT", "-MQ", "-MJ"))
    ]
    return Arguments(tuple(kept), arguments.inputs)


def _language_of(group: Sequence[str]) -> str | None:
    """What `-x` says, None for another option."""
    if group[0] in ("-x", "--language") and len(group) == 2:
        return group[1]
    if group[0].startswith("--language="):
        return group[0].partition("=")[2]
    return group[0][2:] if group[0].startswith("-x") and len(group[0]) > 2 else None


def language(arguments: Arguments) -> str:
    """The language that `-x` forces on sources, "" if none."""
    named = (_language_of(group) for group in arguments.options)
    return next((name for name in named if name and name != "none"), "")


def with_one_language(arguments: Arguments) -> Arguments:
    """With at most one `-x`, which holds for every source: the first that names a language."""
    forced = language(arguments)
    options = tuple(group for group in arguments.options if _language_of(group) is None)
    return Arguments((*options, ("-x", forced)) if forced else options, arguments.inputs)


def without_language(args: Sequence[str]) -> tuple[str, ...]:
    """The options without `-x`: behind it, a linker's inputs would be taken for sources."""
    return tuple(a for group in split_arguments(args).options if _language_of(group) is None for a in group)


def is_source(name: str, forced: str = "") -> bool:
    """True for a file that the driver compiles. forced: the language that `-x` names."""
    suffix = Path(name).suffix
    return suffix in SOURCE_SUFFIXES or (bool(forced) and suffix not in _OBJECT_SUFFIXES and name != "-")


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
    return option.startswith(_LINK_PREFIXES) or option in _LINK_ONLY


def kept_in_reference(arguments: Arguments) -> tuple[str, ...]:
    """The options that stay when `--reference` replaces the compile arguments."""
    return tuple(
        a
        for group in arguments.options
        if group[0].startswith(_KEPT_PREFIXES) or _is_link_only(group[0])
        for a in group
    )


def mllvm_value(group: Sequence[str]) -> str:
    """The LLVM option that this group passes, in any spelling; "" if it passes none."""
    if group[0] == "-mllvm" and len(group) == 2:
        return group[1]
    if group[0].startswith("-mllvm="):
        return group[0].partition("=")[2]
    if len(group) == 4 and tuple(group[:3]) == ("-Xclang", "-mllvm", "-Xclang"):
        return group[3]
    return ""


def flag_of(argv: Sequence[str]) -> CompilerFlag:
    """The flag that a group of driver arguments is."""
    option = mllvm_value(argv)
    return CompilerFlag(option) if option else CompilerFlag(words=tuple(argv))


def without_flags(arguments: Arguments, flags: Iterable[CompilerFlag]) -> Arguments:
    """The arguments less those that `flags` give, in any spelling."""
    flags = list(flags)
    llvm_keys = {option_key(flag.option) for flag in flags if flag.option}
    drivers = {flag.words for flag in flags if flag.words}
    kept = []
    for group in arguments.options:
        value = mllvm_value(group)
        if (value and option_key(value) in llvm_keys) or group in drivers:
            continue
        kept.append(group)
    return Arguments(tuple(kept), arguments.inputs)
