"""Laws of the wrapper, in every shell: bytes survive, no option comes twice, words are split as LLVM splits them."""

from __future__ import annotations

import json
import os
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mccprobe.build.wrapper.flagset import driver_key, llvm_key, wrapper_sets
from mccprobe.build.wrapper.script import generate, template
from mccprobe.targets.llvm.jobs import mllvm_options

SET = wrapper_sets("gemm-s4000").chosen
PREFIX = [os.fsencode(word) for one in SET.additions for word in one.words]
COMPILE = [b"-c", b"k.mu"]
LOG_FUNCTIONS = ("mccp_record", "mccp_string", "mccp_escape", "mccp_append")
SHELL_CALLS = settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture], derandomize=True
)

raw = st.binary(max_size=12).filter(lambda data: b"\0" not in data)
# no response file, no query, no second meaning: what is left must change nothing in the decision
harmless = raw.filter(lambda data: not data.startswith((b"@", b"-")))
options = st.sampled_from(
    [b"-O3", b"-DX=" + bytes(range(0x80, 0x90)), b"-w", b"-g", b"-Wall", b"-I", b"-D", b"-MF", b"-v", b"-Xarch_device"]
)
llvm_names = st.sampled_from(["FenceSetting", "mtgpu-load-store-opt", "misched", "mtgpu-enable-postra-sched"])
llvm_spellings = st.builds(
    lambda name, dashes, value, form: [*form, f"{dashes}{name}{value}"],
    llvm_names, st.sampled_from(["-", "--"]), st.sampled_from(["", "=1", "=x y"]),
    st.sampled_from([["-mllvm"], ["-Xclang", "-mllvm", "-Xclang"]]),
)  # fmt: skip


@SHELL_CALLS
@given(arguments=st.lists(st.one_of(harmless, options, raw.map(lambda d: b"-DM=" + d)), max_size=8))
def test_arguments_survive_byte_for_byte(arguments: list[bytes], call: Any) -> None:
    given_argv = [*COMPILE, *arguments]
    done = call(given_argv)
    assert done.argv == PREFIX + given_argv
    # the log says the same, and every byte comes back from it
    assert [os.fsencode(word) for word in done.log["before"][1:]] == given_argv
    assert [os.fsencode(word) for word in done.log["after"][1:]] == done.argv


@SHELL_CALLS
@given(spelled=st.lists(llvm_spellings, max_size=4, unique_by=lambda words: llvm_key(words[-1])))
def test_no_option_comes_twice_and_the_users_value_stays(spelled: list[list[str]], call: Any) -> None:
    given_argv = ["-c", "k.mu", *(word for words in spelled for word in words)]
    done = call(given_argv)
    after = [os.fsdecode(word) for word in done.argv]
    keys = [llvm_key(option) for option in mllvm_options(after)]
    assert len(keys) == len(set(keys))
    assert set(keys) == {one.key for one in SET.additions} | {llvm_key(words[-1]) for words in spelled}
    for words in spelled:
        assert words[-1] in mllvm_options(after)


def functions(*names: str) -> str:
    """The text of some functions of the wrapper's template."""
    text = template()
    found = [re.search(rf"^{name}\(\) \{{\n.*?^\}}\n", text, re.MULTILINE | re.DOTALL) for name in names]
    assert all(found), names
    return "".join(one[0] for one in found if one)


def run_sh(shell: list[str], script: str, *args: str | bytes) -> bytes:
    done = subprocess.run([*shell, "-c", script, "sh", *args], capture_output=True, check=False, timeout=60)
    assert done.returncode == 0 and not done.stderr, done.stderr
    return done.stdout


driver_options = st.one_of(
    st.sampled_from(
        ["-O2", "-Ofast", "-Od3", "-fno-signed-zeros", "-fsigned-zeros", "-mno-fma", "-Wno-unused=2", "-DA=1", "-UA",
         "-D", "-g", "-g3", "-ggdb", "-gdwarf-4", "-gsplit-dwarf", "-fplugin=a", "--cuda-gpu-arch=mp_22", "-std=c++17",
         "--offload-arch=mp_31", "--std=c++20", "-target", "--sysroot", "-I", "-Iinc=x", "-march=native", "-Xclang"]
    ),
    st.text("-=DUOfmWgnox3", min_size=1, max_size=8),
)  # fmt: skip


