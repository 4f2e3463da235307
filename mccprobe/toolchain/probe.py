"""What an mcc can do, found by running it on a three-line kernel; the answers are kept in the cache.

Flow: driver -> small compiles in a folder of their own -> Findings -> one JSON file for each compiler
fingerprint and environment. What is not public about mcc (does `-S` work, are there BISECT lines, is a
repeated option fatal, is there a compile cache) is asked, never assumed: mtgpu.md, sections 1.3 and 11.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from mccprobe.process import RunResult, RunSpec, run
from mccprobe.toolchain.base import NOT_PROBED, Identity
from mccprobe.toolchain.jobs import Job, JobKind, back_end_argv, parse_jobs, value_after

FORMAT_VERSION = 1  # of the cache file; another one is probed again
PROBE_TIMEOUT_S = 60.0  # one compile of a three-line kernel; only ends a hung compiler
ARCHITECTURES = ("mp_22", "mp_31", "mp_21")  # S4000 first: the GPU that mccprobe is made for
BUNDLE_ID = re.compile(r"^(musa-mtgpu-mt-musa|mthg-mt-musa)-+\w+$|^musa-mthg-mt-musa-+\w+$", re.MULTILINE)
METADATA_MARK = ".mtgpu_metadata.start"  # in -S text (mtgpu.md section 3)
NOTE_OWNER = b"MTGPU\0"  # of the note in a device image (mtgpu.md section 2.2)
TOOLS = ("llc", "llvm-objdump", "musaasm")

# No header and no macro: `__global__` comes from headers that differ from SDK to SDK.
KERNEL = """__attribute__((global)) void mccprobe_probe(float *out, int n) {{
  for (int i = 0; i < n; ++i) out[i] = out[i] * {factor} + 1.0f;
}}
"""
PROGRAM = """#include <musa_runtime.h>
__global__ void mccprobe_probe(int *out) { *out = 1234; }
int main() {
  int *device = 0, value = 0;
  if (musaMalloc((void **)&device, sizeof value) != musaSuccess) return 2;
  mccprobe_probe<<<1, 1>>>(device);
  if (musaMemcpy(&value, device, sizeof value, musaMemcpyDeviceToHost) != musaSuccess) return 3;
  return value == 1234 ? 0 : 4;
}
"""
_PROGRAM_SAYS = {2: "no device memory: is a device there?", 3: "a kernel does not run", 4: "a kernel gives a wrong value"}
_RUNNING = "BISECT: running pass ("


@dataclass
class Findings:
    """Answers of one probe; all of it fits into JSON.

    stale: why its answers cannot be trusted ("" if they can). notes: for people, a line each.
    """

    compile: bool | str = NOT_PROBED
    run: bool | str = NOT_PROBED
    bisect: bool | str = NOT_PROBED
    resources: bool | str = NOT_PROBED
    bundle: bool | str = NOT_PROBED
    stale: str = ""
    arch: str = ""
    notes: list[str] = field(default_factory=list)


class ProbeCache:
    """One JSON file an answer below `folder`; None as folder keeps nothing."""

    def __init__(self, folder: Path | None) -> None:
        self.folder = folder

    def key(self, *parts: object) -> str:
        """A file name for everything that an answer depends on."""
        return hashlib.sha256(json.dumps([FORMAT_VERSION, *map(str, parts)]).encode()).hexdigest()[:20]

    def load(self, key: str) -> dict[str, Any] | None:
        """The kept answer; one that cannot be read is asked again."""
        if self.folder is None:
            return None
        try:
            document = json.loads((self.folder / f"{key}.json").read_text("utf-8"))
        except (OSError, ValueError):
            return None
        return document if isinstance(document, dict) else None

    def store(self, key: str, document: Mapping[str, Any]) -> None:
        """Keep an answer; a cache that cannot be written costs time, not correctness."""
        if self.folder is None:
            return
        with contextlib.suppress(OSError):
            self.folder.mkdir(parents=True, exist_ok=True)
            temporary = self.folder / f".{key}.{os.getpid()}"
            temporary.write_text(json.dumps(document, indent=1), encoding="utf-8")
            temporary.replace(self.folder / f"{key}.json")


def device_nodes() -> list[str]:
    """Names below /dev that come and go with a GPU driver: a kept "cannot run" is asked again when they change."""
    with contextlib.suppress(OSError):
        names = [path.name for path in Path("/dev").iterdir() if path.name.startswith(("mt", "dri"))]
        renderers = [path.name for path in Path("/dev/dri").iterdir()] if "dri" in names else []
        return sorted(names + renderers)
    return []


def accepted_pins(mcc: Path, root: Path, environment: Mapping[str, str]) -> tuple[str, ...]:
    """Those of mcc's options that tie it to one toolkit which this mcc takes (seen in zml/xla, julia-musa)."""
    taken = []
    for option in (f"--musa-path={root}", "--musa-path-ignore-env"):
        argv = [str(mcc), *taken, option, "-###", "-x", "musa", "--musa-device-only", "-c", os.devnull, "-o", "probe.o"]
        result = run(RunSpec(argv, env=environment, timeout_s=PROBE_TIMEOUT_S))
        if result.ok and not re.search(r"unknown argument|unsupported option|argument unused", result.stderr_text):
            taken.append(option)
    return tuple(taken)


