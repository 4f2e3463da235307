"""Job replay on a real offload driver: clang-14 in HIP mode, which has mcc's shape (device cc1, device
link, bundler, host compile with the image) and mcc's rules for options (clang 14).
"""

from __future__ import annotations

import io
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from elftools.elf.elffile import ELFFile

from mccprobe.base.process import RunResult, RunSpec, run
from mccprobe.build import job as job_module
from mccprobe.build import unit as unit_module
from mccprobe.build.ledger import Ledger
from mccprobe.build.record import TranslationUnit
from mccprobe.build.unit import PLACEHOLDER_IMAGE, UNLIMITED, RecordedSource, Unit
from mccprobe.targets.clang.toolchain import ClangToolchain
from mccprobe.targets.flags.given import CompilerFlag
from mccprobe.targets.llvm.jobs import JobKind, mllvm_options, value_after
from mccprobe.targets.llvm.opt_bisect import PassExecution, parse_line

pytestmark = pytest.mark.toolchain("clang-14")

ONE = ("--offload-arch=gfx908",)
TWO = ("--offload-arch=gfx906", "--offload-arch=gfx908")
BASE = ("-x", "hip", "-nogpulib", "-nogpuinc", "-O2")
NO_SCHEDULER = "-enable-misched=false"

# HIP without its headers. Prototypes of the launch functions: clang/test/SemaCUDA/Inputs/cuda.h and
# CGNVCUDARuntime::emitDeviceStubBodyNew, which looks hipLaunchKernel up by name.
SOURCE = """
#define __global__ __attribute__((global))
#define __both__ __attribute__((host)) __attribute__((device))
typedef __SIZE_TYPE__ size_t;
struct dim3 {
  unsigned x, y, z;
  __both__ dim3(unsigned x, unsigned y = 1, unsigned z = 1) : x(x), y(y), z(z) {}
};
typedef struct hipStream *hipStream_t;
typedef enum hipError { hipSuccess } hipError_t;
extern "C" hipError_t __hipPushCallConfiguration(dim3 grid, dim3 block, size_t shared = 0, hipStream_t stream = 0);
extern "C" hipError_t __hipPopCallConfiguration(dim3 *grid, dim3 *block, size_t *shared, hipStream_t *stream);
extern "C" hipError_t hipLaunchKernel(const void *function, dim3 grid, dim3 block, void **args, size_t shared,
                                      hipStream_t stream);
__global__ void axpy(float a, const float *x, float *y, int n) {
  for (int i = 0; i < n; ++i) y[i] = a * x[i] * x[i + n] + x[i + 3] / x[2 * i] + y[i] * x[i + 7] / y[i + n];
}
int weight(int n) {
  int sum = 0;
  for (int i = 0; i < n; ++i) sum += i * i;
  return sum;
}
int main() {
  axpy<<<dim3(1), dim3(64)>>>(2.f, nullptr, nullptr, weight(3));
  return 0;
}
"""

Record = Callable[..., RecordedSource]


@pytest.fixture
def record(ledger: Ledger, tmp_path: Path) -> Record:
    """`record(*args)`: the HIP source as clang-14's driver would compile it."""
    source = tmp_path / "axpy.hip"
    source.write_text(SOURCE, encoding="utf-8")

    def make(*args: str, name: str = "axpy") -> RecordedSource:
        toolchain = ClangToolchain(["clang-14"])
        return RecordedSource(toolchain, ledger, TranslationUnit(str(source), (*BASE, *args)), name=name, timeout_s=60)

    return make


def prepared(recorded: RecordedSource, *options: str) -> Unit:
    unit = Unit(recorded, "bad", [CompilerFlag(option) for option in options])
    unit.begin()
    unit.finish()
    return unit


def log_of(unit: Unit, index: int, limit: int) -> list[PassExecution]:
    """The whole BISECT log of one device compile."""
    job = unit.job(limit, index=index)
    argv = [argument.replace("\0output", "/dev/null") for argument in job.argv]
    done = subprocess.run(argv, capture_output=True, text=True, check=True)
    return [line for line in map(parse_line, done.stderr.splitlines()) if line is not None]


def sections_of(data: bytes) -> list[tuple[str, dict[str, object], bytes]]:
    elf = ELFFile(io.BytesIO(data))
    return [(section.name, dict(section.header), section.data()) for section in elf.iter_sections()]


