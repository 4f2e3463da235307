"""Compiler arguments taken apart: options keep their values, inputs are inputs, nothing is guessed."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from mccprobe.targets.flags.given import CompilerFlag
from mccprobe.targets.llvm.command import (
    TAKES_NEXT,
    Arguments,
    compile_options,
    flag_of,
    is_cxx,
    is_source,
    kept_in_reference,
    language,
    link_options,
    mllvm_value,
    own_to_set,
    split_arguments,
    split_response_text,
    with_one_language,
    without_flags,
    without_language,
    without_side_outputs,
)
from mccprobe.targets.llvm.jobs import mllvm_options, option_key

# what stands behind `--` -> the inputs; "|" parts the arguments so that blanks can stand in them
HARD = {
    "": [],
    "-O2": [],
    "-O2|a.c": ["a.c"],
    "a.c|b.o|libx.a|-lm": ["a.c", "b.o", "libx.a"],
    "-mllvm|-x": [],
    "-mllvm|-enable-newgvn|a.c": ["a.c"],
    "-mllvm|a.c": [],
    "-mllvm=-x|a.c": ["a.c"],
    "-mllvm|-x=1|-mllvm|-y|b.c": ["b.c"],
    "-Xclang|-mllvm|-Xclang|-x|a.c": ["a.c"],
    "-Xclang|-mllvm|a.c|-O2": ["a.c"],
    "-Xclang|-load|-Xclang|plugin.so|a.c": ["a.c"],
    "-Xclang|-disable-O0-optnone|a.c": ["a.c"],
    "-Xclang|-target-feature|-Xclang|+avx2|a.c": ["a.c"],
    "-x|c|a.odd": ["a.odd"],
    "-xc|a.odd": ["a.odd"],
    "-x|c|a.odd|-x|none|b.o": ["a.odd", "b.o"],
    "-I|dir|-Idir|a.c": ["a.c"],
    "-I|-odd-folder|a.c": ["a.c"],
    "-D|X=1|-DX|-D|Y=a b|a.c": ["a.c"],
    "-D|a.c": [],
    "-include|a.h|a.c": ["a.c"],
    "-isystem|/usr/x|-iquote|q|-idirafter|z|a.c": ["a.c"],
    "-L|lib|-Llib|-l|m|-lm|a.c": ["a.c"],
    "-Wl,-z,now|-Wl,--start-group|a.a|b.a|-Wl,--end-group": ["a.a", "b.a"],
    "-Xlinker|-rpath|-Xlinker|dir|a.o": ["a.o"],
    "-Xlinker|a.o": [],
    "-rpath|dir|a.o": ["a.o"],
    "-T|script.ld|a.o": ["a.o"],
    "-u|symbol|-z|now|-e|start|a.o": ["a.o"],
    "-target|x86_64-linux|--target=x86_64-linux|a.c": ["a.c"],
    "--sysroot|/root|--sysroot=/root|-isysroot|/x|a.c": ["a.c"],
    "--param|x=1|--param=x=1|a.c": ["a.c"],
    "-MF|deps.d|-MT|target|-MQ|t|-MJ|j|-MD|a.c": ["a.c"],
    "-o|out|a.c": ["a.c"],
    "-oout|a.c": ["a.c"],
    "-Xarch_device|-O0|a.c": ["a.c"],
    "-Xarch_host|-O0|a.c": ["a.c"],
    "-Xarch_mp_22|-O0|a.c": ["a.c"],
    "-Xarch_gfx906|a.c|b.c": ["b.c"],
    "-Xopenmp-target|-O1|-Xopenmp-target=nvptx64|-O2|a.c": ["a.c"],
    "-Xassembler|-x|-Xpreprocessor|-y|-Xanalyzer|-z|a.c": ["a.c"],
    "-Xcuda-ptxas|-v|-Xcuda-fatbinary|x|a.c": ["a.c"],
    "--offload-arch=mp_22|--offload-arch=mp_31|k.mu|-lmusart": ["k.mu"],
    "-ftrapv-handler|handler|-fdebug-compilation-dir|.|a.c": ["a.c"],
    "-resource-dir|r|-working-directory|w|a.c": ["a.c"],
    "--config|file.cfg|-B|dir|-B.|a.c": ["a.c"],
    "@file|a.c": ["@file", "a.c"],
    "@|a.c": ["@", "a.c"],
    "-": ["-"],
    "-|a.c": ["-", "a.c"],
    "a b.c|-DX=a b": ["a b.c"],
    "./-dash.c": ["./-dash.c"],
    "a.c|-mllvm": ["a.c"],
    "a.c|-I": ["a.c"],
    "|a.c": ["", "a.c"],
    "-fplugin=x.so|-fpass-plugin=y.so|a.c": ["a.c"],
    "-framework|F|-F|dir|a.m": ["a.m"],
}


@pytest.mark.parametrize("text", HARD, ids=lambda text: text or "nothing")
def test_split(text: str) -> None:
    args = text.split("|") if text else []
    found = split_arguments(args)
    assert list(found.inputs) == HARD[text]
    assert sorted([*found.flat, *found.inputs]) == sorted(args), "nothing is lost or made up"
    assert all(group and group[0].startswith("-") for group in found.options)


# a missing value, and a spelling that clang takes from 17 on: it then names no missing file at all
REFUSED_BY_CLANG_14 = {"-mllvm=-x|a.c", "a.c|-mllvm", "a.c|-I"}


@pytest.mark.toolchain("clang-14")
@pytest.mark.parametrize("text", [text for text in HARD if text], ids=str)
def test_split_agrees_with_the_driver(text: str, tmp_path: Path) -> None:
    """clang calls exactly our inputs missing files (what it does not know at all aside)."""
    args = [
        "A" + argument if argument and not argument.startswith(("-", "@")) else argument for argument in text.split("|")
    ]
    ran = subprocess.run(["clang-14", "-###", *args], cwd=tmp_path, capture_output=True, text=True, check=False)
    missing = [line.split("'")[1] for line in ran.stderr.splitlines() if "no such file or directory: '" in line]
    if "unknown argument" in ran.stderr or "argument to" in ran.stderr or "unsupported option" in ran.stderr:
        assert text in REFUSED_BY_CLANG_14, ran.stderr
        return
    ours = [name for name in split_arguments(args).inputs if name not in ("", "-")]
    assert missing == ours or (not missing and "-x" in args), ran.stderr


@pytest.mark.toolchain
@pytest.mark.parametrize("major", [14, 19])
def test_every_option_that_takes_the_next_argument(major: int, compiler: Callable[..., str], tmp_path: Path) -> None:
    clang = compiler(major)

    def takes(option: str) -> bool | None:
        ran = subprocess.run(
            [clang, "-###", option, "gone/TOKEN", "-c", "/dev/null"],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
        )
        if "unknown argument" in ran.stderr or "unsupported option" in ran.stderr:
            return None
        return "directory: 'gone/TOKEN'" not in ran.stderr

    # mcc is clang 14: an option that only it or only a later one takes so is in the list too
    later = {
        "-Xoffload-linker",
        "-dumpdir",
        "-reexport_framework",
        "-reexport_library",
        "-Xmicrosoft-visualc-tools-root",
    }
    other = later if major < 15 else {"-Tbss", "-Tdata", "-Ttext"}
    assert [option for option in sorted(TAKES_NEXT - other) if takes(option) is False] == []
    for option in (
        "-Xarch_host",
        "-Xarch_device",
        "-Xopenmp-target",
        "-Xopenmp-target=nvptx64",
        "--config",
        "--stdlib",
        "--rtlib",
        *(["-dumpdir"] if major >= 17 else []),
    ):
        assert split_arguments([option, "a.c"]).inputs == () and takes(option), option
    single = [
        "-O2",
        "-g",
        "-c",
        "-Wall",
        "-fPIC",
        "-m64",
        "-pthread",
        "-static",
        "-shared",
        "-nostdlib",
        "-v",
        "-w",
        "-P",
        "-C",
    ]
    for option in [
        *single,
        "-ansi",
        "-pipe",
        "-rdynamic",
        "-MD",
        "-MMD",
        "-MP",
        "-DX",
        "-Idir",
        "-lm",
        "-Ldir",
        "-Wl,-z,now",
    ]:
        assert option not in TAKES_NEXT and takes(option) is not True, option


# --- kinds of options ---------------------------------------------------------------------------


def split(text: str) -> Arguments:
    return split_arguments(text.split())


ALL = (
    "-O3 -march=native -DX -D Y -U Z -I i -isystem s -iquote q -include h.h -L l -lm -l c -Wl,-z,now -Xlinker -x "
    "-fuse-ld=lld -rdynamic -pthread -std=c11 -mllvm -a -static -u sym a.o"
)


def test_what_only_links() -> None:
    links = "-L l -lm -l c -Wl,-z,now -Xlinker -x -fuse-ld=lld -rdynamic -static -u sym".split()
    assert list(link_options(split(ALL))) == links
    assert list(compile_options(split(ALL))) == (
        "-O3 -march=native -DX -D Y -U Z -I i -isystem s -iquote q -include h.h -pthread -std=c11 -mllvm -a".split()
    )


@pytest.mark.toolchain("clang-14")
def test_a_compile_without_link_options_warns_of_nothing(tmp_path: Path) -> None:
    """Under -Werror an unused argument would be an error that the user's own command does not have."""
    (tmp_path / "a.c").write_text("int a;\n")
    given = split(
        "-O1 -lm -L. -Wl,-z,now -fuse-ld=lld -rdynamic -static -s -nostdlib -nodefaultlibs -nostartfiles "
        "-static-libgcc -shared-libgcc -rtlib=libgcc -pie -no-pie -u x -z now -T t.ld -Xlinker x -pthread -Werror"
    )
    ran = subprocess.run(
        ["clang-14", *compile_options(given), "-c", "a.c"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert (ran.returncode, ran.stderr) == (0, "")


def test_what_stays_in_a_reference() -> None:
    assert list(kept_in_reference(split(ALL))) == (
        "-DX -D Y -U Z -I i -isystem s -iquote q -include h.h -L l -lm -l c -Wl,-z,now -Xlinker -x -fuse-ld=lld "
        "-rdynamic -pthread -static -u sym".split()
    )


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("-mllvm -x=1", "-x=1"),
        ("-mllvm=-x=1", "-x=1"),
        ("-Xclang -mllvm -Xclang -x=1", "-x=1"),
        ("-O2", ""),
        ("-Xclang -load -Xclang p.so", ""),
        ("-mllvm", ""),
    ],
)
def test_the_llvm_option_of_a_group(text: str, value: str) -> None:
    assert [mllvm_value(group) for group in split(text).options] == [value]


