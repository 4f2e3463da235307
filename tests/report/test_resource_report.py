"""From files of every kind to the report: numbers, texts, documents; what is not there is null and says why."""

from __future__ import annotations

import csv
import io
import json
import subprocess
from pathlib import Path
from types import ModuleType
from typing import Any

import jsonschema
import pytest

from mccprobe.base.errors import BadBinary, CompilerNotFound, InputError, SourceDoesNotCompile
from mccprobe.build.device_source import SourceOptions
from mccprobe.cli import error_document
from mccprobe.inspection.demangled import demangled
from mccprobe.inspection.resources import ReportRequest, ResourceReport, report_on
from mccprobe.objects.model.resources import Options
from mccprobe.oracle.kernel.spec import shipped_kernel
from mccprobe.report.render_resources import render_csv, render_markdown, render_terminal, render_text
from mccprobe.targets.mcc.toolchain import MccPaths

ROOT = Path(__file__).resolve().parents[2]
FAKES = ROOT / "tests" / "fakes"
GOLDENS = Path(__file__).parent / "goldens"
SCHEMA = json.loads((ROOT / "reports/report.schema.json").read_text("utf-8"))
FINAL, MUBLAS = "_Z13gemm_wmma_256PK6__halfS1_PS_ii", "hgemm_nn_512_256x256_tensor_qy2"
STAND_IN = "gfx908 stand-in, not MP22"


def report(*files: Path, compare: str = "", block_size: int | None = None, **source: Any) -> ResourceReport:
    """A report whose document follows the schema; no mcc but one that is named."""
    request = ReportRequest(
        files, Options(block_size), SourceOptions(**source), shipped_kernel(compare) if compare else None
    )
    found = report_on(request)
    document = json.loads(json.dumps(found.to_dict()))
    assert [error.message for error in jsonschema.Draft202012Validator(SCHEMA).iter_errors(document)] == []
    return found


def complaints(document: Any) -> list[str]:
    return [error.message for error in jsonschema.Draft202012Validator(SCHEMA).iter_errors(document)]


# --- MTGPU --------------------------------------------------------------------------------------


def test_assembly_text_gives_every_number_of_the_article(assembly: Path) -> None:
    (kernel,) = report(assembly).to_dict()["kernels"]
    assert (kernel["name"], kernel["target"], kernel["source_format"]) == (FINAL, "mp_22", "mtgpu-asm")
    assert kernel["registers"] == {
        "temp": 126,
        "attribute": 2,
        "shared": 25,
        "internal": 2,
        "slot": 0,
        "coefficient": 0,
    }
    assert kernel["shared_memory_bytes"] == 37_396
    assert kernel["shared_memory"]["declared_bytes"] == 37_376
    assert kernel["shared_memory"]["certainty"] == "known", "the listing's symbol says it"
    assert (kernel["private_memory_bytes"], kernel["private_memory"]["verdict"]) == (8, "metadata")
    assert kernel["spills"] is None
    assert kernel["has_barrier"] is True
    assert kernel["instructions"] == 6
    assert kernel["instruction_mix"]["pipes"]["MMA"] == 1
    assert [entry["model"] for entry in kernel["occupancy"]] == [
        "article-optimistic",
        "article-conservative",
        "public-limits",
    ]


def test_a_bundle_gives_each_kernel_for_each_architecture(bundle: Path) -> None:
    kernels = report(bundle).to_dict()["kernels"]
    assert [(kernel["name"], kernel["target"]) for kernel in kernels] == [
        (FINAL, "mp_22"),
        (MUBLAS, "mp_22"),
        (FINAL, "mp_31"),
    ]
    assert kernels[2]["unknown_keys"] == [".surprise"]
    assert kernels[2]["raw"][".surprise"] == 3
    assert kernels[1]["occupancy"][0]["block_size"] == 512
    assert kernels[0]["instructions"] is None
    assert kernels[0]["instruction_mix"]["reason"] == "the object has no function of this name"


def test_the_frame_has_the_same_numbers(bundle: Path) -> None:
    frame = report(bundle).frame()
    assert list(frame["temp_registers"]) == [126, 250, 100]
    assert list(frame["target"]) == ["mp_22", "mp_22", "mp_31"]