@SHELL_CALLS
@given(pairs=st.lists(st.tuples(driver_options, st.sampled_from(["", "v", "A=2"])), min_size=1, max_size=30))
def test_names_of_driver_options_are_those_of_python(pairs: list[tuple[str, str]], shell: list[str]) -> None:
    script = (
        functions("mccp_key") + 'while [ $# -gt 0 ]; do mccp_key "$1" "$2"; printf "%s\\n" "$mccp_key"; shift 2; done'
    )
    said = run_sh(shell, script, *(word for pair in pairs for word in pair)).decode().split("\n")[:-1]
    assert said == [driver_key(option, value) for option, value in pairs]


def llvm_words(text: str) -> list[str]:
    """llvm::cl::TokenizeGNUCommandLine of LLVM 14, written from its description: an empty word is none."""
    words, word, quote, position = [], "", "", 0
    while position < len(text):
        character = text[position]
        if character == "\\" and position + 1 < len(text):
            position += 1
            word += text[position]
        elif quote:
            if character == quote:
                quote = ""
            else:
                word += character
        elif character in "\"'":
            quote = character
        elif character in " \t\r\n":
            words += [word] if word else []
            word = ""
        else:
            word += character
        position += 1
    return words + ([word] if word else [])


@SHELL_CALLS
@given(text=st.text("ab-\"'\\ \t\n\r*?é", max_size=30).map(lambda text: text.rstrip("\\")))
def test_words_of_a_response_file_are_llvms(text: str, shell: list[str], tmp_path: Path) -> None:
    file = tmp_path / "a.rsp"
    file.write_bytes(text.encode())
    script = (
        "mccp_nl='\n'\nmccp_tab='\t'\nmccp_depth=0 mccp_cr=\n"
        + functions("mccp_file", "mccp_begin", "mccp_split", "mccp_end")
        + "take() { printf '%s\\0' \"$1\"; }\n"
        + 'mccp_file "$1" take'
    )
    words = run_sh(shell, script, str(file)).split(b"\0")[:-1]
    # the reader adds the newline that a file's last line may lack
    assert [word.decode() for word in words] == llvm_words(text if text.endswith("\n") or not text else text + "\n")


def test_a_long_response_file(call: Any, tmp_path: Path) -> None:
    """CMake writes thousands of objects on one line; some names are quoted."""
    names = [f"dir/object{n}.o" if n % 500 else f'"my dir/object{n}.o"' for n in range(5000)]
    (tmp_path / "objects.rsp").write_text(" ".join(names) + " -mllvm -FenceSetting=strict\n")
    assert call(["@objects.rsp", "-o", "x"]).log["kind"] == "link"
    done = call(["@objects.rsp", "-c", "k.mu"])
    assert (done.log["kind"], done.log["kept"]) == ("compile", ["FenceSetting"])


def test_many_arguments(call: Any) -> None:
    objects = [f"o{n}.o" for n in range(3000)]
    assert call([*objects, "-o", "x"]).argv == [os.fsencode(name) for name in [*objects, "-o", "x"]]


def test_the_environment_is_left_alone(shell: list[str], tmp_path: Path) -> None:
    """Beside its own chain variable nothing of the wrapper's inner life is seen by the compiler."""
    compiler = tmp_path / "mcc"
    compiler.symlink_to("/usr/bin/env")
    wrapper = tmp_path / "w"
    wrapper.write_bytes(generate(compiler, wrapper_sets("gemm-s4000")))
    theirs = {"kind": "theirs", "LC_ALL": "C", "key": "k", "line": "l", "IFS": ":", "x": "\xe9"}
    env = {"PATH": os.environ["PATH"], **theirs}
    plain = run_env(shell, ["-c", "exec /usr/bin/env -0"], env)
    through = run_env(shell, [str(wrapper), "--null"], env)
    chain = through.pop(b"MCCPROBE_WRAPPER_CHAIN")
    assert chain == b":" + os.fsencode(compiler)
    for odd in (b"_", b"SHLVL"):  # bash counts and notes its commands in them
        plain.pop(odd, None)
        through.pop(odd, None)
    assert through == plain


def run_env(shell: list[str], args: list[str], env: dict[str, str]) -> dict[bytes, bytes]:
    done = subprocess.run([*shell, *args], env=env, capture_output=True, check=True, timeout=60)
    return dict(entry.split(b"=", 1) for entry in done.stdout.split(b"\0") if entry)