@pytest.mark.parametrize(
    "given",
    [
        "-mllvm -x",
        "-mllvm --x",
        "-mllvm -x=1",
        "-mllvm --x=0",
        "-mllvm=-x",
        "-mllvm=--x=3",
        "-Xclang -mllvm -Xclang -x=2",
    ],
)
@pytest.mark.parametrize("flag", ["-mllvm -x", "-mllvm --x=7"])
def test_a_flag_is_taken_out_in_every_spelling(given: str, flag: str) -> None:
    bare = without_flags(split(f"-O2 {given} a.c -mllvm -xy -lm"), [flag_of(flag.split())])
    assert bare == split("-O2 a.c -mllvm -xy -lm")


def test_a_drivers_flag_is_taken_out_as_it_stands() -> None:
    bare = without_flags(split("-O2 -fno-inline -fno-inline-x a.c"), [CompilerFlag(words=("-fno-inline",))])
    assert bare == split("-O2 -fno-inline-x a.c")


@pytest.mark.parametrize(
    ("text", "own"),
    [
        ("-c a.c", "-c"),
        ("-S", "-S"),
        ("-E", "-E"),
        ("-o x", "-o"),
        ("-ox", "-ox"),
        ("-M", "-M"),
        ("-###", "-###"),
        ("-MD -MF x", ""),
        ("-O2 -Ofast -DE -objcmt-x", ""),
        ("-I -c", ""),
        ("-mllvm -o", ""),
        ("-emit-llvm", "-emit-llvm"),
    ],
)
def test_what_is_ours_to_set(text: str, own: str) -> None:
    assert own_to_set(split(text)) == own


