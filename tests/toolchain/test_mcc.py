"""The real mcc's place: how it is found, pinned, probed and refused. A fake stands for it, with the
stand-in SDK's driver behind, so that device jobs, bundles and programs are real.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from mccprobe.base.errors import CompilerNotFound, StaleCompileCache, ToolchainError, UsageError
from mccprobe.targets.choose import choose
from mccprobe.targets.inventory import inventory
from mccprobe.targets.llvm import probe as probe_module
from mccprobe.targets.mcc import toolchain as mcc_module
from mccprobe.targets.mcc.toolchain import MccPaths, MccToolchain, find_mcc, mcc_toolchain

Fake = Callable[[str], str]


def script(path: Path, *lines: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(("#!/bin/sh", *lines, "")), encoding="utf-8")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path


def wrapper(path: Path) -> Path:
    return script(path, "# mccprobe wrapper {}", 'exec real-mcc "$@"')


@pytest.fixture(autouse=True)
def _no_mcc_here(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """As if this machine had no mcc, whatever it has."""
    monkeypatch.setattr(mcc_module, "DEFAULT_MCC", tmp_path / "no-default" / "mcc")
    for name in ("FAKE_SDK", "LD_LIBRARY_PATH"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def toolkit(tmp_path: Path, fake: Fake, sdk: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that looks like an SDK, with a fake as its mcc and the stand-in's driver behind that."""
    monkeypatch.setenv("FAKE_SDK", str(sdk))
    root = tmp_path / "musa"
    script(root / "bin" / "mcc", f'exec {fake("mcc_ok")} "$@"')
    (root / "version.json").write_text("{}", encoding="utf-8")
    (root / "lib").symlink_to(sdk / "lib")
    (root / "include").symlink_to(sdk / "include")
    return root


def as_mcc(mcc: str | Path, cache: Path | None = None) -> MccToolchain:
    toolchain = mcc_toolchain(MccPaths(str(mcc)), cache)
    assert isinstance(toolchain, MccToolchain)
    return toolchain


# --- found ----------------------------------------------------------------------------------------


def test_the_order_in_which_it_is_looked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    names = ("in-path", "default", "install", "path", "home", "musa-path", "variable", "option")
    mcc = {name: script(tmp_path / name / "bin" / "mcc", "exit 0") for name in names}
    found = []
    monkeypatch.setenv("PATH", str(mcc["in-path"].parent), prepend=os.pathsep)
    found.append(find_mcc(MccPaths()))
    monkeypatch.setattr(mcc_module, "DEFAULT_MCC", mcc["default"])
    found.append(find_mcc(MccPaths()))
    for variable, name in (("MUSA_INSTALL_PATH", "install"), ("MUSA_PATH", "path"), ("MUSA_HOME", "home")):
        monkeypatch.setenv(variable, str(tmp_path / name))
        found.append(find_mcc(MccPaths()))
    found.append(find_mcc(MccPaths(musa_path=str(tmp_path / "musa-path"))))
    monkeypatch.setenv("MCCPROBE_MCC", str(mcc["variable"]))
    found.append(find_mcc(MccPaths(musa_path=str(tmp_path / "musa-path"))))
    found.append(find_mcc(MccPaths(str(mcc["option"]), str(tmp_path / "musa-path"))))
    assert [one.path for one in found] == list(mcc.values())
    assert [one.by for one in found][2:] == [
        "MUSA_INSTALL_PATH",
        "MUSA_PATH",
        "MUSA_HOME",
        "--musa-path",
        "MCCPROBE_MCC",
        "--mcc",
    ]


def test_nowhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("MUSA_HOME", str(tmp_path / "gone"))
    with pytest.raises(CompilerNotFound) as error:
        mcc_toolchain(MccPaths())
    assert str(tmp_path / "gone" / "bin" / "mcc") in error.value.looked and error.value.looked[-1] == "PATH"


def test_our_wrapper_in_path_is_passed_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ours = wrapper(tmp_path / "wrappers" / "generated")
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "mcc").symlink_to(ours)
    real = script(tmp_path / "b" / "mcc", "exit 0")
    monkeypatch.setenv("PATH", f"{tmp_path / 'a'}{os.pathsep}{tmp_path / 'b'}")
    found = find_mcc(MccPaths())
    assert (found.path, found.wrappers) == (real, (str(tmp_path / "a" / "mcc"),))


@pytest.mark.parametrize("how", ["--mcc", "MCCPROBE_MCC"])
def test_our_wrapper_by_name_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: str) -> None:
    path = str(wrapper(tmp_path / "mcc"))
    if how == "MCCPROBE_MCC":
        monkeypatch.setenv(how, path)
    with pytest.raises(ToolchainError, match="is mccprobe's wrapper, not the compiler"):
        find_mcc(MccPaths(path if how == "--mcc" else None))


