"""The recorder on real programs: what it records, and that the program does not notice."""

from __future__ import annotations

import json
import os
import random
import re
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from mccprobe.base.errors import CannotTrace, CompilerNotFound
from mccprobe.inspection.resources import ReportRequest, report_on
from mccprobe.objects.binary.elf import STT_FUNC, iter_symbols, parse_elf
from mccprobe.objects.binary.read import read_images
from mccprobe.tuning.trace.library import recorder_library
from mccprobe.tuning.trace.read import Record, read_record
from mccprobe.tuning.trace.run import TraceRequest, require_traceable, trace

pytestmark = pytest.mark.toolchain("clang-14")
COMMAND = """
import sys
from mccprobe import cli
cli.COMMANDS.setdefault("trace", ("mccprobe.cli.trace_cmd", "trace", ""))
sys.exit(cli.main(sys.argv[1:]))
"""
NAME = '_Z4gemmIL"\xe4\\'  # as app.c registers it


@pytest.fixture
def cache(root: Path) -> Path:
    return root / ".test-cache"


@pytest.fixture
def under(cache: Path, tmp_path: Path) -> Callable[..., tuple[subprocess.CompletedProcess[bytes], Record]]:
    """The program with the library preloaded by hand, and what was recorded."""

    def run(argv: Sequence[str | Path], **more: Any) -> tuple[subprocess.CompletedProcess[bytes], Record]:
        folder = tmp_path / "record"
        (folder / "modules").mkdir(parents=True)
        env = {**os.environ, "LD_PRELOAD": str(recorder_library(cache)), "MCCPROBE_TRACE_DIR": str(folder)}
        done = subprocess.run(list(map(str, argv)), capture_output=True, env=env, timeout=120, check=False, **more)
        return done, read_record(folder)

    return run


def plain(argv: Sequence[str | Path], **more: Any) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(list(map(str, argv)), capture_output=True, timeout=120, check=False, **more)


def test_a_program_of_the_stand_in(sim_programs: Any, cache: Path, tmp_path: Path) -> None:
    bare = plain([sim_programs.shared])
    argv = [sys.executable, "-c", COMMAND, "trace", "-o", str(tmp_path / "t"), "--", str(sim_programs.shared)]
    traced = plain(argv)
    assert (traced.returncode, traced.stdout) == (bare.returncode, bare.stdout) == (7, b"sum 30720 error 9\n")
    assert b"[sim] launches: 7, kernels: 2, modules: 1, processes: 1; the program ended with 7" in traced.stderr
    assert b"emulation" in traced.stderr
    record = read_record(tmp_path / "t")
    uses = [
        (one.kernel, one.grid, one.block, one.dynamic_shared_bytes, one.launches, one.refused)
        for one in record.kernels()
    ]
    saxpy = "_Z5saxpyfPKfPfi"
    assert uses == [
        ("_Z4fillILi3EEvPf", (8, 1, 1), (128, 1, 1), 0, 1, 0),
        (saxpy, (4, 2, 1), (128, 1, 1), 512, 5, 0),
        (saxpy, (1, 1, 1), (4096, 1, 1), 0, 1, 1),
    ]
    (module,) = record.modules
    saved = tmp_path / "t" / str(module.file)
    assert saved.read_bytes() in sim_programs.shared.read_bytes(), "the very bundle that the program carries"
    kernels = {one.kernel.name: one for one in report_on(ReportRequest([saved])).kernels}
    assert set(kernels) == {"_Z4fillILi3EEvPf", saxpy}
    assert kernels["_Z4fillILi3EEvPf"].shared.total == 12
    assert kernels[saxpy].heading.startswith("SIMULATED")


def test_json_takes_standard_output(sim_programs: Any, tmp_path: Path, root: Path) -> None:
    schema = json.loads((root / "reports" / "trace.schema.json").read_text(encoding="utf-8"))
    folder = tmp_path / "t"
    argv = [sys.executable, "-c", COMMAND, "trace", "--json", "-o", str(folder), "--", str(sim_programs.shared)]
    done = plain(argv)
    document = json.loads(done.stdout)
    jsonschema.validate(document, schema)
    assert (document["simulated"], document["launches"], document["exit_status"], done.returncode) == (True, 7, 7, 7)
    assert (folder / "stdout").read_bytes() == b"sum 30720 error 9\n"
    again = plain(argv)
    assert again.returncode == 2
    jsonschema.validate(json.loads(again.stdout), schema)