def probe(
    driver: Sequence[str], identity: Identity, root: Path | None, environment: Callable[[Path], dict[str, str]]
) -> Findings:
    """Run the compiler on small kernels and tell what came of it. environment: as for every compile."""
    with tempfile.TemporaryDirectory(prefix="mccprobe-probe-") as folder:
        return _Probe(driver, identity, root, environment, Path(folder)).findings()


class _Probe:
    def __init__(
        self, driver: Sequence[str], identity: Identity, root: Path | None,
        environment: Callable[[Path], dict[str, str]], folder: Path,
    ) -> None:  # fmt: skip
        self.driver = tuple(driver)
        self.identity = identity
        self.root = root
        self.environment = environment
        self.folder = folder
        self.source = folder / "probe.mu"
        self.found = Findings()
        self.steps = 0

    def findings(self) -> Findings:
        first = self._compiles()
        if first is None:
            return self.found
        self._bundles(first)
        self._texts(first)
        self._stale_objects(first)
        self._bisects()
        self._repeats()
        self._tools()
        self._runs()
        return self.found

    # -- one step each ------------------------------------------------------------------------

    def _run(self, argv: Sequence[str]) -> RunResult:
        """One child with a temporary folder and a compile cache of its own, as every trial has."""
        self.steps += 1
        scratch = self.folder / str(self.steps)
        scratch.mkdir()
        return run(RunSpec(argv, cwd=self.folder, env=self.environment(scratch), timeout_s=PROBE_TIMEOUT_S))

    def _device(self, *args: str, output: str) -> tuple[RunResult, bytes]:
        """A device-only command on the probe kernel; the bytes are empty when it fails or writes nothing."""
        target = self.folder / output
        arch = (f"--offload-arch={self.found.arch}",) if self.found.arch else ()
        argv = [*self.driver, *arch, "-O2", "--musa-device-only", *args, str(self.source), "-o", str(target)]
        result = self._run(argv)
        return result, target.read_bytes() if result.ok and target.is_file() else b""

    def _compiles(self) -> bytes | None:
        self._write("2.0f")
        problem = ""
        for arch in (*ARCHITECTURES, ""):
            self.found.arch = arch
            result, data = self._device("-c", output=f"first{arch}.o")
            if data:
                self.found.compile = True
                return data
            problem = problem or _why(result)
        self.found.compile = self.found.bisect = self.found.bundle = self.found.resources = self.found.run = False
        self.found.notes.append(f"a three-line kernel does not compile (--musa-device-only -c): {problem}")
        return None

    def _write(self, factor: str) -> None:
        self.source.write_text(KERNEL.format(factor=factor), encoding="utf-8")

    def _bundles(self, data: bytes) -> None:
        path = self.folder / f"first{self.found.arch}.o"
        bundler = self._beside("clang-offload-bundler")
        if bundler is None:
            self.found.bundle = False
            self.found.notes.append("clang-offload-bundler: not beside mcc")
            return
        result = self._run([str(bundler), "--type=o", f"--inputs={path}", "--list"])
        self.found.bundle = result.ok and BUNDLE_ID.search(result.stdout_text) is not None
        if not self.found.bundle:
            shown = " ".join(result.stdout_text.split()) or _why(result)
            self.found.notes.append(f"clang-offload-bundler --list shows no MUSA entry in its object: {shown}")

    def _texts(self, data: bytes) -> None:
        assembly, text = self._device("-S", output="probe.s")
        self.found.notes.append("device assembly (-S): " + ("yes" if text else f"no: {_why(assembly)}"))
        result, ir = self._device("-S", "-emit-llvm", output="probe.ll")
        self.found.notes.append("device IR (-S -emit-llvm): " + ("yes" if ir else f"no: {_why(result)}"))
        self.found.resources = METADATA_MARK.encode() in text or NOTE_OWNER in data
        if not self.found.resources:
            self.found.notes.append("no kernel metadata, neither in -S text nor in the device object")

    def _stale_objects(self, first: bytes) -> None:
        self._write("3.0f")
        _, second = self._device("-c", output="second.o")
        if second == first:
            self.found.stale = "a file with changed content gave the same object again"

    def _bisects(self) -> None:
        job = self._device_job()
        if job is None:
            return
        logs = {}
        for limit in (-1, 1):
            argv = back_end_argv(job, "", str(self.folder / f"at{limit}.o"), options=[f"-opt-bisect-limit={limit}"])
            result = self._run(argv)
            if not result.ok and limit == -1:
                self._no_bisect(f"the device compile with -opt-bisect-limit={limit} fails: {_why(result)}")
                return
            logs[limit] = result.stderr_text.count(_RUNNING)
        if not logs[-1]:
            self._no_bisect("-mllvm -opt-bisect-limit=-1 prints no BISECT lines")
            return
        self.found.bisect = True
        self.found.notes.append(f"the probe kernel runs {logs[-1]} pass executions at -O2")
        if logs[1] != 1:
            self.found.stale = self.found.stale or (
                f"with -opt-bisect-limit=1 its log shows {logs[1]} executions, after a compile without a limit"
            )

    def _no_bisect(self, why: str) -> None:
        self.found.bisect = False
        self.found.notes.append(why)

    def _device_job(self) -> Job | None:
        """The device cc1 of a whole compile, as -### shows it; notes what the jobs name."""
        arch = (f"--offload-arch={self.found.arch}",) if self.found.arch else ()
        argv = [*self.driver, "-###", *arch, "-O2", "-c", str(self.source), "-o", str(self.folder / "whole.o")]
        result = self._run(argv)
        jobs = parse_jobs(result.stderr_text)
        device = [job for job in jobs if job.kind is JobKind.DEVICE_COMPILE]
        if not device:
            kinds = ", ".join(job.kind.value for job in jobs) or _why(result)
            self._no_bisect(f"-### shows no device compile ({kinds}), so nothing can be replayed")
            return None
        self.found.notes.append("jobs: " + ", ".join(job.kind.value for job in jobs))
        self.found.notes += resolved_paths(jobs, self.root)
        return device[0]

    def _repeats(self) -> None:
        option = ("-mllvm", "-opt-bisect-limit=-1")
        result, _ = self._device(*option, *option, "-c", output="repeated.o")
        fatal = not result.ok and "may only occur" in result.stderr_text
        answer = "fatal, as in clang 14" if fatal else ("accepted" if result.ok else _why(result))
        self.found.notes.append(f"an -mllvm option given twice: {answer}")

    def _tools(self) -> None:
        for name in TOOLS:
            tool = self._beside(name)
            if tool is None:
                self.found.notes.append(f"{name}: not beside mcc")
                continue
            result = self._run([str(tool), "--version"])
            lines = (result.stdout_text + result.stderr_text).strip().splitlines()
            said = next((line.strip() for line in lines if "version" in line), lines[0].strip() if lines else "")
            answers = result.ok and bool(said)
            self.found.notes.append(f"{name}: {said[:100]}" if answers else f"{name}: does not answer ({_why(result)})")

    def _runs(self) -> None:
        source, program = self.folder / "program.mu", self.folder / "program"
        source.write_text(PROGRAM, encoding="utf-8")
        library = (f"-L{self.root / 'lib'}", f"-Wl,-rpath,{self.root / 'lib'}") if self.root else ()
        # for every architecture that it takes: which of them is in this machine is not known
        archs = [f"--offload-arch={arch}" for arch in ARCHITECTURES] if self.found.arch else []
        built = self._run([*self.driver, *archs, str(source), *library, "-lmusart", "-o", str(program)])
        if not built.ok and archs:
            archs = [f"--offload-arch={self.found.arch}"]
            built = self._run([*self.driver, *archs, str(source), *library, "-lmusart", "-o", str(program)])
        if built.ok and program.is_file():
            ran = self._run([str(program)])
            self.found.run = ran.ok
            if not ran.ok:
                says = _PROGRAM_SAYS.get(ran.returncode or 0, "")
                self.found.notes.append(f"cannot run: a small program ends with {ran.describe()}{says and ': ' + says}")
            return
        # without a program the driver's own tool is the only witness
        asked = self._run(["mthreads-gmi"])
        self.found.run = asked.ok
        self.found.notes.append(
            f"a small program cannot be built ({_why(built)}); mthreads-gmi: {'answers' if asked.ok else _why(asked)}"
        )

    def _beside(self, name: str) -> Path | None:
        """A tool of this very toolkit; never one of the same name from elsewhere."""
        folders = [self.identity.resolved.parent, self.identity.path.parent, *([self.root / "bin"] if self.root else [])]
        for folder in folders:
            if os.access(folder / name, os.X_OK) and (folder / name).is_file():
                return folder / name
        return None


