"""The SDK that is asked: small sources compiled in a folder of their own, each at most once.

Flow: a toolchain -> commands on a three-line kernel -> objects, texts and jobs that the probes look at.
Read-only for the user: everything is written into a temporary folder that is removed afterwards. What
could not be made says why, and no probe takes that for an answer.
"""

from __future__ import annotations

import functools
import re
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from mccprobe.base.errors import MccprobeError
from mccprobe.base.process import RunResult, RunSpec, run
from mccprobe.objects.binary.read import images_of, read_kernels
from mccprobe.objects.binary.records import DeviceImage, KernelMetadata
from mccprobe.objects.isa.listing import parse_listing
from mccprobe.objects.isa.records import Listing
from mccprobe.targets.llvm.jobs import Job, JobKind, back_end_argv, parse_jobs
from mccprobe.targets.llvm.locate import is_program
from mccprobe.targets.llvm.probe import ARCHITECTURES, KERNEL, PROBE_TIMEOUT_S, PROGRAM
from mccprobe.targets.protocol import Toolchain

CONFIRMED, CONTRADICTED, UNCHECKED = "confirmed", "contradicted", "unchecked"
STATES = (CONFIRMED, CONTRADICTED, UNCHECKED)
SAID = 200  # characters kept of what a tool said
NOT_RUNNING = "BISECT: NOT running pass ("  # as RUNNING
RUNNING = "BISECT: running pass ("  # llvm/lib/IR/OptBisect.cpp, printPassMessage

# A header for __shared__ differs from SDK to SDK; the attribute is clang's own.
SHARED_KERNEL = """__attribute__((global)) void mccprobe_shared(float *out) {
  __attribute__((shared)) static float tile[64];
  tile[0] = out[1];
  out[0] = tile[0] + tile[1];
}
"""
# Fields as in CUDA's cudaDeviceProp, which MUSA's is named after.
PROPERTIES = """#include <cstdio>
#include <musa_runtime.h>
int main() {
  musaDeviceProp p;
  if (musaGetDeviceProperties(&p, 0) != musaSuccess) return 2;
  std::printf("arch mp_%d%d\\nwarp %d\\nshared %lld\\nthreads %d\\nmultiprocessors %d\\n", p.major, p.minor,
              p.warpSize, (long long)p.sharedMemPerBlock, p.maxThreadsPerBlock, p.multiProcessorCount);
  return 0;
}
"""

PROPERTY = """#include <cstdio>
#include <musa_runtime.h>
int main() {
  musaDeviceProp p;
  if (musaGetDeviceProperties(&p, 0) != musaSuccess) return 2;
  std::printf("%%lld\\n", (long long)p.%s);
  return 0;
}
"""


@dataclass(frozen=True)
class ProbeAnswer:
    """What a probe found. state: one of STATES. evidence: one line, as seen."""

    state: str
    evidence: str


class Unasked(Exception):
    """The probe cannot say anything here; the text says why."""


def yes(evidence: str) -> ProbeAnswer:
    return ProbeAnswer(CONFIRMED, evidence)


def no(evidence: str) -> ProbeAnswer:
    return ProbeAnswer(CONTRADICTED, evidence)


def answer(holds: bool, evidence: str) -> ProbeAnswer:
    """Confirmed or contradicted by the same line of evidence."""
    return yes(evidence) if holds else no(evidence)


def why(result: RunResult) -> str:
    """The first error line of a child, else how it ended."""
    lines = [line.strip() for line in (result.stderr_text + result.stdout_text).splitlines() if line.strip()]
    said = next((line for line in lines if "error" in line.lower() or "unknown" in line.lower()), "")
    return said[:SAID] or ("no output was written" if result.ok else result.describe())


