"""What an mcc can do, found by running it on a three-line kernel.

Flow: driver -> small compiles in a folder of their own -> Findings. What is not public about mcc (does
`-S` work, are there BISECT lines, is a repeated option fatal, is there a compile cache) is asked, never
assumed: mtgpu.md, sections 1.3 and 11.
"""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from mccprobe.base.process import RunResult, RunSpec, run
from mccprobe.targets.llvm.findings import Findings
from mccprobe.targets.llvm.jobs import Job, JobKind, back_end_argv, parse_jobs, value_after
from mccprobe.targets.llvm.locate import is_program
from mccprobe.targets.protocol import Identity

PROBE_TIMEOUT_S = 60.0  # one compile of a three-line kernel; only ends a hung compiler
ARCHITECTURES = ("mp_22", "mp_31", "mp_21")  # S4000 first: the GPU that mccprobe is made for
BUNDLE_ID = re.compile(r"^(?:musa-)?(?:mtgpu|mthg)-mt-musa-+\w+$", re.MULTILINE)  # mtgpu.md section 2.3
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
_PROGRAM_SAYS = {
    2: "no device memory: is a device there?",
    3: "a kernel does not run",
    4: "a kernel gives a wrong value",
}
_NOT_TAKEN = re.compile(r"unknown argument|unsupported option|argument unused")
_RUNNING = "BISECT: running pass ("


def accepted_pins(mcc: Path, root: Path, environment: Mapping[str, str]) -> tuple[str, ...]:
    """Which of the options that tie mcc to one toolkit (seen in zml/xla, julia-musa) this mcc takes."""
    taken: list[str] = []
    question = ("-###", "-x", "musa", "--musa-device-only", "-c", os.devnull, "-o", "probe.o")
    for option in (f"--musa-path={root}", "--musa-path-ignore-env"):
        result = run(RunSpec([str(mcc), *taken, option, *question], env=environment, timeout_s=PROBE_TIMEOUT_S))
        if result.ok and not _NOT_TAKEN.search(result.stderr_text):
            taken.append(option)
    return tuple(taken)


def probe(
    driver: Sequence[str],
    identity: Identity,
    root: Path | None,
    environment: Callable[[Path], dict[str, str]],
) -> Findings:
    """Run the compiler on small kernels and tell what came of it. environment: as for every compile."""
    with tempfile.TemporaryDirectory(prefix="mccprobe-probe-") as folder:
        return _Probe(driver, identity, root, environment, Path(folder)).findings()