def test_no_option_writes_beside_the_object() -> None:
    given = split(
        "-O2 -MD -MMD -MP -MF d -MFd -MT t -MQ q -MJ j -save-temps -save-temps=obj --serialize-diagnostics s -DM a.c"
    )
    assert without_side_outputs(given) == split("-O2 -DM a.c")


@pytest.mark.parametrize(
    ("text", "forced", "rest"),
    [
        ("-O2 a.c", "", "-O2"),
        ("-x c++ -O2 a.odd", "c++", "-O2"),
        ("-xcuda -O2 a.odd", "cuda", "-O2"),
        ("--language=c -O2", "c", "-O2"),
        ("--language c -O2", "c", "-O2"),
        ("-x none -O2 -x c a.odd -x none b.o", "c", "-O2"),
        ("-mllvm -x -Xassembler -xc", "", "-mllvm -x -Xassembler -xc"),
    ],
)
def test_languages(text: str, forced: str, rest: str) -> None:
    arguments = split(text)
    assert language(arguments) == forced
    assert list(without_language(arguments.flat)) == rest.split()
    assert list(with_one_language(arguments).flat) == [*rest.split(), *(["-x", forced] if forced else [])]


def test_names_of_sources() -> None:
    assert all(map(is_source, ("a.c", "a.cpp", "b/c.ll", "k.mu", "a.b.cc", "x.S")))
    assert not any(map(is_source, ("a.o", "a.a", "a.h", "a", ".c", "-", "lib.so.1")))
    assert is_source("a.odd", "c") and not is_source("a.o", "c") and not is_source("-", "c")
    assert is_cxx("a.cc") and is_cxx("a.C") and not is_cxx("a.c")


