"""Builds the stand-in SDK on first use and finds it again afterwards.

Layout below `cache_dir/sim`: one folder for each fingerprint of (sources, compiler, plugin or not),
made beside and renamed into place, so that a folder that exists is complete. `clang-*.json` stamps
remember what `clang --version` said for one file (path, size, time), so that a later call starts
no process at all.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import hashlib
import json
import os
import platform
import re
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path

from mccprobe.base import console
from mccprobe.base.errors import ToolchainError
from mccprobe.base.files import remove_dead_drafts, replace_file, wanted_room
from mccprobe.base.paths import make_own, require_own
from mccprobe.base.process import RunResult, RunSpec, run

SIM_VERSION = "0.1.0"
LAB_PLUGIN = Path("lib") / "mccsim-lab.so"  # below the SDK's root; for `check --lab` alone
STEP_TIMEOUT_S = 300.0  # one compile takes seconds; this only ends a hung one
CPU_FEATURES = ("avx2", "fma", "f16c")  # what the device job compiles for
SHARED_RUNTIME = "lib/shared/libmusart.so"  # below the SDK: only for programs that name its folder
INSTALL_HINT = "install the packages clang-14 and lld-14 (Debian, Ubuntu: apt-get install clang-14 lld-14)"

_HERE = Path(__file__).resolve().parent
_BUILDING = ".building-"  # how the folder of an SDK in the making begins
_PLUGIN_HEADER = "llvm/CodeGen/MachineScheduler.h"  # of llvm-14-dev
_LAB_PASS = "lab_access"  # the one source of plugin/ that becomes a plugin of its own
# LLVM's own defines (llvm-config-14 --cxxflags) plus NDEBUG, which llvm-config does not print:
# without it the scheduler classes have another layout than in the installed library.
_LLVM_DEFINES = ("NDEBUG", "_GNU_SOURCE", *(f"__STDC_{n}_MACROS" for n in ("CONSTANT", "FORMAT", "LIMIT")))
_PLUGIN_FLAGS = [
    "-std=c++14",
    "-O1",
    "-fPIC",
    "-fno-rtti",
    "-fno-exceptions",
    *(f"-D{n}" for n in _LLVM_DEFINES),
]
_DRIVER_FLAGS = ["-std=c++17", "-O1", "-Wall", "-Wextra"]
_RUNTIME_FLAGS = ["-std=c++17", "-O3", "-fPIC", "-Wall", "-Wextra", *(f"-m{n}" for n in CPU_FEATURES)]


class SimBuildError(ToolchainError):
    """Raised when the stand-in SDK cannot be built."""

    code = "sim-build"

    def __init__(self, message: str, *, command: Sequence[str] = (), stderr: str = "", hint: str = "") -> None:
        self.command = tuple(command)
        self.stderr = stderr
        super().__init__(message, hint=hint, detail=stderr)


@dataclass(frozen=True)
class SimSdk:
    """A built SDK. `why_no_plugin` is empty when the simulated fault and the laboratory's pass are available."""

    root: Path
    mcc: Path
    has_fault_plugin: bool
    why_no_plugin: str


@dataclass(frozen=True)
class _Tools:
    """What the build uses; `version` is the whole text of `clang --version`.

    device_linker: links device images. binutils' ld.bfd, which Debian's clang-14 depends on, starts in 3 ms where
    ld.lld spends 20 ms on loading LLVM, and a bisection links one image a trial; ld.lld where it is missing.
    """

    clang: Path
    lld: Path
    device_linker: Path
    version: str
    llvm_include: Path | None

    @property
    def cxx(self) -> list[str]:
        return [str(self.clang), "--driver-mode=g++"]

    @property
    def version_number(self) -> str:
        found = re.search(r"clang version (\d+\.\d+\.\d+)", self.version)
        return found.group(1) if found else ""