def test_a_listing_has_instructions_and_no_metadata(tmp_path: Path) -> None:
    path = tmp_path / "k.txt"
    path.write_text(
        "\nk.o:\tfile format elf64-amdgpu\n\nDisassembly of section .text:\n\n0000000000000000 <k>:\n"
        "\ts_endpgm                                                   // 000000000000: BF810000\n",
        encoding="utf-8",
    )
    (kernel,) = report(path).to_dict()["kernels"]
    assert (kernel["name"], kernel["instructions"], kernel["shared_memory_bytes"]) == ("k", 1, None)


def test_published_figures_stand_beside_the_report(assembly: Path, bundle: Path) -> None:
    comparison = report(assembly, compare="gemm").to_dict()["comparison"]
    rows = {row["metric"]: row for row in comparison["rows"]}
    assert [p["value"] for p in rows["temp_reg_count"]["published"]] == [126, 250]
    for metric, value in (("temp_reg_count", 126), ("shared_memory_bytes", 37_396), ("private_memory_bytes", 8)):
        (cell,) = rows[metric]["reported"]
        assert cell["value"] == value == rows[metric]["published"][0]["value"]
    assert rows["main_loop_vliw_words"]["reported"][0]["value"] is None
    assert "bytes" in rows["main_loop_vliw_words"]["reported"][0]["reason"]
    assert rows["tflops"]["reported"][0]["value"] is None


# --- goldens ------------------------------------------------------------------------------------


def check(name: str, text: str, update: bool) -> None:
    path = GOLDENS / name
    if update:
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
    assert text == path.read_text("utf-8")


