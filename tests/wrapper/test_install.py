"""Installing and removing: nothing foreign is touched, nothing is left, two at once do no harm."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from mccprobe.base.errors import (
    BadDataFile,
    CompilerNotFound,
    NotOurWrapper,
    ToolchainError,
    UnknownFlag,
    UsageError,
    WrapperNotInstalled,
)
from mccprobe.build.wrapper import install as installing
from mccprobe.build.wrapper.flagset import wrapper_sets
from mccprobe.build.wrapper.install import find_compiler, install, read_installed, remove, wrapper_path
from mccprobe.build.wrapper.script import read_stamp
from mccprobe.targets.llvm.locate import is_our_wrapper

ANSWERS = """#!/bin/sh
case $1 in
--version) printf 'clang version 14.0.0\\nmcc version 3.1.0\\n' ;;
*) printf '%s\\n' "$0 $*" ;;
esac
"""


def tree(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))


def executable(path: Path, text: str = ANSWERS) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)
    return path


@pytest.fixture
def compiler(tmp_path: Path) -> Path:
    return executable(tmp_path / "sdk/bin/mcc")


@pytest.fixture
def only_path(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """No SDK of this machine is found."""
    monkeypatch.setattr("mccprobe.targets.mcc.toolchain.DEFAULT_MCC", Path("/no/sdk/bin/mcc"))
    return monkeypatch


SETS = wrapper_sets("gemm-s4000")


def test_install_and_remove_leave_nothing(compiler: Path, tmp_path: Path) -> None:
    before = tree(tmp_path)
    prefix = tmp_path / "home/.local"
    done = install(prefix, compiler, SETS)
    assert done.path == prefix / "bin/mcc"
    assert done.path.stat().st_mode & 0o111
    assert is_our_wrapper(done.path), "the search for mcc would take it for the compiler"
    assert [name for name in tree(tmp_path) if name not in before] == [
        "home",
        "home/.local",
        "home/.local/bin",
        "home/.local/bin/mcc",
    ]
    stamp = remove(prefix)
    assert stamp.compiler == str(compiler)
    assert tree(tmp_path) == before


def test_remove_keeps_what_others_put_there(compiler: Path, tmp_path: Path) -> None:
    prefix = tmp_path / "home/.local"
    install(prefix, compiler, SETS)
    executable(prefix / "bin/theirs")
    remove(prefix)
    assert tree(tmp_path / "home") == [".local", ".local/bin", ".local/bin/theirs"]


def test_a_second_install_replaces_and_remove_still_undoes_the_first(compiler: Path, tmp_path: Path) -> None:
    prefix = tmp_path / "p"
    install(prefix, compiler, SETS)
    again = install(prefix, compiler, wrapper_sets("opt1"))
    assert again.replaced is not None and again.replaced.set == "gemm-s4000"
    assert again.stamp.set == "opt1"
    remove(prefix)
    assert not prefix.exists()


def test_folders_that_were_there_stay(compiler: Path, tmp_path: Path) -> None:
    (tmp_path / "p/bin").mkdir(parents=True)
    install(tmp_path / "p", compiler, SETS)
    remove(tmp_path / "p")
    assert (tmp_path / "p/bin").is_dir()


@pytest.mark.parametrize("kind", ["file", "mentions", "link", "dangling", "edited", "empty"])
def test_what_is_not_ours_is_refused_and_left_as_it_is(kind: str, compiler: Path, tmp_path: Path) -> None:
    prefix = tmp_path / "p"
    target = wrapper_path(prefix)
    if kind == "file":
        executable(target)
    elif kind == "mentions":
        executable(target, '#!/bin/sh\n# my own mccprobe wrapper\nexec /opt/mcc "$@"\n')
    elif kind in ("link", "dangling"):
        target.parent.mkdir(parents=True)
        target.symlink_to(compiler if kind == "link" else tmp_path / "gone")
    elif kind == "empty":
        executable(target, "")
    else:
        install(prefix, compiler, SETS)
        target.write_text(target.read_text() + "# a line of mine\n")
    content = target.read_bytes() if target.exists() else None
    before = tree(tmp_path)
    for act in (lambda: install(prefix, compiler, SETS), lambda: remove(prefix)):
        with pytest.raises(NotOurWrapper, match="left as it is"):
            act()
    assert tree(tmp_path) == before
    assert (target.read_bytes() if target.exists() else None) == content


def test_a_refused_install_leaves_no_folder(compiler: Path, tmp_path: Path) -> None:
    (tmp_path / "p").write_text("a file")
    with pytest.raises(Exception, match="cannot be written"):
        install(tmp_path / "p", compiler, SETS)
    assert (tmp_path / "p").read_text() == "a file"


def test_remove_without_a_wrapper(tmp_path: Path) -> None:
    with pytest.raises(WrapperNotInstalled):
        remove(tmp_path / "p")
    (tmp_path / "p/bin").mkdir(parents=True)
    with pytest.raises(WrapperNotInstalled):
        remove(tmp_path / "p")


def test_the_compiler_itself_is_never_overwritten(compiler: Path, tmp_path: Path) -> None:
    with pytest.raises(NotOurWrapper):
        install(compiler.parent.parent, compiler, SETS)
    assert compiler.read_text() == ANSWERS


def test_a_file_that_appears_while_we_write_stays(
    compiler: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = wrapper_path(tmp_path / "p")
    write = installing._write

    def somebody_is_faster(path: Path, data: bytes, *, replace: bool) -> None:
        executable(target)
        write(path, data, replace=replace)

    monkeypatch.setattr(installing, "_write", somebody_is_faster)
    with pytest.raises(NotOurWrapper, match="appeared"):
        install(tmp_path / "p", compiler, SETS)
    assert tree(tmp_path / "p") == ["bin", "bin/mcc"]
    assert target.read_text() == ANSWERS


INSTALLER = """
import sys
from pathlib import Path
from mccprobe.build.wrapper.flagset import wrapper_sets
from mccprobe.build.wrapper.install import install
for _ in range(10):
    install(Path(sys.argv[1]), Path(sys.argv[2]), wrapper_sets(sys.argv[3]))
