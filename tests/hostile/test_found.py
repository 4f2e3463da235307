"""What the campaign found, each with the right answer."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import re
import shutil
import tarfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from mccprobe.base.errors import BadDataFile, BadReport, InputError, JournalUnreadable
from mccprobe.bisection.passes.ir_change import IrChange, compare_ir
from mccprobe.bisection.passes.options import BisectOptions, read_recipe
from mccprobe.build.journal import Journal
from mccprobe.build.line_feed import MOST_BYTES, LineFeed
from mccprobe.explain.bundle.archive import MAX_HEADER_BYTES, unpack
from mccprobe.explain.bundle.run import open_run
from mccprobe.explain.locate.hunk_shape import diff_shape
from mccprobe.explain.locate.ir_pipeline import single_pass_texts
from mccprobe.explain.locate.ir_text import readable_lines
from mccprobe.explain.locate.mir_text import readable
from mccprobe.explain.screen.promises import without_promises
from mccprobe.journal.entry import _figure
from mccprobe.objects.isa.flow import target_index
from mccprobe.objects.isa.listing import parse_listing
from mccprobe.objects.isa.operands import parse_operand
from mccprobe.objects.isa.records import Function
from mccprobe.oracle.kernel.spec import load_kernel
from mccprobe.targets.llvm.command import split_response_text
from mccprobe.targets.llvm.findings import from_document
from mccprobe.targets.nvidia.ptxas import parse_ptxas
from mccprobe.tuning.flag_search.space import default_space
from mccprobe.tuning.flag_search.trials import read_trials
from mccprobe.tuning.lab.record import LabReportUnreadable, read_observation
from mccprobe.tuning.trace.read import read_record

from .objects import objdump_seeds, read_listing_text
from .outputs import LAB
from .reader import PARTS, lines_of
from .runs import TRIAL_LINES, finished_seeds, read_finished, search_seed
from .travels import FINDINGS

DEEP = b"[" * 100_000


def test_two_listings_of_a_set_whose_registers_nobody_told(tmp_path: Path) -> None:
    read_listing_text(objdump_seeds()[2], tmp_path)  # Hexagon: diff ended with a KeyError


def test_a_symbol_that_begins_like_an_address_is_no_address() -> None:
    assert target_index(Function("f", ()), "0xyz", {}) is None


@pytest.mark.parametrize("address", ["-10", "1_0", "0x1", "f" * 17, "9" * 5000])
def test_an_address_is_at_most_sixteen_digits(address: str) -> None:
    line = f"\tv_mov_b32_e32 v1, s0                     // {address}: 7E020200"
    listing = parse_listing(f"a.o:\tfile format elf64-amdgpu\n\n0000000000000000 <k>:\n{line}\n")
    assert not listing.functions and [one.text for one in listing.unknown] == [line]


def test_blanks_in_a_listing_cost_what_they_are_long() -> None:
    word = "/* 0x000000a000008947 */"
    long = f"R1{' ' * 50_000}, R2"
    for text, operands in ((f"{long} ;  {word}", long), ("{ R1 ; }", "{ R1"), ("", "")):
        listing = parse_listing(f".text.k:\n        /*0010*/  @!P0 MOV {text}\n")
        (one,) = listing.functions[0].instructions
        assert (one.mnemonic, one.flags, one.operands, bool(one.data)) == ("MOV", "@!P0", operands, word in text)
    listing = parse_listing(f".text.k:\n        /*0010*/  MOV R1 ; {' ' * 50_000}x ;\n")
    assert not listing.functions and len(listing.unknown) == 1


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("{ " + " " * 50_000 + "nop }", "nop"),
        ("{ " + "\0 " * 50_000 + "x", None),
        ("nop" + ":endloop0" * 20_000 + "x", None),
        ("{ nop" + " }" * 50_000, None),
        ("nop } :endloop0 :endloop1", "nop"),
    ],
)
def test_a_hexagon_packet_costs_what_it_is_long(text: str, shown: str | None) -> None:
    listing = parse_listing(f"a.o:\tfile format elf32-hexagon\n\n00000000 <k>:\n  0:\t00 c0 00 7f\t7f00c000 {text}\n")
    (one,) = listing.functions[0].instructions
    assert shown is None or one.text == shown


@pytest.mark.parametrize("piece", [" ", "\t", "\n", "a", "%", "#", "!0 "])
def test_long_lines_of_ir_cost_what_they_are_long(piece: str) -> None:
    line = f"  %2 = load i32, i32*{piece * 50_000} %0, align 4, !tbaa !3\n"
    assert readable_lines(line, [line])
    assert diff_shape(f"-{line}+  %2 = add i32 %0, 1\n")
    module = f"define void @f() {{\n{line}  ret void\n}}\n"
    assert compare_ir(module, module.replace("ret void", "unreachable")) is IrChange.INSTRUCTIONS
    assert without_promises(module, None)[0]


@pytest.mark.parametrize("text", ["9" * 5000, "R" + "9" * 5000, f"s[{'9' * 5000}:x]"])
def test_numbers_of_thousands_of_digits_are_no_numbers(text: str) -> None:
    assert parse_operand(text) == (text, ())


def test_ptxas_with_such_a_number_tells_nothing() -> None:
    (kernel,) = parse_ptxas(f"Compiling entry function 'k' for 'sm_90'\nUsed {'9' * 5000} registers\n")
    assert kernel.registers == {"vector": None}


def test_braces_in_a_pipeline_are_text() -> None:
    assert single_pass_texts("p", "function(p<a{0}b}>)", "") == ["function(p<a{0}b}>)"]


def test_a_vector_of_a_billion_zeros_is_left_as_it_is_printed() -> None:
    long = "    value:           '<999999999 x i8> zeroinitializer'\n"
    assert readable(long) == long
    assert readable("    value:           <2 x i8> zeroinitializer\n") == "    value:           <2 x i8> <i8 0, i8 0>\n"


def test_a_long_argument_of_a_response_file() -> None:
    assert split_response_text(f"'{'x' * 300_000}'\\ y z") == ["x" * 300_000 + " y", "z"]


def test_lines_that_never_end() -> None:
    feed = LineFeed()
    assert feed.feed(b"a\nb") == [b"a"] and feed.feed(b"c\n\n") == [b"bc", b""]
    chunk = b"x" * (1 << 16)
    given = [line for _ in range(40) for line in feed.feed(chunk)]
    assert [len(line) for line in given] == [MOST_BYTES] and feed.feed(b"y\nz\n") == [b"z"]


def entry(number: int, **changes: Any) -> bytes:
    lines = TRIAL_LINES.splitlines()
    lines[number] = json.dumps({**json.loads(lines[number]), **changes}).encode()
    return b"\n".join(lines) + b"\n"


LOG = json.loads(TRIAL_LINES.splitlines()[1])["log"]


@pytest.mark.parametrize(
    "data",
    [
        entry(1, seconds=10**400),
        entry(2, ordinal=float("inf")),
        entry(1, log={**LOG, "at": [1, 2, "f", True]}),
        entry(2, ran_s=[[]]),
        entry(2, ran_s="x"),
        entry(2, ran_s=float("inf")),
        entry(2, seconds=None),
        entry(1, log={**LOG, "at": [1, "P", [], True]}),
        entry(1, log={**LOG, "function": []}),
        entry(1, log={**LOG, "function_from": 1}),
        entry(1, log={**LOG, "around": "x"}),
        TRIAL_LINES + DEEP + b"\n",
    ],
)
def test_lines_of_a_journal_that_it_never_wrote(data: bytes, tmp_path: Path) -> None:
    (tmp_path / "journal.jsonl").write_bytes(data)
    with pytest.raises(JournalUnreadable, match=r"line \d is not a journal entry"):
        Journal(tmp_path / "journal.jsonl")


@pytest.mark.parametrize(
    "share",
    [
        '["x", 1]',
        f"[{'9' * 400}, 1]",
        "[nan, 1]",
        "[0.5]",
        "[0.6, 0.5]",
        "[-1, 1]",
        "[0, 2]",
    ],
)
def test_a_share_of_wrong_elements_that_is_none(share: str, tmp_path: Path) -> None:
    kernels = Path(__file__).resolve().parents[2] / "kernels"
    for name in ("subwarp-divergence", "common"):
        shutil.copytree(kernels / name, tmp_path / name)
    file = tmp_path / "subwarp-divergence/kernel.toml"
    file.write_text(re.sub(r"wrong_share = .*", f"wrong_share = {share}", file.read_text(), count=1))
    with pytest.raises(BadDataFile, match="wrong_share"):
        load_kernel(file)


def test_a_figure_too_large_for_a_number() -> None:
    with pytest.raises(ValueError, match="figures"):
        _figure({"value": 10**400, "unit": "s"})


@pytest.mark.parametrize("line", [DEEP, b"{", b"[]", b'{"t": "share", "point": []}', b"9" * 5000])
def test_lines_of_a_search_that_it_never_wrote(line: bytes, tmp_path: Path) -> None:
    (tmp_path / "t.jsonl").write_bytes(search_seed()[0] + line + b"\n")
    with pytest.raises(JournalUnreadable, match="line 4 is no trial"):
        read_trials(tmp_path / "t.jsonl", default_space("clang", None))


@pytest.mark.parametrize("change", [{"source": 1}, {"flags": [[]]}, {"flags": ["x"]}, {"inputs": [[]]}, {"args": 3}])
def test_a_finished_run_of_somebody_else(change: dict[str, Any], tmp_path: Path) -> None:
    asked, _, result = finished_seeds()[0].partition(PARTS)
    document = json.loads(asked)
    document["request"] |= change
    with pytest.raises(BadReport, match="not what mccprobe writes: request"):
        read_finished(PARTS.join((json.dumps(document).encode(), result)), tmp_path)
    (tmp_path / "run.json").write_bytes(DEEP)
    with pytest.raises(BadReport, match="not JSON"):
        open_run(tmp_path)


def test_a_finished_run_with_a_flag_of_blanks(tmp_path: Path) -> None:
    asked, _, result = finished_seeds()[0].partition(PARTS)
    document = json.loads(result) | {"flags": [" "]}
    with pytest.raises(BadReport, match="a flag without a word"):
        read_finished(PARTS.join((asked, json.dumps(document).encode())), tmp_path)


def test_recipes_nested_and_dotted_without_end(tmp_path: Path) -> None:
    path = tmp_path / "r.toml"
    for text in ("a = " + "[" * 100_000, "a" + ".a" * 100_000 + " = 1", "a = " + "9" * 5000, 'x = "\xff"'):
        path.write_bytes(text.encode("latin-1"))
        with pytest.raises(BadDataFile, match="not a recipe"):
            read_recipe(path)


def test_options_have_their_kinds() -> None:
    with pytest.raises(BadDataFile, match="reference must be str, got 5"):
        BisectOptions.from_dict({"reference": 5}, "x")
    assert BisectOptions.from_dict({"max_runs": 5, "reference": None}, "x").max_runs == 5


@pytest.mark.parametrize(
    "change",
    [
        {"findings": [{**LAB["findings"][0], "count": "3"}]},
        {"findings": [{**LAB["findings"][0], "kernel": []}]},
        {"banks": [{**LAB["banks"][0], "groups": 0}]},
        {"kernels": [{**LAB["kernels"][0], "grid": [1, 2]}]},
        {"ended": {}},
    ],
)
def test_a_report_of_the_emulator_with_other_values(change: dict[str, Any], tmp_path: Path) -> None:
    path = tmp_path / "lab.json"
    path.write_text(json.dumps({**LAB, **change}))
    with pytest.raises(LabReportUnreadable):
        read_observation(path, "c")


def test_a_trace_with_odd_modules(tmp_path: Path) -> None:
    module = {
        "event": "module",
        "pid": 1,
        "tid": 1,
        "time_ns": 5,
        "api": "a",
        "bytes": 3,
        "saved": 3,
        "path": None,
        "inside": None,
        "file": "modules/a.bin",
    }
    odd = [{**module, "bytes": []}, {**module, "path": ["x"]}]
    (tmp_path / "launches.jsonl").write_bytes(lines_of(*odd, {**module, "file": "x" * 5000}) + DEEP + b"\n")
    record = read_record(tmp_path)
    assert record.unreadable == 3 and [one.file for one in record.modules] == [None]


@pytest.mark.parametrize("change", [{"notes": [1]}, {"stale": None}, {"compile": []}, {"extra": 1}])
def test_a_probe_cache_of_another_kind_is_asked_again(change: dict[str, Any]) -> None:
    assert from_document(FINDINGS) is not None
    assert from_document({**FINDINGS, **change}) is None


@pytest.mark.parametrize("kind", ["name", "pax", "sparse"])
def test_headers_of_an_archive_that_would_fill_the_memory(kind: str, tmp_path: Path) -> None:
    size = 64 << 20
    head = tarfile.TarInfo("r/a")
    if kind == "name":
        head.type, head.size = tarfile.GNUTYPE_LONGNAME, size
    elif kind == "pax":
        head.type, head.size = tarfile.XHDTYPE, size
    else:
        head.type = tarfile.GNUTYPE_SPARSE
    block = bytearray(head.tobuf(tarfile.GNU_FORMAT))
    fill = bytes(1 << 20)
    if kind == "sparse":
        block[482] = 1  # the map goes on in the next block, and so on without end
        block[148:156] = b"%06o\0 " % tarfile.calc_chksums(bytes(block))[0]
        fill = (bytes(504) + b"\1" + bytes(7)) * 2048
    data = io.BytesIO()
    with gzip.GzipFile(fileobj=data, mode="wb", compresslevel=1) as packed:
        packed.write(bytes(block))
        for _ in range(size >> 20):
            packed.write(fill)
    archive = tmp_path / "r.tar.gz"
    archive.write_bytes(data.getvalue())
    with pytest.raises(BadReport, match=f"a header of more than {MAX_HEADER_BYTES >> 10} KiB"):
        unpack(archive, tmp_path)


def test_messages_are_bounded() -> None:
    error = InputError("x" * 1_000_000, hint="y" * 1_000_000)
    assert len(error.message) < 2100 and len(error.hint) < 2100 and "998000 characters left out" in str(error)


def test_kept_versions_that_are_no_archive(tmp_path: Path) -> None:
    from mccprobe.tuning.cycle.versions import EditStore

    from .outputs import shipped_gemm

    store = EditStore(replace(shipped_gemm(), path=tmp_path / "kernel.toml"))
    store.versions.mkdir(parents=True)
    for data in (b"", b"\xff" * 512, gzip.compress(bytes(10240)), DEEP):
        digest = hashlib.sha256(data).hexdigest()[:32]
        store.place(digest).write_bytes(data)
        with pytest.raises(BadDataFile, match="cannot be read"):
            store.load(digest)