def resolved_paths(jobs: Sequence[Job], root: Path | None) -> list[str]:
    """What the driver's jobs take from where: a foreign toolkit in there contaminates a run (julia-musa S2, S4)."""
    named: dict[str, str] = {}
    for job in jobs:
        if job.kind is JobKind.DEVICE_COMPILE:
            named.setdefault("device cc1", job.argv[0])
            for label, option in (("resource-dir", "-resource-dir"), ("libdevice", "-mlink-builtin-bitcode"),
                                  ("libdevice", "-mlink-bitcode-file")):  # fmt: skip
                if value_after(job.argv, option):
                    named.setdefault(label, value_after(job.argv, option))
        elif job.kind is JobKind.DEVICE_LINK:
            named.setdefault("device linker", job.argv[0])
            for argument in job.argv:
                if argument.endswith("trap_handler.o"):
                    named.setdefault("trap handler", argument)
        elif job.kind is JobKind.BUNDLE:
            named.setdefault("bundler", job.argv[0])
    notes = [f"{label}: {path}" for label, path in named.items()]
    if root is not None:
        foreign = [label for label, path in named.items() if not Path(path).resolve().is_relative_to(root.resolve())]
        if foreign:
            notes.append(f"not below the pinned toolkit {root}: {', '.join(foreign)}")
    return notes


def _why(result: RunResult) -> str:
    """The first error line, else how it ended."""
    lines = [line.strip() for line in result.stderr_text.splitlines() if line.strip()]
    said = next((line for line in lines if "error" in line.lower()), "")
    return said[:200] or ("no output was written" if result.ok else result.describe())


def to_document(findings: Findings) -> dict[str, Any]:
    """Findings for the cache."""
    return asdict(findings)


def from_document(document: Mapping[str, Any]) -> Findings | None:
    """Findings from the cache; None if the document is not one."""
    try:
        return Findings(**document)
    except TypeError:
        return None