class Subject:
    """One installed compiler. deadline: on the monotonic clock, after which nothing is started any more."""

    def __init__(self, toolchain: Toolchain, folder: Path, *, deadline: float) -> None:
        self.toolchain = toolchain
        self.folder = folder
        self.deadline = deadline
        self.source = folder / "probe.mu"
        self.source.write_text(KERNEL.format(factor="2.0f"), encoding="utf-8")
        self._steps = 0

    # -- running -------------------------------------------------------------------------------

    def environment(self) -> dict[str, str]:
        """As for every compile, with a scratch folder of its own."""
        self._steps += 1
        scratch = self.folder / f"scratch-{self._steps}"
        scratch.mkdir()
        return self.toolchain.environment(scratch)

    def check_time(self) -> None:
        """Raises Unasked when the time is over."""
        if time.monotonic() > self.deadline:
            raise Unasked("the time for the self-test is over (--timeout)")

    def run(self, argv: Sequence[str], env: dict[str, str] | None = None) -> RunResult:
        """One child. Raises Unasked when the time is over or the child ran out of it."""
        self.check_time()
        left = max(self.deadline - time.monotonic(), 0.01)
        spec = RunSpec(argv, cwd=self.folder, env=env or self.environment(), timeout_s=min(left, PROBE_TIMEOUT_S))
        result = run(spec)
        if result.timed_out:
            raise Unasked(f"{Path(argv[0]).name} did not end within {spec.timeout_s:.0f} s")
        return result

    def device(self, *args: str, name: str, source: Path | None = None, arch: str | None = None) -> Made:
        """A device-only compile of the probe kernel."""
        target = self.folder / name
        chosen = self.taken if arch is None else arch
        named = (f"--offload-arch={chosen}",) if chosen else ()
        argv = [*self.toolchain.driver, *named, "-O2", "--musa-device-only", *args, str(source or self.source)]
        result = self.run([*argv, "-o", str(target)])
        data = target.read_bytes() if result.ok and target.is_file() else b""
        return Made(data, "" if data else why(result), target, result)

    # -- what the probes look at, each made when it is first asked for -----------------------------

    @functools.cached_property
    def version_text(self) -> str:
        result = self.run([*self.toolchain.driver[:1], "--version"])
        return result.stdout_text

    @functools.cached_property
    def root(self) -> Path | None:
        """The toolkit."""
        return self.toolchain.root

    def require_root(self) -> Path:
        if self.root is None:
            raise Unasked("the folder above mcc is no toolkit; name it with --musa-path DIR")
        return self.root

    @functools.cached_property
    def by_arch(self) -> dict[str, Made]:
        """The device object for each architecture that is asked for, and without one."""
        archs = (*ARCHITECTURES, "")
        return {arch: self.device("-c", name=f"probe-{arch or 'default'}.o", arch=arch) for arch in archs}

    @functools.cached_property
    def taken(self) -> str:
        """The first architecture that is taken; "" where none is. Enough where the code itself is not looked at."""
        return next((arch for arch, made in self.by_arch.items() if made.data), "")

    @functools.cached_property
    def object(self) -> Made:
        """The device object for `taken`."""
        return self.by_arch[self.taken]

    @functools.cached_property
    def arch(self) -> str:
        """Whose code is looked at: the device's, where one answers and mcc compiles for it, else `taken`."""
        device = self.device_arch
        return device if device and self.code_for(device).data else self.taken

    @functools.cached_property
    def device_arch(self) -> str:
        """The architecture that the runtime names for device 0, "" where none answers."""
        if self.toolchain.simulated:
            return ""
        try:
            named = self.properties.get("arch", "")
        except Unasked:
            return ""
        return named if re.fullmatch(r"mp_\d{2,3}", named) else ""

    @property
    def whose_code(self) -> str:
        """The architecture of the code that is looked at, and why that one."""
        if self.arch and self.arch == self.device_arch:
            return f"code for {self.arch}, the architecture of the device"
        why = f"the device is {self.device_arch}" if self.device_arch else "no device answers"
        return f"code for {self.arch or 'the default architecture'} ({why})"

    def code_for(self, arch: str) -> Made:
        """The device object for this architecture, made once."""
        if arch not in self.by_arch:
            self.by_arch[arch] = self.device("-c", name=f"probe-{arch}.o", arch=arch)
        return self.by_arch[arch]

    @functools.cached_property
    def code(self) -> Made:
        """The device object whose code is looked at."""
        return self.code_for(self.arch)

    @functools.cached_property
    def text(self) -> Made:
        return self.device("-S", name="probe.s", arch=self.arch)

    @functools.cached_property
    def shared_text(self) -> Made:
        source = self.folder / "shared.mu"
        source.write_text(SHARED_KERNEL, encoding="utf-8")
        return self.device("-S", name="shared.s", source=source, arch=self.arch)

    @functools.cached_property
    def jobs_text(self) -> RunResult:
        named = (f"--offload-arch={self.taken}",) if self.taken else ()
        whole = ("-c", str(self.source), "-o", str(self.folder / "whole.o"))
        return self.run([*self.toolchain.driver, "-###", *named, "-O2", *whole])

    @functools.cached_property
    def jobs(self) -> tuple[Job, ...]:
        return parse_jobs(self.jobs_text.stderr_text)

    @functools.cached_property
    def whole(self) -> Made:
        """The host object with its device image."""
        target = self.folder / "whole.o"
        named = (f"--offload-arch={self.taken}",) if self.taken else ()
        result = self.run([*self.toolchain.driver, *named, "-O2", "-c", str(self.source), "-o", str(target)])
        data = target.read_bytes() if result.ok and target.is_file() else b""
        return Made(data, "" if data else why(result), target, result)

    def require_job(self, kind: JobKind) -> Job:
        """Raises Unasked where -### shows none."""
        found = next((job for job in self.jobs if job.kind is kind), None)
        if found is None:
            raise Unasked(f"-### shows no {kind.value}")
        return found

    def replay(self, name: str, *options: str, bitcode: Path | None = None) -> Made:
        """The device cc1 of -### with more LLVM options, from the source or from bitcode."""
        job = self.require_job(JobKind.DEVICE_COMPILE)
        target = self.folder / name
        argv = back_end_argv(job, str(bitcode or ""), str(target), language="ir" if bitcode else "", options=options)
        result = self.run(argv)
        data = target.read_bytes() if result.ok and target.is_file() else b""
        return Made(data, "" if data else why(result), target, result)

    @functools.cached_property
    def replayed(self) -> Made:
        return self.replay("replayed.o")

    @functools.cached_property
    def image(self) -> DeviceImage:
        """The first device image of the object that is an ELF file. Raises Unasked where there is none."""
        images = self.images
        found = next((image for image in images if image.data[:4] == b"\x7fELF"), None)
        if found is None:
            raise Unasked("no ELF file is in the device object")
        return found

    @functools.cached_property
    def images(self) -> list[DeviceImage]:
        """Everything in the device object. Raises Unasked where it cannot be read."""
        try:
            return images_of(self.code.require("a device object"), "the device object")
        except MccprobeError as error:
            raise Unasked(f"the device object cannot be read: {error.message}") from error

    @functools.cached_property
    def note_kernel(self) -> KernelMetadata | None:
        """The probe kernel as the object's note tells it, None where no note does."""
        try:
            return next(iter(read_kernels(self.image)[0]), None)
        except (MccprobeError, Unasked):
            return None

    @functools.cached_property
    def text_kernel(self) -> KernelMetadata | None:
        """The probe kernel as the -S text tells it."""
        return _kernel_of_text(self.text.data)

    def require_kernel(self) -> KernelMetadata:
        """From the note, else from -S text. Raises Unasked where neither has one."""
        found = self.note_kernel or self.text_kernel
        if found is None:
            raise Unasked("no kernel metadata was found, neither in the device object nor in -S text")
        return found

    @functools.cached_property
    def listing(self) -> Listing:
        """The -S text as a listing. Raises Unasked where there is none."""
        return parse_text(self.text.require("-S text"))

    @functools.cached_property
    def program(self) -> Made:
        """A small program with one kernel."""
        return self._program("program", PROGRAM)

    @functools.cached_property
    def properties(self) -> dict[str, str]:
        """What the runtime says of device 0. Raises Unasked where no program or no device is."""
        made = self._program("properties", PROPERTIES)
        made.require("a program that asks for the device's properties")
        ran = self.run([str(made.path)])
        if not ran.ok:
            raise Unasked(f"musaGetDeviceProperties does not answer ({ran.describe()}): is a device there?")
        return dict(line.split(" ", 1) for line in ran.stdout_text.splitlines() if " " in line)

    def device_property(self, field: str) -> int:
        """A field of musaDeviceProp. Raises Unasked where the SDK has no such field, or no device is there."""
        made = self._program(f"property-{field}", PROPERTY % field)
        made.require(f"a program that asks for the device's {field}")
        ran = self.run([str(made.path)])
        told = ran.stdout_text.strip()
        if not ran.ok or not told.isascii() or not told.isdigit():
            raise Unasked(f"musaGetDeviceProperties does not tell {field} ({ran.describe()})")
        return int(told)

    def _program(self, name: str, text: str) -> Made:
        source, target = self.folder / f"{name}.mu", self.folder / name
        source.write_text(text, encoding="utf-8")
        library = (f"-L{self.root / 'lib'}", f"-Wl,-rpath,{self.root / 'lib'}") if self.root else ()
        result = None
        for archs in (ARCHITECTURES, (self.taken,) if self.taken else ()):
            named = [f"--offload-arch={arch}" for arch in archs]
            result = self.run([*self.toolchain.driver, *named, str(source), *library, "-lmusart", "-o", str(target)])
            if result.ok and target.is_file():
                return Made(target.read_bytes(), "", target, result)
        assert result is not None
        return Made(b"", why(result), target, result)

    def beside(self, name: str) -> Path | None:
        """A tool of this very toolkit, never one of the same name from elsewhere."""
        identity = self.toolchain.identify()
        folders = [identity.path.parent, identity.resolved.parent, *([self.root / "bin"] if self.root else [])]
        return next((f / name for f in folders if is_program(f / name)), None)


@dataclass(frozen=True)
class Made:
    """What a command wrote: b"" and the reason where it wrote nothing."""

    data: bytes
    problem: str
    path: Path
    result: RunResult

    def require(self, what: str) -> bytes:
        """Raises Unasked where there is nothing."""
        if not self.data:
            raise Unasked(f"{what} could not be made: {self.problem}")
        return self.data


def _kernel_of_text(data: bytes) -> KernelMetadata | None:
    try:
        images = images_of(data, "-S text") if data else []
        return next((kernel for image in images for kernel in read_kernels(image)[0]), None)
    except MccprobeError:
        return None


def parse_text(data: bytes) -> Listing:
    """Raises Unasked where the text is no listing."""
    try:
        return parse_listing(data.decode("utf-8", "replace"), "-S text")
    except MccprobeError as error:
        raise Unasked(f"-S text is no listing: {error.message}") from error