def device_image(path: Path, arch: str, folder: Path) -> bytes:
    """What a host object carries for one architecture, through clang's own bundler."""
    bundle, image = folder / "bundle.o", folder / f"{arch}.image"
    data = next(data for name, _, data in sections_of(path.read_bytes()) if name == ".hip_fatbin")
    bundle.write_bytes(data)
    target = f"hipv4-amdgcn-amd-amdhsa--{arch}"
    subprocess.run(
        [
            "clang-offload-bundler-14",
            "-unbundle",
            "-type=o",
            f"-targets={target}",
            f"-inputs={bundle}",
            f"-outputs={image}",
        ],
        check=True,
    )
    return image.read_bytes()


def test_flag_and_limit_reach_only_the_device_compile(
    record: Record, ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    executed: list[tuple[str, ...]] = []

    def spy(spec: RunSpec) -> RunResult:
        executed.append(tuple(spec.argv))
        return run(spec)

    for module in (job_module, unit_module):
        monkeypatch.setattr(module, "run", spy)
    recorded = record(*ONE)
    unit = prepared(recorded, NO_SCHEDULER)
    for limit in (17, 90):
        digest = ledger.compile(unit.job(limit)).object
        assert digest is not None
        unit.linkable(digest)
    edited = [argv for argv in executed if any("misched" in a or "opt-bisect" in a for a in argv)]
    assert edited and {value_after(argv, "-triple") for argv in edited} == {"amdgcn-amd-amdhsa"}
    for limit in (17, 90):
        assert [NO_SCHEDULER in argv for argv in edited if f"-opt-bisect-limit={limit}" in argv] == [True]
    hosts = [argv for argv in executed if value_after(argv, "-triple").startswith("x86_64")]
    assert len(hosts) == 1, "the host half is compiled once"
    shown = recorded.one(JobKind.HOST_COMPILE_WITH_IMAGE)
    bundle = recorded.one(JobKind.BUNDLE).output
    differing = [old for old, new in zip(shown.argv, hosts[0], strict=True) if old != new]
    assert differing == [bundle, shown.output], "nothing but the image that it embeds and where it writes"
    assert [job.kind for job in recorded.recording.jobs] == [
        JobKind.DEVICE_COMPILE,
        JobKind.DEVICE_LINK,
        JobKind.BUNDLE,
        JobKind.HOST_COMPILE_WITH_IMAGE,
    ]
    assert recorded.jobs[0].arch == "gfx908"


def test_the_host_half_is_compiled_once_and_stays_byte_identical(
    record: Record, ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    recorded = record(*ONE)
    compiled: list[bytes] = []
    original = RecordedSource.host_compile

    def counted(self: RecordedSource, image: bytes, output: Path, scratch: Path) -> None:
        compiled.append(image)
        original(self, image, output, scratch)

    monkeypatch.setattr(RecordedSource, "host_compile", counted)
    unit = prepared(recorded)
    host = recorded.host_half().read_bytes()
    digests = {ledger.compile(unit.job(limit)).object for limit in (0, 40, UNLIMITED)}
    assert len(digests) == 3 and None not in digests
    for digest in digests:
        assert digest is not None
        patched = unit.linkable(digest).read_bytes()
        changed = [(old, new) for old, new in zip(sections_of(host), sections_of(patched), strict=True) if old != new]
        assert [old[0] for old, _ in changed] == [".hip_fatbin"]
        (_, old_header, old_data), (_, new_header, new_data) = changed[0]
        differs = {key for key in old_header if old_header[key] != new_header[key]}
        assert differs == {"sh_offset", "sh_size"}
        assert old_data == PLACEHOLDER_IMAGE + b"\0"
        assert new_data.startswith(b"__CLANG_OFFLOAD_BUNDLE__")
        # and as raw bytes: within the host half nothing but that one section header changed
        at = [index for index, (a, b) in enumerate(zip(host, patched, strict=False)) if a != b]
        elf = ELFFile(io.BytesIO(host))
        header = elf["e_shoff"] + elf["e_shentsize"] * elf.get_section_index(".hip_fatbin")
        assert all(header + 0x18 <= index < header + 0x28 for index in at)
    assert compiled == [PLACEHOLDER_IMAGE]


@pytest.mark.parametrize(
    ("given", "flag"),
    [
        (("-mllvm", NO_SCHEDULER), "--enable-misched=false"),
        (("-mllvm", "--enable-misched=false"), NO_SCHEDULER),
        (("-mllvm", NO_SCHEDULER), "-enable-misched=0"),
        (("-Xclang", "-mllvm", "-Xclang", NO_SCHEDULER), "--enable-misched=0"),
    ],
)
def test_a_flag_that_is_there_is_not_given_twice(record: Record, given: Sequence[str], flag: str) -> None:
    recorded = record(*ONE, *given)
    unit = prepared(recorded, flag)  # clang 14 ends with an error when it is given twice
    present = [option for option in mllvm_options(unit.job(5).argv) if "enable-misched" in option]
    assert present == [given[-1]]
    assert unit.base == prepared(recorded).base
    assert unit.base != prepared(record(*ONE, name="plain")).base, "the option must matter here"


def test_two_architectures_are_numbered_apart(record: Record, ledger: Ledger, tmp_path: Path) -> None:
    recorded = record(*TWO)
    assert [job.arch for job in recorded.jobs] == ["gfx906", "gfx908"]
    unit = prepared(recorded)
    for index in (0, 1):
        numbers = [execution.number for execution in log_of(unit, index, UNLIMITED)]
        assert numbers == list(range(1, len(numbers) + 1)) and len(numbers) > 100
    whole = unit.linkable(unit.base[0])
    other = device_image(whole, "gfx908", tmp_path)
    at_zero = ledger.compile(unit.job(0)).object
    assert at_zero is not None and at_zero != unit.base[0]
    limited = unit.linkable(at_zero)
    assert device_image(limited, "gfx908", tmp_path) == other
    assert device_image(limited, "gfx906", tmp_path) != device_image(whole, "gfx906", tmp_path)


@pytest.mark.parametrize("archs", [ONE, TWO])
def test_replay_without_an_edit_is_what_the_driver_makes(record: Record, archs: Sequence[str], tmp_path: Path) -> None:
    # the driver draws a random -cuid for each call; with one of ours both sides have the same
    args = (*archs, "-cuid=0123456789abcdef")
    recorded = record(*args)
    unit = prepared(recorded)
    driven, replayed = tmp_path / "driven.o", tmp_path / "replayed.o"
    subprocess.run(["clang-14", *BASE, *args, "-c", str(recorded.source), "-o", str(driven)], check=True)
    (tmp_path / "scratch").mkdir()
    recorded.host_compile(unit.image(unit.base[0]), replayed, tmp_path / "scratch")
    assert replayed.read_bytes() == driven.read_bytes()
    # what is linked has the very same sections; only where the image lies in the file differs
    patched = unit.linkable(unit.base[0]).read_bytes()
    for ours, theirs in zip(sections_of(patched), sections_of(driven.read_bytes()), strict=True):
        assert (ours[0], ours[2]) == (theirs[0], theirs[2])


def test_the_compile_unit_id_does_not_change_from_recording_to_recording(record: Record) -> None:
    first, second = record(*ONE), record(*ONE, name="again")
    assert first.jobs[0].substitute({first.jobs[0].output: "O"}) == second.jobs[0].substitute(
        {second.jobs[0].output: "O"}
    )
    ids = {a for job in first.recording.jobs for a in job.argv if a.startswith("-cuid=")}
    assert len(ids) == 1, "host and device must agree on it"
    assert Unit(first, "bad").job(3).id == Unit(second, "bad").job(3).id


def test_bitcode_gives_the_object_of_the_direct_compile(record: Record, ledger: Ledger) -> None:
    recorded = record(*TWO)
    unit = prepared(recorded)
    assert recorded.from_bitcode and recorded.notes == []
    for limit in (0, 60, 150, UNLIMITED):
        for index in (0, 1):
            direct = ledger.compile(unit.job(limit, index=index, from_source=True))
            cached = ledger.compile(unit.job(limit, index=index))
            assert cached.object == direct.object is not None
            assert (cached.log.total, cached.log.ran) == (direct.log.total, direct.log.ran)


def test_machine_schedulers_have_numbers(record: Record) -> None:
    unit = prepared(record(*ONE))
    log = log_of(unit, 0, UNLIMITED)
    scheduler = next(execution for execution in log if execution.name == "Machine Instruction Scheduler")
    assert scheduler.function == "_Z4axpyfPKfPfi"
    before = log_of(unit, 0, scheduler.number - 1)
    assert [e.ran for e in before if e.name == scheduler.name] == [False]
    with_it = log_of(unit, 0, scheduler.number)
    assert [e.ran for e in with_it if e.name == scheduler.name] == [True]


def test_no_temporary_file_is_left(record: Record, ledger: Ledger, tmp_path: Path) -> None:
    unit = prepared(record(*TWO))
    unit.linkable(unit.base[0])
    assert list((ledger.run.root / "trials").iterdir()) == []
    assert list(unit.recorded.folder.glob("*.tmp")) == []