# --- response files -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "want"),
    [
        ("", []),
        ("  \n\t ", []),
        ("-O2 a.c", ["-O2", "a.c"]),
        ("-O2\r\na.c\n", ["-O2", "a.c"]),
        ("\"a b\" 'c d'", ["a b", "c d"]),
        ('-D"X=a b"', ["-DX=a b"]),
        ('""', [""]),
        ("a\\ b", ["a b"]),
        ('"a\\"b"', ['a"b']),
        ("'a\\'b'", ["a'b"]),
        ("a\\\\b", ["a\\b"]),
        ('"open', ["open"]),
        ("end\\", ["end"]),
        ("'a'\"b\"c", ["abc"]),
    ],
)
def test_response_text(text: str, want: list[str]) -> None:
    assert split_response_text(text) == want


@pytest.mark.toolchain("clang-14")
@pytest.mark.parametrize(
    "text", ["-DA -DB", "'-DX=a b' -DY=\"c'd\"", "-DX=a\\ b", '-D"X=\\"q\\""', "-DX=\\\\", "'-DX=a\\'b'"]
)
def test_response_text_as_clang_reads_it(text: str, tmp_path: Path) -> None:
    (tmp_path / "args").write_text(text)
    (tmp_path / "a.c").write_text("")
    shown = [
        subprocess.run(
            ["clang-14", "-###", "-c", *args, "a.c"], cwd=tmp_path, capture_output=True, text=True, check=True
        ).stderr
        for args in (["@args"], split_response_text(text))
    ]
    assert shown[0] == shown[1]


# --- a cc1's own options ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("argv", "options"),
    [
        (["c", "-mllvm", "-a", "-mllvm", "-b=1"], ["-a", "-b=1"]),
        (["c", "-mllvm=-a"], ["-a"]),
        (["c", "-Xclang", "-mllvm", "-Xclang", "-a"], ["-a"]),
        (["c", "-mllvm"], []),
    ],
)
def test_llvm_options_of_an_argv(argv: Sequence[str], options: list[str]) -> None:
    assert mllvm_options(argv) == options
    assert {option_key(text) for text in ("-a", "--a", "-a=1", "--a=b=c")} == {"a"}