def test_the_runtime_inside_the_program_is_told(sim_programs: Any) -> None:
    with pytest.raises(CannotTrace, match=r"libmusart\.a") as caught:
        require_traceable(sim_programs.archive)
    assert "--sim-link" in caught.value.hint
    require_traceable(sim_programs.shared)


def test_a_static_program_is_told(programs: Any) -> None:
    assert plain([programs.static]).returncode == 0
    with pytest.raises(CannotTrace, match="linked statically"):
        require_traceable(programs.static)


def test_no_program(tmp_path: Path, cache: Path) -> None:
    with pytest.raises(CompilerNotFound):
        trace(TraceRequest(["no-such-program"], tmp_path / "t", cache))


def test_result_streams_and_errno_stay(programs: Any, under: Any) -> None:
    argv = [programs.app, "launch"]
    bare = plain(argv, input=b"a line\n")
    done, record = under(argv, input=b"a line\n")
    assert (done.returncode, done.stdout, done.stderr) == (bare.returncode, bare.stdout, bare.stderr)
    assert done.returncode == 42
    assert done.stdout == b"0 errno 77, 9, calls 2\nread a line\n"
    own = [one for one in record.launches if one.inside is None]
    assert [(one.api, one.kernel, one.grid, one.block, one.result) for one in own] == [
        ("musaLaunchKernel", NAME, (3, 2, 1), (256, 1, 1), 0),
        ("musaLaunchKernel", NAME, (3, 2, 1), (2048, 1, 1), 9),
    ]
    nested = [one for one in record.launches if one.inside is not None]
    assert [(one.api, one.inside, one.block, one.result) for one in nested] == [
        ("muLaunchKernel", "musaLaunchKernel", (256, 1, 1), 0),
        ("muLaunchKernel", "musaLaunchKernel", (2048, 1, 1), 1),
    ]
    assert [one.launches for one in record.kernels()] == [1, 1], "the runtime's call of the driver counts once"


def test_module_bytes(programs: Any, sim_programs: Any, under: Any, tmp_path: Path) -> None:
    """An ELF, a bundle and a damaged one, each from memory that ends with the file."""
    elf = tmp_path / "image.so"
    elf.write_bytes(Path(programs.plugin).read_bytes())
    bundle = tmp_path / "bundle"
    bundle.write_bytes(next(_bundles(sim_programs.shared)))
    cut = tmp_path / "cut"
    cut.write_bytes(elf.read_bytes()[:3000])
    argv = [programs.app, "images", elf, bundle, cut]
    bare = plain(argv)
    done, record = under(argv)
    assert (done.returncode, done.stdout) == (bare.returncode, bare.stdout) == (0, b"000 1 0\n")
    saved = [tmp_path / "record" / one.file for one in record.modules if one.file]
    assert [one.read_bytes() for one in saved] == [elf.read_bytes(), bundle.read_bytes()]
    assert read_images(saved[1])
    assert [one.path for one in record.modules if one.path] == ['/no/such "module".mubin']
    unknown = [one for one in record.modules if not one.file and not one.path]
    assert sum(one.loads for one in unknown) == 3, "the damaged one, no image, and a text"
    names = [
        (one.api, one.kernel, one.grid, one.block, one.dynamic_shared_bytes, one.result)
        for one in record.launches
        if one.inside is None
    ]
    assert names == [
        ("muLaunchKernel", "by_name", (1, 2, 3), (4, 5, 6), 7, 0),
        ("muLaunchCooperativeKernel", "by_name", (8, 1, 1), (4096, 1, 1), 0, 1),
    ]


def _bundles(program: Path) -> Any:
    data = Path(program).read_bytes()
    from mccprobe.objects.binary.bundle import BINARY, parse_bundle

    for found in BINARY.finditer(data):
        bundle = parse_bundle(data, found.start())
        yield data[bundle.start : bundle.end]