def sim_sdk(cache_dir: Path, *, clang: str = "clang-14") -> SimSdk:
    """The SDK below `cache_dir`, built now if it is not there. Raises SimBuildError."""
    home = cache_dir / "sim"
    try:
        make_own(cache_dir, home.name)
        sdk = _sdk_in(home, clang)
        require_own(cache_dir, home.name, sdk.root.name, "bin")
        return sdk
    except OSError as error:  # of a copy of many files it has no errno, but the errors of each
        first = error.args[0][0][2] if isinstance(error, shutil.Error) and error.args[0] else error.strerror or error
        raise SimBuildError(
            f"the simulated SDK cannot be built in {home}: {first}",
            hint="free space, or choose another place for the cache: MCCPROBE_CACHE=DIR",
        ) from error


def _sdk_in(home: Path, clang: str) -> SimSdk:
    tools = _find_tools(home, clang)
    root = home / _fingerprint(tools)
    if ready := _open_sdk(root):
        return ready
    with _locked(home / "lock"):
        if ready := _open_sdk(root):  # another process was faster
            return ready
        _check_machine()
        _clear(home)
        partial = Path(tempfile.mkdtemp(prefix=_BUILDING, dir=home))
        try:
            _build(partial, tools)
            partial.chmod(0o755)  # mkdtemp gives 0700
            _for_this_user_to_write(partial)
            if root.exists():  # damaged: _open_sdk refused it
                shutil.rmtree(root)
            partial.rename(root)
        finally:
            shutil.rmtree(partial, ignore_errors=True)
    if ready := _open_sdk(root):
        return ready
    raise SimBuildError(f"the simulated SDK in {root} is incomplete after its build")


def _for_this_user_to_write(root: Path) -> None:
    """Take write permission from others, which a umask of 002 or 000 gave: files below are executed."""
    for path in root.rglob("*"):
        if not path.is_symlink():
            path.chmod(path.stat().st_mode & ~0o022)


def _open_sdk(root: Path) -> SimSdk | None:
    try:
        document = json.loads((root / "version.json").read_text(encoding="utf-8"))
        why = str(document["fault_plugin"]["why_not"])
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return None
    sdk = SimSdk(root=root, mcc=root / "bin" / "mcc", has_fault_plugin=not why, why_no_plugin=why)
    return sdk if sdk.mcc.is_file() else None


@contextlib.contextmanager
def _locked(path: Path) -> Iterator[None]:
    with path.open("w", encoding="utf-8") as handle:
        # a lock ends with the file, also when the process is killed
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            _progress("... waiting: another mccprobe is building the stand-in SDK")
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield


def _progress(text: str, *, live: str | None = None) -> None:
    if shown := console.of_this_command():
        shown.progress(text, live=live)


def _clear(home: Path) -> None:
    """Remove what killed builds left; the holder of the lock alone may."""
    for path in home.glob(f"{_BUILDING}*"):
        shutil.rmtree(path, ignore_errors=True)
    remove_dead_drafts(home)


def _find_tools(home: Path, clang: str) -> _Tools:
    found = shutil.which(clang)
    if found is None:
        raise SimBuildError(f"{clang} not found", command=[clang], hint=INSTALL_HINT)
    path = Path(found).resolve()
    lld = path.parent / "ld.lld"
    if not lld.exists():
        lld = Path(shutil.which("ld.lld-14") or "")
    if not lld.name:
        raise SimBuildError("ld.lld-14 not found", command=["ld.lld-14"], hint=INSTALL_HINT)
    include = path.parent.parent / "include"
    has_headers = (include / _PLUGIN_HEADER).is_file()
    device_linker = Path(shutil.which("ld.bfd") or lld)
    device_linker = device_linker.parent.resolve() / device_linker.name  # /bin before /usr/bin in PATH is no other one
    tools = _Tools(path, lld, device_linker, _clang_version(home, path), include if has_headers else None)
    if not tools.version_number.startswith("14."):
        raise SimBuildError(
            f"{clang} is not clang 14 but: {tools.version.splitlines()[0]}",
            command=[clang, "--version"],
            hint=INSTALL_HINT,
        )
    return tools


def _clang_version(home: Path, clang: Path) -> str:
    """The text of `clang --version`, from the stamp if the file is still the same one."""
    status = clang.stat()
    identity = f"{clang}\n{status.st_size}\n{status.st_mtime_ns}"
    stamp = home / f"clang-{hashlib.sha256(identity.encode()).hexdigest()[:16]}.json"
    with contextlib.suppress(OSError, ValueError, KeyError, TypeError, RecursionError):
        return str(json.loads(stamp.read_text(encoding="utf-8"))["version"])
    text = _step([str(clang), "--version"]).stdout_text
    if not text.strip():
        raise SimBuildError(f"{clang} --version printed nothing", command=[str(clang), "--version"])
    replace_file(stamp, json.dumps({"clang": str(clang), "version": text}).encode())
    return text