def test_only_builtins(shell: list[str], tmp_path: Path) -> None:
    """With an empty PATH everything still works, log and response file too: no other program is started."""
    compiler = tmp_path / "mcc"
    compiler.symlink_to("/usr/bin/true")
    wrapper = tmp_path / "w"
    wrapper.write_bytes(generate(compiler, wrapper_sets("gemm-s4000")))
    (tmp_path / "a.rsp").write_text("-mllvm '-x=1'")
    program = subprocess.run(["which", shell[0]], capture_output=True, text=True, check=True).stdout.strip()
    done = subprocess.run(
        [program, *shell[1:], str(wrapper), "-c", "k\xe9\n.mu", "@a.rsp"],
        cwd=tmp_path,
        capture_output=True,
        check=False,
        timeout=60,
        env={"PATH": "", "MCCPROBE_LOG": str(tmp_path / "log"), "MCCPROBE_FLAGS": "-O2 '-DX=a b'"},
    )
    assert (done.returncode, done.stderr) == (0, b"")
    assert (tmp_path / "log").read_text().count("\n") == 1


@pytest.mark.parametrize("size", [10, 6000])
def test_concurrent_writers_do_not_mix_lines(
    call: Any, shell: list[str], wrapper_file: Path, tmp_path: Path, size: int
) -> None:
    log = tmp_path / "shared.jsonl"
    env = {**os.environ, "MCCPROBE_LOG": str(log)}
    running = [
        subprocess.Popen(
            [*shell, str(wrapper_file), "-c", "k.mu", f"-DN={n}" + "x" * size], env=env, stdout=subprocess.DEVNULL
        )
        for n in range(24)
    ]
    assert all(process.wait(60) == 0 for process in running)
    lines = [json.loads(line) for line in log.read_text(encoding="ascii").splitlines()]
    assert sorted(line["before"][-1] for line in lines) == sorted(f"-DN={n}" + "x" * size for n in range(24))


def test_a_log_line_takes_a_time_that_grows_with_its_length(shell: list[str], wrapper_file: Path) -> None:
    """No step of the log removes a prefix or suffix of the user's text: that is quadratic in dash and bash."""
    text = wrapper_file.read_text()
    writers = [re.search(rf"^{name}\(\) \{{\n(.*?)^\}}", text, re.MULTILINE | re.DOTALL) for name in LOG_FUNCTIONS]
    assert all(writers) and not [found for found in writers if found and re.search(r"\$\{\w+[#%]", found[1])]


@pytest.mark.parametrize("piece", ["a", '"', "\\", "\t\n", "\xe9", ":?-", "\udc80"])
def test_a_long_argument_is_logged_whole(call: Any, piece: str) -> None:
    word = "-DX=" + piece * (3000 // len(piece))
    line = call(["-c", "k.mu", os.fsencode(word)]).log
    assert os.fsencode(line["before"][-1]) == os.fsencode(line["after"][-1]) == os.fsencode(word)


def test_a_fifo_without_a_reader_blocks_no_build(call: Any, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo\x1b[2J")
    found = call(["-c", "k.mu"], env={"MCCPROBE_LOG": str(tmp_path / "fifo\x1b[2J")})
    assert found.code == 0 and len(found.argv) > 2 and "is a FIFO: nothing is logged" in found.stderr
    assert "\x1b" not in found.stderr and "fifo\\u001b[2J" in found.stderr


@pytest.mark.parametrize(
    "env",
    [
        {"MCCPROBE_SET": "no\x1b[31m"},
        {"MCCPROBE_FLAGS": "no\x1b[31m"},
        {"MCCPROBE_FLAGS": "@no\x1b[31m"},
        {"MCCPROBE_LOG": "/no/folder/\x1b[31m\x07"},
        {"CCC_OVERRIDE_OPTIONS": "#", "MCCPROBE_SET": "n\x01\u4e2d"},
    ],
)
def test_control_characters_of_the_environment_are_escaped(call: Any, env: dict[str, str]) -> None:
    found = call(["-c", "k.mu"], env=env)
    assert found.stderr and re.search(r"\\u00(?:1b|01)", found.stderr)
    assert not re.search(r"[\x00-\x09\x0b-\x1f]", found.stderr)
    assert ("\u4e2d" in found.stderr) == any("\u4e2d" in value for value in env.values())