class _Probe:
    def __init__(
        self,
        driver: Sequence[str],
        identity: Identity,
        root: Path | None,
        environment: Callable[[Path], dict[str, str]],
        folder: Path,
    ) -> None:
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
        jobs = self._jobs()
        self._bundles(jobs)
        self._texts(first)
        self._stale_objects(first)
        self._bisects(jobs)
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

    def _arch(self) -> tuple[str, ...]:
        return (f"--offload-arch={self.found.arch}",) if self.found.arch else ()

    def _device(self, *args: str, output: str = "probe.o") -> tuple[RunResult, bytes]:
        """A device-only command on the probe kernel; the bytes are empty when it fails or writes nothing."""
        target = self.folder / output
        target.unlink(missing_ok=True)
        given = ("--musa-device-only", *args, str(self.source), "-o", str(target))
        result = self._run([*self.driver, *self._arch(), "-O2", *given])
        return result, target.read_bytes() if result.ok and target.is_file() else b""

    def _compiles(self) -> bytes | None:
        self._write("2.0f")
        problem = ""
        for arch in (*ARCHITECTURES, ""):
            self.found.arch = arch
            result, data = self._device("-c")
            if data:
                self.found.compile = True
                return data
            problem = problem or _why(result)
        found = self.found
        found.compile = found.bisect = found.bundle = found.resources = found.run = False
        self._note(f"a three-line kernel does not compile (--musa-device-only -c): {problem}")
        return None

    def _write(self, factor: str) -> None:
        self.source.write_text(KERNEL.format(factor=factor), encoding="utf-8")

    def _note(self, text: str) -> None:
        self.found.notes.append(text)

    def _jobs(self) -> tuple[Job, ...]:
        """The jobs of a whole compile, as -### shows them; notes what they take from where."""
        whole = ("-c", str(self.source), "-o", str(self.folder / "whole.o"))
        result = self._run([*self.driver, "-###", *self._arch(), "-O2", *whole])
        jobs = parse_jobs(result.stderr_text)
        self._note("jobs (-###): " + (", ".join(job.kind.value for job in jobs) or f"none: {_why(result)}"))
        self.found.notes += resolved_paths(jobs, self.root)
        return jobs

    def _bundles(self, jobs: Sequence[Job]) -> None:
        """The bundler that mcc itself uses must list what mcc made: the last object stands in probe.o."""
        used = [Path(job.argv[0]) for job in jobs if job.kind is JobKind.BUNDLE]
        bundler = next(iter(used), None) or self._beside("clang-offload-bundler")
        self.found.bundle = False
        if bundler is None:
            self._note("clang-offload-bundler: neither in a job nor beside mcc")
            return
        result = self._run([str(bundler), "--type=o", f"--inputs={self.folder / 'probe.o'}", "--list"])
        self.found.bundle = result.ok and BUNDLE_ID.search(result.stdout_text) is not None
        if not self.found.bundle:
            shown = " ".join(result.stdout_text.split()) or _why(result)
            self._note(f"clang-offload-bundler --list shows no MUSA entry in its object: {shown}")

    def _texts(self, data: bytes) -> None:
        assembly, text = self._device("-S", output="probe.s")
        self._note("device assembly (-S): " + ("yes" if text else f"no: {_why(assembly)}"))
        result, ir = self._device("-S", "-emit-llvm", output="probe.ll")
        self._note("device IR (-S -emit-llvm): " + ("yes" if ir else f"no: {_why(result)}"))
        self.found.resources = METADATA_MARK.encode() in text or NOTE_OWNER in data
        if not self.found.resources:
            self._note("no kernel metadata, neither in -S text nor in the device object")

    def _stale_objects(self, first: bytes) -> None:
        self._write("3.0f")
        _, second = self._device("-c")
        if second == first:
            self.found.stale = "a file with changed content gave the same object again"

    def _bisects(self, jobs: Sequence[Job]) -> None:
        """The device cc1 replayed with two limits, as a bisection does it: each must have its own log."""
        self.found.bisect = False
        device = [job for job in jobs if job.kind is JobKind.DEVICE_COMPILE]
        if not device:
            self._note("no device compile is shown, so nothing can be replayed")
            return
        ran, objects = {}, {}
        for limit in (-1, 0, 1):
            output, option = str(self.folder / f"at{limit}.o"), f"-opt-bisect-limit={limit}"
            result = self._run(back_end_argv(device[0], "", output, language="", options=[option]))
            if not result.ok:
                self._note(f"the device compile with {option} fails: {_why(result)}")
                return
            ran[limit] = result.stderr_text.count(_RUNNING)
            objects[limit] = Path(output).read_bytes() if Path(output).is_file() else b""
        if not ran[-1]:
            self._note("-mllvm -opt-bisect-limit=-1 prints no BISECT lines")
            return
        if objects[0] == objects[-1] and not ran[0]:
            self._note("-opt-bisect-limit has no effect: limit 0 and no limit give the same object")
            return
        self.found.bisect = True
        self._note(f"the probe kernel runs {ran[-1]} pass executions at -O2")
        if ran[1] != 1 and not self.found.stale:
            self.found.stale = f"with -opt-bisect-limit=1 the log shows {ran[1]} executions"

    def _repeats(self) -> None:
        option = ("-mllvm", "-opt-bisect-limit=-1")
        result, _ = self._device(*option, *option, "-c")
        fatal = not result.ok and "may only occur" in result.stderr_text
        answer = "fatal, as in clang 14" if fatal else ("accepted" if result.ok else _why(result))
        self._note(f"an -mllvm option given twice: {answer}")

    def _tools(self) -> None:
        for name in TOOLS:
            tool = self._beside(name)
            if tool is None:
                self._note(f"{name}: not beside mcc")
                continue
            result = self._run([str(tool), "--version"])
            lines = (result.stdout_text + result.stderr_text).strip().splitlines()
            said = next((line.strip() for line in lines if "version" in line), lines[0].strip() if lines else "")
            answers = result.ok and bool(said)
            self._note(f"{name}: {said[:100]}" if answers else f"{name}: does not answer ({_why(result)})")

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
                self._note(f"cannot run: a small program ends with {ran.describe()}{says and ': ' + says}")
            return
        # without a program the driver's own tool is the only witness
        asked = self._run(["mthreads-gmi"])
        self.found.run = asked.ok
        said = "answers" if asked.ok else _why(asked)
        self._note(f"a small program cannot be built ({_why(built)}); mthreads-gmi: {said}")

    def _beside(self, name: str) -> Path | None:
        """A tool of this very toolkit; never one of the same name from elsewhere."""
        folders = [self.identity.resolved.parent, self.identity.path.parent]
        folders += [self.root / "bin"] if self.root else []
        return next((folder / name for folder in folders if is_program(folder / name)), None)


def resolved_paths(jobs: Sequence[Job], root: Path | None) -> list[str]:
    """What the jobs take from where: another toolkit in there contaminates a run (julia-musa S2, S4)."""
    named: dict[str, str] = {}
    for job in jobs:
        if job.kind is JobKind.DEVICE_COMPILE:
            named.setdefault("device cc1", job.argv[0])
            for label, option in (
                ("resource-dir", "-resource-dir"),
                ("libdevice", "-mlink-builtin-bitcode"),
                ("libdevice", "-mlink-bitcode-file"),
            ):
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