def _sources() -> list[Path]:
    parts = ("plugin", "driver", "include", "runtime")
    files = [path for part in parts for path in (_HERE / part).rglob("*")]
    return sorted(path for path in files if path.is_file() and "__pycache__" not in path.parts)


def _fingerprint(tools: _Tools) -> str:
    digest = hashlib.sha256()
    plugin = "plugin" if tools.llvm_include is not None else "no plugin"
    flags = [*_PLUGIN_FLAGS, "|", *_DRIVER_FLAGS, "|", *_RUNTIME_FLAGS, "|", SHARED_RUNTIME]
    programs = [str(path) for path in (tools.clang, tools.lld, tools.device_linker)]
    for part in (SIM_VERSION, tools.version, *programs, plugin, *flags):
        digest.update(part.encode() + b"\0")
    for path in _sources():
        data = path.read_bytes()
        digest.update(f"{path.relative_to(_HERE)}\0{len(data)}\0".encode() + data)
    return digest.hexdigest()[:16]


def _check_machine() -> None:
    if platform.system() != "Linux" or platform.machine() != "x86_64":
        raise SimBuildError(
            f"the simulated SDK needs Linux on x86-64, not {platform.system()} on {platform.machine()}",
            hint="use a real mcc, or clang with host code",
        )
    with contextlib.suppress(OSError):
        words = set(Path("/proc/cpuinfo").read_text(encoding="ascii", errors="replace").split())
        missing = [name for name in CPU_FEATURES if name not in words]
        if missing:
            raise SimBuildError(f"this CPU lacks {', '.join(missing)}, which the simulated device needs")


def _step(argv: Sequence[str]) -> RunResult:
    """Run one build step; raise with its own message if it fails."""
    result = run(RunSpec(argv, timeout_s=STEP_TIMEOUT_S))
    if not result.ok:
        written = Path(argv[argv.index("-o") + 1]).parent if "-o" in argv else Path("/")
        if wanted_room(written, result.stderr, result.returncode):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        raise SimBuildError(
            f"building the simulated SDK failed ({result.describe()}): {' '.join(argv[:1])}",
            command=argv,
            stderr=result.stderr_text,
            hint="if a C++ header is missing, install g++ or libstdc++-dev; " + INSTALL_HINT,
        )
    return result


def _build(root: Path, tools: _Tools) -> None:
    for name in ("bin", "lib", "obj"):
        (root / name).mkdir()
    shutil.copytree(_HERE / "include", root / "include")
    objects: dict[str, list[Path]] = {}
    compiles: list[list[str]] = []
    for part, flags in _compile_flags(tools).items():
        objects[part] = []
        for source in sorted((_HERE / part).glob("*.cpp")):
            target = root / "obj" / f"{part}-{source.stem}.o"
            objects[part].append(target)
            compiles.append([*tools.cxx, *flags, "-c", str(source), "-o", str(target)])
    what = f"building the stand-in SDK in {root.parent} (first use only)"
    _progress(f"... {what}: compiling {len(compiles)} files", live=f"... {what}: file 1 of {len(compiles)}")
    with ThreadPoolExecutor(max_workers=os.cpu_count() or 1) as pool:
        running = [pool.submit(_step, argv) for argv in compiles]
        try:
            for done, step in enumerate(as_completed(running), 1):
                step.result()
                _progress("", live=f"... {what}: {done} of {len(compiles)} files compiled")
        finally:
            for step in running:  # after a failure those that have not begun
                step.cancel()
    _progress(f"... {what}: linking")
    _link(root, tools, objects)
    why_not = _check_plugin(root, tools)
    shutil.rmtree(root / "obj")
    (root / "version.json").write_text(_version_document(why_not), encoding="utf-8")