def test_a_name_that_is_no_program_is_refused(tmp_path: Path) -> None:
    with pytest.raises(CompilerNotFound, match=r"no mcc \(--mcc\) found"):
        find_mcc(MccPaths(str(tmp_path / "mcc")))


# --- what it is -----------------------------------------------------------------------------------


@pytest.mark.toolchain("clang-14")
def test_its_own_version_line_is_shown(fake: Fake) -> None:
    identity = as_mcc(fake("mcc_ok")).identify()
    assert identity.version.startswith("mcc version 3.1.0")
    assert identity.clang_major == 14


@pytest.mark.toolchain("clang-14")
@pytest.mark.parametrize("how", ["--mcc", "MUSA_HOME", "PATH", "--compiler"])
def test_the_stand_in_is_known_however_it_is_found(
    sdk: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    mcc = sdk / "bin" / "mcc"
    paths, compiler = MccPaths(str(mcc) if how == "--mcc" else None), None
    if how == "MUSA_HOME":
        monkeypatch.setenv("MUSA_HOME", str(sdk))
    elif how == "PATH":
        monkeypatch.setenv("PATH", str(mcc.parent), prepend=os.pathsep)
    else:
        compiler = str(mcc) if how == "--compiler" else None
    name = "clang" if compiler else "mcc"
    chosen = choose(name, sources=["k.mu"], shipped=False, compiler=compiler, mcc=paths, cache=tmp_path)
    assert (chosen.toolchain.name, chosen.toolchain.simulated) == ("sim", True)


@pytest.mark.toolchain("clang-14")
def test_auto_never_takes_the_stand_in_for_a_users_kernel(
    sdk: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MUSA_HOME", str(sdk))
    with pytest.raises(ToolchainError, match="is mccprobe's stand-in") as error:
        choose("auto", sources=["own.mu"], shipped=False, compiler=None, mcc=MccPaths(), cache=tmp_path)
    assert "--toolchain sim" in error.value.hint
    shipped = choose("auto", sources=["k.mu"], shipped=True, compiler=None, mcc=MccPaths(), cache=tmp_path)
    assert shipped.toolchain.simulated and "stand-in" in shipped.told


@pytest.mark.toolchain("clang-14")
@pytest.mark.parametrize(
    ("source", "language", "named"),
    [("k.cu", "", ""), ("k.mu", "", ""), ("k.cpp", "musa", ""), ("prog.c", "", "--mcc"), ("prog.cpp", "", "--mcc")],
)
def test_a_source_of_mcc_and_a_named_mcc_mean_mcc(
    toolkit: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, source: str, language: str, named: str
) -> None:
    mcc = toolkit / "bin" / "mcc"
    if not named:
        monkeypatch.setenv("MUSA_HOME", str(toolkit))
    chosen = choose(
        "auto",
        sources=[source],
        shipped=False,
        compiler=None,
        mcc=MccPaths(str(mcc) if named else None),
        cache=tmp_path,
        language=language,
    )
    assert chosen.toolchain.name == "mcc"


@pytest.mark.parametrize("source", ["own.cu", "own.mu"])
def test_without_mcc_no_clang_takes_a_device_source(tmp_path: Path, source: str) -> None:
    with pytest.raises(CompilerNotFound, match="no mcc found"):
        choose("auto", sources=[source], shipped=False, compiler=None, mcc=MccPaths(), cache=tmp_path)


@pytest.mark.parametrize(("name", "compiler"), [("clang", None), ("sim", None), ("auto", "clang-14")])
def test_mcc_and_another_compiler_are_refused(tmp_path: Path, name: str, compiler: str | None) -> None:
    with pytest.raises(UsageError, match="--mcc"):
        choose(name, sources=["p.c"], shipped=False, compiler=compiler, mcc=MccPaths("/x/mcc"), cache=tmp_path)


# --- probed ---------------------------------------------------------------------------------------


@pytest.mark.toolchain("clang-14")
@pytest.mark.clean
def test_capabilities_are_found_by_running_it_and_kept(
    toolkit: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache = tmp_path / "cache"
    able = as_mcc(toolkit / "bin" / "mcc", cache).capabilities()
    assert (able.compile, able.run, able.bisect, able.bundle) == (True, True, True, True)
    assert able.timing is able.run
    assert able.resources is False  # the stand-in writes no MTGPU metadata
    notes = "\n".join(able.notes)
    assert "device assembly (-S): yes" in notes and "device IR (-S -emit-llvm): yes" in notes
    assert "jobs (-###): device compile, device link, bundle, host compile with a device image" in notes
    assert "an -mllvm option given twice: fatal, as in clang 14" in notes
    assert "pass executions at -O2" in notes
    assert "musaasm: not beside mcc" in notes
    assert f"not below the pinned toolkit {toolkit}: device cc1" in notes
    assert {path.suffix for path in cache.rglob("*") if path.is_file()} == {".json"}

    def refuse(_: object) -> None:
        raise AssertionError("a second call asks nothing")

    again = as_mcc(toolkit / "bin" / "mcc", cache)
    monkeypatch.setattr(probe_module, "run", refuse)
    assert again.capabilities() == able


@pytest.mark.toolchain("clang-14")
def test_tools_beside_it_are_asked(toolkit: Path) -> None:
    script(toolkit / "bin" / "llc", "echo 'LLVM (http://llvm.org/):'; echo '  LLVM version 14.0.0'")
    script(toolkit / "bin" / "musaasm", "echo 'error: no licence' >&2; exit 9")
    notes = as_mcc(toolkit / "bin" / "mcc").capabilities().notes
    assert "llc: LLVM version 14.0.0" in notes
    assert "musaasm: does not answer (error: no licence)" in notes
    assert "llvm-objdump: not beside mcc" in notes


@pytest.mark.parametrize(
    ("listed", "is_ours"),
    [
        ("host-x86_64-unknown-linux-gnu\nmusa-mtgpu-mt-musa-mp_31\n", True),
        ("musa-mtgpu-mt-musa--mp_22", True),
        ("musa-mtgpu-mt-musa---mp_21", True),
        ("musa-mthg-mt-musa-mp_42", True),
        ("host-x86_64-unknown-linux-gnu\nhipv4-amdgcn-amd-amdhsa--gfx906\n", False),
        ("musa-mtgpu-mt-musa", False),
    ],
)
def test_bundle_entries_of_musa(listed: str, is_ours: bool) -> None:
    assert (probe_module.BUNDLE_ID.search(listed) is not None) is is_ours


@pytest.mark.toolchain("clang-14")
def test_a_program_that_ends_wrong_means_that_it_cannot_run(
    toolkit: Path, sdk: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(probe_module, "PROGRAM", "int main() { return 2; }\n")
    able = as_mcc(toolkit / "bin" / "mcc").capabilities()
    assert (able.compile, able.run, able.timing) == (True, False, False)
    assert any("cannot run: a small program ends with exit 2: no device memory" in note for note in able.notes)


@pytest.mark.toolchain("clang-14")
def test_a_compiler_that_takes_no_kernel_can_nothing(tmp_path: Path) -> None:
    lines = ("case $1 in --version) echo 'clang version 14.0.0';; *) echo 'error: no' >&2; exit 1;; esac",)
    able = as_mcc(script(tmp_path / "mcc", *lines)).capabilities()
    assert not any((able.compile, able.run, able.bisect, able.resources, able.timing, able.bundle))
    assert "a three-line kernel does not compile (--musa-device-only -c): error: no" in able.notes


@pytest.mark.toolchain("clang-14")
@pytest.mark.clean
@pytest.mark.parametrize(
    ("name", "note"),
    [
        ("mcc_prints_no_bisect", "-mllvm -opt-bisect-limit=-1 prints no BISECT lines"),
        ("mcc_without_jobs", "no device compile is shown, so nothing can be replayed"),
    ],
)
def test_what_cannot_be_bisected_says_why(
    fake: Fake, sdk: Path, monkeypatch: pytest.MonkeyPatch, name: str, note: str
) -> None:
    monkeypatch.setenv("FAKE_SDK", str(sdk))
    able = as_mcc(fake(name)).capabilities()
    assert (able.compile, able.bisect) == (True, False)
    assert note in able.notes


@pytest.mark.toolchain("clang-14")
def test_another_release_is_asked_again(fake: Fake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAKE_STATE", str(tmp_path / "state"))
    first = as_mcc(fake("mcc_other_version"), tmp_path / "cache")
    first.capabilities()
    kept = set((tmp_path / "cache" / "probes").iterdir())
    second = as_mcc(fake("mcc_other_version"), tmp_path / "cache")
    second.capabilities()
    assert first.identify().version != second.identify().version
    assert first.identify().fingerprint != second.identify().fingerprint
    assert len(set((tmp_path / "cache" / "probes").iterdir()) - kept) == 1


@pytest.mark.toolchain("clang-14")
def test_inventory_lists_it(toolkit: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sdk: Path) -> None:
    entry = inventory(MccPaths(str(toolkit / "bin" / "mcc")), Path(os.environ["MCCPROBE_CACHE"]))[0]
    assert (entry.name, entry.found, entry.simulated) == ("mcc", True, False)
    assert entry.capabilities["bisect"] is True


# --- pinned ---------------------------------------------------------------------------------------


@pytest.mark.toolchain("clang-14")
def test_the_toolkit_is_pinned_and_foreign_variables_are_told_and_neutralised(
    toolkit: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    link = tmp_path / "link"
    link.symlink_to(toolkit)
    monkeypatch.setenv("MUSA_HOME", "/opt/another-musa")
    monkeypatch.setenv("MUSA_PATH", str(link))
    toolchain = as_mcc(link / "bin" / "mcc")
    assert toolchain.driver[1:] == (f"--musa-path={toolkit}", "--musa-path-ignore-env")
    environment = toolchain.environment(tmp_path)
    assert (environment["MUSA_HOME"], environment["MUSA_PATH"]) == (str(toolkit), str(toolkit))
    assert "MUSA_INSTALL_PATH" not in environment
    told = "\n".join(toolchain.environment_notes())
    assert "MUSA_HOME=/opt/another-musa points elsewhere" in told and "MUSA_PATH" not in told.replace("--musa-path", "")
    chosen = choose(
        "auto", sources=["k.mu"], shipped=False, compiler=None, mcc=MccPaths(str(toolkit / "bin/mcc")), cache=tmp_path
    )
    assert "MUSA_HOME=/opt/another-musa points elsewhere" in chosen.told


@pytest.mark.toolchain("clang-14")
def test_a_compiler_without_musa_path_is_pinned_by_the_environment(
    toolkit: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("FAKE_SDK")  # plain clang-14 behind: it refuses --musa-path
    toolchain = as_mcc(toolkit / "bin" / "mcc")
    assert toolchain.driver[1:] == ()
    assert "takes no --musa-path" in toolchain.environment_notes()[0]


@pytest.mark.toolchain("clang-14")
def test_no_toolkit_above_it_and_none_named(fake: Fake, tmp_path: Path) -> None:
    assert "no toolkit is pinned" in as_mcc(fake("mcc_ok")).environment_notes()[0]
    with pytest.raises(ToolchainError, match=r"--musa-path .*: no such folder"):
        mcc_toolchain(MccPaths(fake("mcc_ok"), str(tmp_path / "gone")))


@pytest.mark.toolchain("clang-14")
def test_caches_and_foreign_libraries_are_told(toolkit: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "mcc_cache").mkdir()
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "libmusart.so").touch()
    monkeypatch.setattr(mcc_module, "STALE_CACHE", tmp_path / "mcc_cache")
    monkeypatch.setenv("MUSA_CACHE_PATH", str(tmp_path))
    monkeypatch.setenv("LD_LIBRARY_PATH", f"{tmp_path / 'other'}:")
    notes = "\n".join(as_mcc(toolkit / "bin" / "mcc").environment_notes())
    assert f"a compile cache lies at {tmp_path / 'mcc_cache'}" in notes
    assert "MUSA_CACHE_PATH is set" in notes
    assert f"LD_LIBRARY_PATH holds another toolkit's libraries: {tmp_path / 'other'}" in notes


# --- stale caches ---------------------------------------------------------------------------------


@pytest.mark.toolchain("clang-14")
@pytest.mark.clean
def test_a_stale_cache_is_refused_before_anything_is_recorded(
    fake: Fake, sdk: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAKE_SDK", str(sdk))
    monkeypatch.setenv("FAKE_CACHE", str(tmp_path / "stale"))
    toolchain = as_mcc(fake("mcc_stale_cache"), tmp_path / "cache")
    with pytest.raises(StaleCompileCache, match="changed content gave the same object") as error:
        toolchain.record(["-c", "k.mu"], tmp_path)
    assert error.value.exit_code == 3 and "rm -r /tmp/mcc_cache" in error.value.hint
    assert toolchain.capabilities().bisect is False
    # the answer is not kept: with the cache gone the same compiler is asked again, and is fine
    assert not list((tmp_path / "cache").rglob("*.json"))


@pytest.mark.toolchain("clang-14")
@pytest.mark.clean
def test_a_cache_that_is_isolated_is_no_reason_to_refuse(
    fake: Fake, sdk: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAKE_SDK", str(sdk))
    monkeypatch.setenv("FAKE_CACHE", str(tmp_path / "stale"))
    (tmp_path / "k.mu").write_text("__attribute__((global)) void k(int *p) { *p = 1; }\n", encoding="utf-8")
    toolchain = as_mcc(fake("mcc_honours_cache_path"))
    assert toolchain.capabilities().bisect is True
    assert toolchain.record(["--musa-device-only", "-c", str(tmp_path / "k.mu")], tmp_path).jobs
    assert not (tmp_path / "stale").exists()