"""


def test_two_installs_at_once_leave_a_working_wrapper(compiler: Path, tmp_path: Path) -> None:
    prefix = tmp_path / "a/b"
    target = wrapper_path(prefix)
    running = [
        subprocess.Popen([sys.executable, "-c", INSTALLER, str(prefix), str(compiler), name])
        for name in ("gemm-s4000", "opt1", "ls")
    ]
    seen = 0
    while any(process.poll() is None for process in running):
        if target.exists():
            stamp, whole = read_stamp(target.read_bytes())  # never half a file
            assert stamp is not None and whole
            seen += 1
    assert [process.wait() for process in running] == [0, 0, 0]
    assert seen
    assert tree(prefix) == ["bin", "bin/mcc"], "no temporary file is left"
    said = subprocess.run([target, "-c", "k.mu"], capture_output=True, text=True, check=True).stdout
    assert said.startswith(f"{compiler} -") and said.endswith(" -c k.mu\n")
    remove(prefix)
    assert not (tmp_path / "a").exists(), "whichever of them made the folders, remove knows it"


# --- the compiler behind it -----------------------------------------------------------------------


def test_a_moved_compiler_is_said(compiler: Path, tmp_path: Path) -> None:
    done = install(tmp_path / "p", compiler, SETS)
    for change in (compiler.unlink, compiler.mkdir, lambda: compiler.rmdir() or compiler.write_text("no program")):
        change()
        called = subprocess.run([done.path, "-c", "k.mu"], capture_output=True, text=True, check=False)
        assert called.returncode == 127
        assert str(compiler) in called.stderr and "run: mccprobe wrapper install" in called.stderr


def test_a_wrapper_is_not_put_before_a_wrapper(compiler: Path, tmp_path: Path, only_path: pytest.MonkeyPatch) -> None:
    first = install(tmp_path / "p", compiler, SETS)
    with pytest.raises(ToolchainError, match="wrapper, not the compiler"):
        find_compiler(str(first.path))
    link = tmp_path / "q/mcc"
    link.parent.mkdir()
    link.symlink_to(first.path)
    with pytest.raises(ToolchainError, match="wrapper, not the compiler"):
        find_compiler(str(link))
    only_path.setenv("PATH", os.pathsep.join([str(first.path.parent), str(link.parent), str(compiler.parent)]))
    found = find_compiler(None)
    assert found.path == compiler
    assert found.passed_over == (str(first.path), str(link))


def test_ccache_under_the_compilers_name_is_passed_over(
    compiler: Path, tmp_path: Path, only_path: pytest.MonkeyPatch
) -> None:
    ccache = executable(tmp_path / "real/ccache", "#!/bin/sh\nexit 1\n")
    masquerade = tmp_path / "masquerade/mcc"
    masquerade.parent.mkdir()
    masquerade.symlink_to(ccache)
    with pytest.raises(ToolchainError, match="ccache, which looks for mcc in PATH"):
        find_compiler(str(masquerade))
    only_path.setenv("PATH", os.pathsep.join([str(masquerade.parent), str(compiler.parent)]))
    found = find_compiler(None)
    assert found.path == compiler
    only_path.setenv("PATH", str(masquerade.parent))
    with pytest.raises(CompilerNotFound, match="no compiler"):
        find_compiler(None)


def test_ccache_in_front_reaches_the_compiler(compiler: Path, tmp_path: Path) -> None:
    """A launcher under the name mcc, then the wrapper, then the compiler: each is called once."""
    done = install(tmp_path / "p", compiler, SETS)
    front = executable(
        tmp_path / "front/mcc",
        '#!/bin/sh\nme=${0%/*}\nPATH=${PATH#"$me":}\nexec mcc "$@"\n',  # what ccache does: the next of my name
    )
    path = os.pathsep.join([str(front.parent), str(done.path.parent), os.environ["PATH"]])
    said = subprocess.run(["mcc", "-c", "k.mu"], env={"PATH": path}, capture_output=True, text=True, check=True).stdout
    assert said.count("--FenceSetting=mixed") == 1
    assert said.startswith(f"{compiler} ")


@pytest.mark.parametrize("setting", ["on", "off"])
def test_a_compiler_that_calls_mcc_again_is_a_loop_that_ends(tmp_path: Path, setting: str) -> None:
    script = executable(tmp_path / "sdk/mcc", '#!/bin/sh\nexec mcc "$@"\n')
    done = install(tmp_path / "p", script, SETS)
    path = os.pathsep.join([str(done.path.parent), os.environ["PATH"]])
    called = subprocess.run(
        ["mcc", "-c", "k.mu"],
        env={"PATH": path, "MCCPROBE_WRAPPER": setting},
        capture_output=True,
        text=True,
        check=False,
        timeout=30,
    )
    assert called.returncode == 126
    assert called.stderr.count("a loop") == 1 and str(script) in called.stderr


def test_two_wrappers_in_a_row_add_nothing_twice(compiler: Path, tmp_path: Path) -> None:
    """The one behind was put there later, under the name that the one in front recorded."""
    front = install(tmp_path / "p", compiler, SETS)
    moved = compiler.rename(compiler.with_name("mcc.real"))
    install(compiler.parent.parent, moved, SETS)
    said = subprocess.run([front.path, "-c", "k.mu"], capture_output=True, text=True, check=True).stdout
    assert said.startswith(f"{moved} ")
    assert said.count("--FenceSetting=mixed") == 1 and said.count("-mllvm") == 7


def test_odd_paths(tmp_path: Path) -> None:
    compiler = executable(tmp_path / 'it\'s a "dir" $HOME\n\udce9/mcc')
    done = install(tmp_path / "p q", compiler, SETS)
    assert read_installed(done.path) == done.stamp
    assert done.stamp.compiler == str(compiler)
    said = subprocess.run([done.path, "-v"], capture_output=True, check=True).stdout
    assert said == os.fsencode(f"{compiler} -v\n")


# --- sets ---------------------------------------------------------------------------------------------

SET_FILE = """schema_version = 1
[[set]]
name = "mine"
summary = "found by a search"
source = "a search"
flags = [{flags}]
"""


def test_a_set_from_a_file(compiler: Path, tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    file.write_text(SET_FILE.format(flags='"FenceSetting=graph_color", "-DTILE=it\'s", "-O3"'))
    done = install(tmp_path / "p", compiler, wrapper_sets(str(file)))
    said = subprocess.run([done.path, "-c", "k.mu", "-O1"], capture_output=True, text=True, check=True).stdout
    assert said == f"{compiler} -DTILE=it's -mllvm --FenceSetting=graph_color -c k.mu -O1\n"
    env = {**os.environ, "MCCPROBE_SET": "gemm-s4000"}
    said = subprocess.run([done.path, "-c", "k.mu"], env=env, capture_output=True, text=True, check=True).stdout
    assert "--FenceSetting=mixed" in said, "the shipped sets stay known"


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        ('"-mllvm -foo", "--foo=2"', "gives foo twice"),
        ('"-O2", "-O3"', "gives O twice"),
        ('"-Od3", "-mllvm -mtgpu-opt-level=1"', "twice"),
        ('"-include"', "lacks its value"),
        ('"-c"', "that is the build's"),
        ('"-lm"', "for the linker"),
        ('"-Wl,-s"', "for the linker"),
    ],
)
def test_sets_that_mcc_would_refuse(flags: str, message: str, tmp_path: Path) -> None:
    file = tmp_path / "bad.toml"
    file.write_text(SET_FILE.format(flags=flags))
    with pytest.raises(UsageError, match=message):
        wrapper_sets(str(file))


def test_a_set_file_holds_one_set(tmp_path: Path) -> None:
    file = tmp_path / "two.toml"
    text = SET_FILE.format(flags='"-O2"')
    file.write_text(text + text.replace("schema_version = 1\n", "").replace('"mine"', '"other"'))
    with pytest.raises(UsageError, match="exactly one"):
        wrapper_sets(str(file))
    with pytest.raises(UnknownFlag, match="unknown flag set"):
        wrapper_sets("gemm-s400")
    with pytest.raises(BadDataFile):
        wrapper_sets(str(tmp_path / "gone.toml"))


def test_every_shell_here_reads_the_file(compiler: Path, tmp_path: Path) -> None:
    done = install(tmp_path / "p", compiler, SETS)
    for shell in (["dash"], ["bash", "--posix"], ["busybox", "sh"], ["/bin/sh"]):
        if shutil.which(shell[0]):
            subprocess.run([*shell, "-n", str(done.path)], check=True)