def test_damaged_images_never_end_the_program(programs: Any, sim_programs: Any, under: Any, tmp_path: Path) -> None:
    """Bytes changed at random in headers, at the edge of memory: wrong sizes lead nowhere."""
    dice = random.Random(6)
    good = [Path(programs.plugin).read_bytes(), next(_bundles(sim_programs.shared))]
    files = []
    for number in range(80):
        data = bytearray(good[number % 2])
        for _ in range(dice.randint(1, 6)):
            data[dice.randrange(4, 120)] = dice.choice([0, 1, 0x7F, 0x80, 0xFF, dice.randrange(256)])
        if dice.random() < 0.3:
            del data[dice.randrange(len(data)) :]
        files.append(tmp_path / f"image-{number}")
        files[-1].write_bytes(data)
    argv = [programs.app, "images", *files]
    bare = plain(argv)
    done, record = under(argv)
    assert (done.returncode, done.stdout) == (bare.returncode, bare.stdout) == (0, b"0" * 80 + b" 1 0\n")
    assert record.unreadable == 0
    contents = {file.read_bytes() for file in files}
    for module in record.modules:
        if module.file:
            saved = (tmp_path / "record" / module.file).read_bytes()
            assert any(content.startswith(saved) for content in contents), "never more than the image, or other bytes"


def test_the_page_names_every_function(root: Path, cache: Path) -> None:
    elf = parse_elf(recorder_library(cache).read_bytes())
    exported = {one.name for one in iter_symbols(elf) if one.kind == STT_FUNC and not one.is_local and one.section}
    page = (root / "docs" / "howto" / "tracing.md").read_text(encoding="utf-8")
    rows = [line for line in page.splitlines() if line.startswith("| ")]
    named = set(re.findall(r"`(\w+)`", "\n".join(row.partition("|")[2].partition("|")[2] for row in rows)))
    hooks = {name for name in exported if name.lstrip("_").startswith(("mu", "cuda"))}
    assert hooks == named
    assert len(hooks) == 15


def test_a_cache_that_the_loader_cannot_name(tmp_path: Path) -> None:
    with pytest.raises(CannotTrace, match="blank or a colon"):
        trace(TraceRequest(["true"], tmp_path / "t", tmp_path / "my cache"))


@pytest.mark.parametrize("mode", ["threads", "fork"])
def test_threads_and_forks(mode: str, programs: Any, under: Any) -> None:
    done, record = under([programs.app, mode])
    assert done.returncode == 0
    assert record.unreadable == 0
    own = [one for one in record.launches if one.inside is None]
    by_thread = Counter((one.pid, one.tid) for one in own)
    children = [50] * 4 if mode == "fork" else []
    assert sorted(by_thread.values()) == sorted([200] * 8 + children)
    assert len({(one.pid, one.order) for one in record.launches}) == len(record.launches)
    assert len(record.processes) == 1 + len(children)
    assert {one.kernel for one in own} == {NAME}


def test_a_program_that_changes_everything(programs: Any, under: Any) -> None:
    """It clears its environment, changes its directory, closes all files; its next descriptor is the same."""
    bare = plain([programs.app, "away"])
    done, record = under([programs.app, "away"])
    assert (done.returncode, done.stdout) == (bare.returncode, bare.stdout) == (0, b"next descriptor 3\n")
    assert [one.block[0] for one in record.launches if one.inside is None] == [1, 2, 3]


def test_a_runtime_outside_the_global_scope(programs: Any, under: Any) -> None:
    bare = plain([programs.loader, programs.plugin])
    done, record = under([programs.loader, programs.plugin])
    assert (done.returncode, done.stdout) == (bare.returncode, bare.stdout) == (0, b"2\n")
    nameless, named = [one for one in record.launches if one.inside is None]
    assert (named.api, named.symbol, named.grid) == ("musaLaunchKernel", "launch_here", (7, 1, 1))
    assert re.fullmatch(r"plugin\.so\+0x[0-9a-f]+", nameless.symbol or "")