@pytest.mark.parametrize(
    ("name", "render"), [("mtgpu.txt", render_text), ("mtgpu.md", render_markdown), ("mtgpu.csv", render_csv)]
)
def test_what_a_user_sees(
    name: str, render: Any, assembly: Path, bundle: Path, update_goldens: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(assembly.parent)
    found = report(Path(assembly.name), Path(bundle.name), compare="gemm")
    check(name, render(found), update_goldens)


def test_the_document(assembly: Path, update_goldens: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(assembly.parent)
    document = report(Path(assembly.name)).to_dict() | {"tool_version": "0"}
    check("mtgpu.json", json.dumps(document, indent=2) + "\n", update_goldens)


def test_the_terminal_gets_a_table_and_the_text(bundle: Path) -> None:
    found = report(bundle)
    text = render_terminal(found, 120)
    assert text.endswith(render_text(found))
    head = text.split("\n\n")[0]
    assert "registers" in head and "37,396" in head and "\x1b[1m" in head


def test_names_cannot_steer_the_terminal(writer: ModuleType, tmp_path: Path) -> None:
    path = tmp_path / "evil.o"
    path.write_bytes(writer.mtgpu_elf(writer.mtgpu_document(writer.mtgpu_kernel("k\x1b[31m[bold]"))))
    found = report(path)
    assert "\x1b[31m" not in render_text(found) + render_markdown(found) + render_terminal(found, 120)


# --- damaged and foreign input --------------------------------------------------------------------


def test_a_file_that_is_nothing_known_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("buy milk\n")
    with pytest.raises(InputError, match="neither an object"):
        report(path)


def test_a_damaged_image_does_not_hide_the_others(writer: ModuleType, final_kernel: Any, tmp_path: Path) -> None:
    good = writer.mtgpu_elf(writer.mtgpu_document(final_kernel))
    bad = writer.mtgpu_elf(b"\xdf\xff\xff\xff\xff")
    path = tmp_path / "two.o"
    path.write_bytes(writer.bundle([("musa-mtgpu-mt-musa-mp_21", bad), ("musa-mtgpu-mt-musa-mp_22", good)]))
    found = report(path)
    assert [kernel.kernel.target for kernel in found.kernels] == ["mp_22"]
    assert found.warnings


def test_a_damaged_image_alone_is_an_error(writer: ModuleType, tmp_path: Path) -> None:
    path = tmp_path / "bad.o"
    path.write_bytes(writer.mtgpu_elf(b"\xdf\xff\xff\xff\xff"))
    with pytest.raises(BadBinary):
        report(path)


def test_error_documents_follow_the_schema() -> None:
    assert complaints(error_document(InputError("x"))) == []


# --- sources --------------------------------------------------------------------------------------


@pytest.fixture
def own(tmp_path: Path) -> Path:
    path = tmp_path / "own.mu"
    path.write_text("__global__ void own() {}\n", encoding="utf-8")
    return path


def test_without_mcc_a_users_kernel_is_not_compiled_for_another_gpu(own: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    with pytest.raises(CompilerNotFound) as caught:
        report(own)
    assert "--toolchain amdgcn" in caught.value.hint
    assert int(caught.value.exit_code) == 3


@pytest.fixture
def outputs(assembly: Path, bundle: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAKE_ASSEMBLY", str(assembly))
    monkeypatch.setenv("FAKE_BUNDLE", str(bundle))


@pytest.mark.usefixtures("outputs")
def test_mcc_compiles_a_source_to_assembly_text(own: Path) -> None:
    found = report(own, mcc=MccPaths(mcc=str(FAKES / "mcc_writes_assembly")))
    assert [kernel.kernel.source_format for kernel in found.kernels] == ["mtgpu-asm"]
    assert found.kernels[0].origin.startswith(str(own))
    assert found.kernels[0].heading == ""


@pytest.mark.usefixtures("outputs")
@pytest.mark.parametrize("as_cuda", ["", "1"])
def test_mcc_compiles_a_cu_source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, as_cuda: str) -> None:
    """Also where the driver reads .cu as CUDA until -x musa names the language."""
    monkeypatch.setenv("FAKE_CU_IS_CUDA", as_cuda)
    path = tmp_path / "own.cu"
    path.write_text("__global__ void own() {}\n", encoding="utf-8")
    found = report(path, mcc=MccPaths(mcc=str(FAKES / "mcc_writes_assembly")))
    assert [kernel.kernel.source_format for kernel in found.kernels] == ["mtgpu-asm"]


@pytest.mark.usefixtures("outputs")
def test_an_mcc_that_refuses_assembly_gives_its_bundle(own: Path) -> None:
    found = report(own, mcc=MccPaths(mcc=str(FAKES / "mcc_refuses_assembly")))
    assert [kernel.kernel.source_format for kernel in found.kernels] == ["mtgpu-elf"] * 3
    assert any("mcc -S does not work here (fatal error" in told for told in found.told)


@pytest.mark.usefixtures("outputs")
def test_a_source_that_does_not_compile_shows_mccs_message(tmp_path: Path) -> None:
    path = tmp_path / "broken.mu"
    path.write_text("BROKEN\n", encoding="utf-8")
    with pytest.raises(SourceDoesNotCompile) as caught:
        report(path, mcc=MccPaths(mcc=str(FAKES / "mcc_writes_assembly")))
    assert "this is broken" in caught.value.detail


# --- real compilers -------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def gemm() -> ResourceReport:
    return report(ROOT / "kernels" / "gemm", toolchain="amdgcn", compare="gemm")


@pytest.mark.toolchain("clang-14")
def test_a_shipped_kernel_is_compiled_for_the_stand_in(monkeypatch: pytest.MonkeyPatch) -> None:
    found = report(ROOT / "kernels/gemm/gemm.mu")
    assert {kernel.heading for kernel in found.kernels} == {STAND_IN}
    assert any("no mcc here" in told for told in found.told)


@pytest.mark.toolchain("clang-14")
def test_every_line_of_a_stand_in_says_so(gemm: ResourceReport) -> None:
    for line in filter(None, render_text(gemm).splitlines()):
        assert line.startswith(f"{STAND_IN}: "), line
    for line in filter(None, render_terminal(gemm, 150).splitlines()):
        assert line.startswith(STAND_IN), line
    for row in csv.DictReader(io.StringIO(render_csv(gemm))):
        assert row["heading"] == STAND_IN
    for kernel in gemm.to_dict()["kernels"]:
        assert kernel["heading"] == STAND_IN
    text = render_markdown(gemm)
    assert all(STAND_IN in line for line in text.splitlines() if "gemm_wmma" in line and "published" not in line)


@pytest.mark.toolchain("clang-14")
def test_the_stand_ins_numbers_are_clangs(gemm: ResourceReport) -> None:
    large = gemm.to_dict()["kernels"][0]
    assert (large["target"], large["shared_memory_bytes"], large["has_barrier"]) == ("gfx908", 37_376, True)
    assert large["registers"]["vector"] <= 64
    assert large["spills"] is not None
    assert large["instructions"] == sum(large["instruction_mix"]["pipes"].values())
    assert "not comparable with gfx908" in gemm.to_dict()["comparison"]["note"]


@pytest.mark.toolchain("clang-14")
def test_sim_tells_shared_memory_and_stack_and_no_registers() -> None:
    found = report(ROOT / "kernels/gemm/gemm.mu", toolchain="sim", cache=ROOT / ".test-cache")
    large, small = found.to_dict()["kernels"]
    assert (large["shared_memory_bytes"], small["shared_memory_bytes"]) == (37_376, 1024)
    assert large["private_memory_bytes"] > 0
    assert set(large["registers"].values()) == {None} and "temp" in large["registers"] and large["spills"] is None
    assert all(line.startswith("SIMULATED") for line in filter(None, render_text(found).splitlines()))


@pytest.mark.toolchain("clang-14")
def test_a_host_object_has_its_instructions(tmp_path: Path) -> None:
    source, output = tmp_path / "h.c", tmp_path / "h.o"
    source.write_text("int add(int a, int b) { return a * b + a; }\nint twice(int a) { return add(a, a); }\n")
    subprocess.run(["clang-14", "-O1", "-c", str(source), "-o", str(output)], check=True, timeout=60)
    add, twice = report(output).to_dict()["kernels"]
    assert (add["name"], twice["name"]) == ("add", "twice")
    assert add["instructions"] == sum(add["instruction_mix"]["pipes"].values())
    assert 2 <= add["instructions"] <= 5, "without the padding behind it"
    assert add["occupancy"][0]["reason"] == "code for a host CPU has no occupancy"


# --- names ------------------------------------------------------------------------------------------


def test_names_are_demangled_where_a_demangler_is(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    wanted = {FINAL: "gemm_wmma_256(__half const*, __half const*, __half*, int, int)"}
    many = [FINAL, "plain", *(f"_Z{len(name)}{name}v" for name in (f"kernel{n}" for n in range(5000)))]
    found = demangled(many)
    assert found.items() >= wanted.items() and found["_Z10kernel4999v"] == "kernel4999()" and len(found) == 5001
    for text in ("#!/bin/sh\nexit 1\n", "#!/bin/sh\necho one line\necho too many\n"):
        tool = tmp_path / "c++filt"
        tool.write_text(text)
        tool.chmod(0o755)
        monkeypatch.setenv("PATH", f"{tmp_path}:/bin")
        assert demangled([FINAL]) == {}
    monkeypatch.setenv("PATH", str(tmp_path / "nothing"))
    assert demangled([FINAL]) == {}


def test_a_report_without_instructions_runs_no_disassembler(
    tmp_path: Path, writer: ModuleType, final_kernel: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    path = tmp_path / "k.o"
    path.write_bytes(writer.mtgpu_elf(writer.mtgpu_document(final_kernel)))
    (kernel,) = report_on(ReportRequest([path], count_instructions=False)).kernels
    assert kernel.mix.count is None and "--no-instructions" in kernel.mix.reason
    assert kernel.kernel.registers["temp"] == 126 and kernel.title == FINAL


# --- host code --------------------------------------------------------------------------------------


@pytest.mark.toolchain("clang-14")
@pytest.mark.parametrize("shape", ["program", "library", "object"])
def test_host_code_lists_nothing_that_only_a_device_has(shape: str, tmp_path: Path) -> None:
    source, output = tmp_path / "h.c", tmp_path / "h.out"
    source.write_text("int add(int a, int b) { return a * b + a; }\nint main(void) { return add(1, 2); }\n")
    options = {"program": [], "library": ["-shared", "-fPIC"], "object": ["-c"]}[shape]
    subprocess.run(["clang-14", *options, str(source), "-o", str(output)], check=True, timeout=60)
    found = report(output)
    text = render_text(found)
    if shape == "object":
        assert [one.kernel.name for one in found.kernels] == ["add", "main"]
    else:
        assert (found.kernels, found.warnings) == ((), (f"{output}: host program (x86-64), no device code",))
        assert complaints(found.to_dict()) == []
    assert "registers" not in text and "shared memory" not in text


@pytest.mark.toolchain("clang-14")
def test_a_program_with_device_code_of_another_kind_is_not_called_one_without(tmp_path: Path) -> None:
    source, output = tmp_path / "h.c", tmp_path / "h.out"
    source.write_text(
        '__attribute__((section(".nv_fatbin"))) const char blob[64] = {0x50, (char)0xed, 0x55, (char)0xba, 1, 0, 16};\n'
        "int main(void) { return blob[0]; }\n"
    )
    subprocess.run(["clang-14", str(source), "-o", str(output)], check=True, timeout=60)
    assert any("its device code is of a kind that is not read here" in one for one in report(output).warnings)