def _compile_flags(tools: _Tools) -> dict[str, list[str]]:
    """Flags of each source folder; the slow one (plugin) first, so that it does not run alone at the end."""
    version = f"mccprobe-sim version {SIM_VERSION} (clang version {tools.version_number}) SIMULATED"
    texts = {
        "MCCSIM_CLANG": str(tools.clang),
        "MCCSIM_DEVICE_LINKER": str(tools.device_linker),
        "MCCSIM_CLANG_VERSION_LINE": tools.version.splitlines()[0],
        "MCCSIM_VERSION_LINE": version,
    }
    # json.dumps writes what is also a C string literal for such text
    defines = [f"-D{name}={json.dumps(text)}" for name, text in texts.items()]
    flags: dict[str, list[str]] = {}
    if tools.llvm_include is not None:
        flags["plugin"] = [*_PLUGIN_FLAGS, "-isystem", str(tools.llvm_include)]
    flags["runtime"] = [*_RUNTIME_FLAGS, "-isystem", str(_HERE / "include")]
    flags["driver"] = [*_DRIVER_FLAGS, *defines]
    return flags


def _link(root: Path, tools: _Tools, objects: dict[str, list[Path]]) -> None:
    link = [*tools.cxx, f"--ld-path={tools.lld}"]
    bundler = [path for path in objects["driver"] if path.name == "driver-bundler.o"]
    driver = [path for path in objects["driver"] if path not in bundler]
    _step([*link, *map(str, driver), "-o", str(root / "bin" / "mcc")])
    _step([*link, *map(str, bundler), "-o", str(root / "bin" / "clang-offload-bundler")])
    if "plugin" in objects:
        # LLVM's symbols are left open: they must come from the clang that loads the plugin
        lab = [path for path in objects["plugin"] if path.stem == f"plugin-{_LAB_PASS}"]
        fault = [path for path in objects["plugin"] if path not in lab]
        _step([*link, "-shared", *map(str, fault), "-o", str(root / "lib" / "mccsim.so")])
        _step([*link, "-shared", *map(str, lab), "-o", str(root / LAB_PLUGIN)])
    own_ar = tools.clang.parent / "llvm-ar"
    archiver = str(own_ar) if own_ar.exists() else (shutil.which("llvm-ar-14") or "ar")
    _step([archiver, "rcs", str(root / "lib" / "libmusart.a"), *map(str, objects["runtime"])])
    # in a folder of its own, so that -lmusart stays the archive: a recorder by LD_PRELOAD needs a shared runtime
    shared = root / SHARED_RUNTIME
    shared.parent.mkdir()
    runtime = [*map(str, objects["runtime"]), "-ldl", "-lm"]
    _step([*link, "-shared", "-Wl,-soname,libmusart.so", *runtime, "-o", str(shared)])


def _check_plugin(root: Path, tools: _Tools) -> str:
    """Why the fault is not available, "" if it is. A plugin that clang refuses is removed."""
    if tools.llvm_include is None:
        return "the LLVM 14 headers are missing: install llvm-14-dev; the plugin is then built at the next start"
    plugin, lab = root / "lib" / "mccsim.so", root / LAB_PLUGIN
    argv = [str(tools.clang), f"-fplugin={plugin}", f"-fpass-plugin={lab}", "-mllvm", "-mccprobe-sim-device-job"]
    result = run(RunSpec([*argv, "-O1", "-x", "c", "-c", "/dev/null", "-o", os.devnull], timeout_s=STEP_TIMEOUT_S))
    if result.ok:
        return ""
    plugin.unlink()
    lab.unlink()
    first = (result.stderr_text.strip().splitlines() or [result.describe()])[0]
    return f"{tools.clang} does not load the plugin ({first}); llvm-14-dev must match clang-14"


def _version_document(why_not: str) -> str:
    document = {
        "musa_toolkits": {"version": "0-sim", "commit": "", "branch": "simulated"},
        "mcc": {"version": f"{SIM_VERSION}-sim", "commit": "", "branch": "simulated"},
        "musa_runtime": {"version": f"{SIM_VERSION}-sim", "commit": "", "branch": "simulated"},
        "simulated": True,
        "fault_plugin": {"built": not why_not, "why_not": why_not},
    }
    return json.dumps(document, indent=2) + "\n"