def test_a_folder_that_is_gone_is_no_trouble(programs: Any, cache: Path, tmp_path: Path) -> None:
    env = {**os.environ, "LD_PRELOAD": str(recorder_library(cache)), "MCCPROBE_TRACE_DIR": str(tmp_path / "gone")}
    bare = plain([programs.app, "launch"])
    done = plain([programs.app, "launch"], env=env)
    assert (done.returncode, done.stdout, done.stderr) == (bare.returncode, bare.stdout, bare.stderr)


def test_output_in_a_file_that_others_write_too(programs: Any, tmp_path: Path) -> None:
    """`(echo before; mccprobe trace -- app; echo after) > FILE`: nobody writes over anybody."""
    out = tmp_path / "out"
    with out.open("wb") as file:
        file.write(b"before\n")
        file.flush()
        argv = [sys.executable, "-c", COMMAND, "-q", "trace", "-o", str(tmp_path / "t"), "--", programs.app, "launch"]
        done = subprocess.run(
            list(map(str, argv)),
            stdin=subprocess.DEVNULL,
            stdout=file,
            stderr=subprocess.STDOUT,
            check=False,
            timeout=120,
        )
        os.lseek(file.fileno(), 0, os.SEEK_CUR)
        os.write(file.fileno(), b"after\n")
    assert done.returncode == 42
    text = out.read_bytes()
    assert text.startswith(b"before\n")
    assert text.endswith(b"after\n")
    assert b"0 errno 77, 9, calls 2\n" in text
    assert b"to stderr\n" in text


def test_status_and_warnings(programs: Any, cache: Path, tmp_path: Path) -> None:
    killed = trace(TraceRequest([str(programs.app), "signal"], tmp_path / "a", cache))
    assert killed.status == 128 + 9
    idle = trace(TraceRequest(["true"], tmp_path / "b", cache))
    assert idle.status == 0
    assert [warning[:20] for warning in idle.warnings] == ["nothing was recorded"]
    late = trace(TraceRequest(["sleep", "60"], tmp_path / "c", cache, timeout_s=0.2))
    assert late.result.timed_out
    assert any("--timeout" in warning for warning in late.warnings)


def test_children_of_a_script_are_recorded(programs: Any, cache: Path, tmp_path: Path) -> None:
    script = f"'{programs.app}' launch; '{programs.app}' launch; exit 5"
    done = trace(TraceRequest(["sh", "-c", script], tmp_path / "t", cache, keep_output=True))
    assert done.status == 5
    assert len(done.record.processes) == 2
    assert not done.simulated


def test_the_library_is_built_once(tmp_path: Path) -> None:
    first = recorder_library(tmp_path)
    before = first.stat()
    assert recorder_library(tmp_path) == first
    assert first.stat().st_mtime_ns == before.st_mtime_ns
    assert [path.name for path in first.parent.iterdir()] == [first.name]


@pytest.mark.parametrize("place", ["a=b", "c=d/with blank", "line\nbreak"])
def test_a_program_of_any_name(place: str, programs: Any, cache: Path, tmp_path: Path) -> None:
    """env(1) would take a path with an equals sign for a variable."""
    program = tmp_path / place / "=app"
    program.parent.mkdir(parents=True)
    program.symlink_to(programs.app)
    traced = trace(TraceRequest([str(program), "launch"], tmp_path / "record", cache))
    assert traced.status == 42
    assert [launch.block for launch in traced.record.launches if launch.inside is None] == [(256, 1, 1), (2048, 1, 1)]


def test_what_the_program_leaves_running_goes_on(programs: Any, cache: Path, tmp_path: Path) -> None:
    """As after any command of a shell: a child that outlives it is recorded, not ended."""
    done, go = tmp_path / "done", tmp_path / "go"
    traced = trace(TraceRequest([str(programs.app), "late", str(done), str(go)], tmp_path / "record", cache))
    assert traced.status == 0
    assert not done.exists()
    go.touch()
    for _ in range(3000):  # ends a test whose child was ended; measures nothing
        if done.exists():
            break
        time.sleep(0.01)
    blocks = [launch.block[0] for launch in read_record(tmp_path / "record").launches if launch.inside is None]
    assert sorted(blocks) == [1, 42]
