"""process.run: whatever a child does, it is ended whole, read within bounds, and nobody else is touched."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from mccprobe.base import process
from mccprobe.base.errors import Interrupted
from mccprobe.base.process import RunResult, RunSpec, run

LONG_S = 60.0  # far above what any of these children takes; a wait for it shows as a hanging test


def python(program: str, *args: str, **settings: object) -> RunResult:
    return run(RunSpec([sys.executable, "-c", textwrap.dedent(program), *args], **settings))  # type: ignore[arg-type]


def alive(pid: int) -> bool:
    """True while the process runs; a zombie that waits for init counts as ended."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state not in "ZX"


def ended(pid: int) -> bool:
    for _ in range(500):
        if not alive(pid):
            return True
        time.sleep(0.01)
    return False


def zombies() -> list[int]:
    """Our children that nobody has reaped."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            state, parent = (folder / "stat").read_text().rpartition(")")[2].split()[:2]
            if state == "Z" and int(parent) == os.getpid():
                found.append(int(folder.name))
    return found


@pytest.fixture(autouse=True)
def _no_zombie_and_starts_allowed() -> Iterator[None]:
    yield
    process.allow_starts()
    assert zombies() == []


@pytest.fixture
def bystander() -> Iterator[subprocess.Popen[bytes]]:
    """A process of the caller's that has nothing to do with any run."""
    other = subprocess.Popen(["sleep", "300"])
    yield other
    assert other.poll() is None, "another process of the caller was ended"
    other.kill()
    other.wait()


# --- how it ended -------------------------------------------------------------------------------


def test_output_and_exit_status() -> None:
    result = python("import sys; print('out'); print('err', file=sys.stderr); sys.exit(3)")
    assert (result.stdout, result.stderr, result.returncode) == (b"out\n", b"err\n", 3)
    assert (result.stdout_bytes, result.stderr_bytes) == (4, 4)
    assert not result.ok and not result.timed_out and result.describe() == "exit 3"


def test_standard_input_is_empty() -> None:
    assert python("import sys; print(repr(sys.stdin.read()))").stdout == b"''\n"


@pytest.mark.parametrize(("number", "told"), [(signal.SIGSEGV, "signal SIGSEGV"), (signal.SIGKILL, "signal SIGKILL")])
def test_exit_by_signal(number: signal.Signals, told: str) -> None:
    result = python(f"import os; os.kill(os.getpid(), {int(number)})")
    assert (result.returncode, result.describe(), result.ok) == (-number, told, False)


def test_a_signal_without_a_name() -> None:
    assert RunResult(-63, b"", b"", 0.0).describe() == "signal 63"


@pytest.mark.parametrize(
    ("argv", "told"),
    [
        (["mccprobe-no-such-program"], "mccprobe-no-such-program: No such file or directory"),
        (["/"], "/: Permission denied"),
        (["/etc/passwd"], "/etc/passwd: Permission denied"),
        (["true", "nul\0byte"], "embedded null byte"),
        (["true", "\ud800"], "can't encode"),
    ],
)
def test_what_cannot_be_started(argv: list[str], told: str) -> None:
    result = run(RunSpec(argv))
    assert result.returncode is None and not result.ok
    assert told in result.describe()


def test_a_missing_working_directory_is_not_blamed_on_the_program(tmp_path: Path) -> None:
    result = run(RunSpec(["true"], cwd=tmp_path / "gone"))
    assert result.describe() == f"could not be started: {tmp_path / 'gone'}: No such file or directory"


def test_odd_argument_bytes_arrive_as_they_are() -> None:
    given = ["", " ", "a b", "'\"\\$`", "-n", "*", "\n", "\t\x01", "\udcff\udcfe", "ä漢"]
    shown = python("import sys, os; sys.stdout.buffer.write(b'|'.join(map(os.fsencode, sys.argv[1:])))", *given)
    assert shown.stdout == b"|".join(map(os.fsencode, given))


def test_environment_is_the_one_given() -> None:
    result = run(RunSpec(["/usr/bin/env"], env={"ONLY": "this"}))
    given, _, mark = result.stdout.partition(b"\n")
    assert given == b"ONLY=this" and mark.startswith(b"MCCPROBE_CHILD="), "and the mark by which it is found again"


# --- time limits and what is left behind --------------------------------------------------------


FAMILY = """
import os, signal, subprocess, sys, time
ignore = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(300)"
sleep = "import time; time.sleep(300)"
child = subprocess.Popen([sys.executable, "-c", ignore if sys.argv[1] == "stubborn" else sleep])
if sys.argv[1] == "stubborn":
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
print(os.getpid(), child.pid, flush=True)
time.sleep(300)
"""


def after_its_first_line(program: str, *args: str) -> RunResult:
    """Run it with a time limit that leaves room for a line of output, however busy the machine is."""
    for limit in (1.5, 6.0, 24.0, 96.0):
        result = python(program, *args, timeout_s=limit)
        if result.stdout or not result.timed_out:
            break
    return result


@pytest.mark.parametrize("manner", ["mild", "stubborn"])
def test_a_time_limit_ends_the_whole_group(manner: str, bystander: subprocess.Popen[bytes]) -> None:
    result = after_its_first_line(FAMILY, manner)
    child, grandchild = map(int, result.stdout.split())
    assert result.timed_out and not result.ok and result.describe().startswith("timeout after ")
    assert result.returncode == (-signal.SIGKILL if manner == "stubborn" else -signal.SIGTERM)
    assert ended(child) and ended(grandchild)


def test_a_grandchild_that_outlives_the_child_is_ended(bystander: subprocess.Popen[bytes]) -> None:
    """It holds both pipes; the run must neither wait for it nor leave it."""
    program = """
    import subprocess, sys
    child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(300)"])
    print(child.pid, flush=True)
    """
    result = python(program, timeout_s=LONG_S)
    assert result.ok and not result.timed_out, result
    assert ended(int(result.stdout))


ESCAPE = """
import subprocess, sys, time
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(300)"], start_new_session=True)
print(child.pid, flush=True)
"""


def test_a_grandchild_that_left_the_group_is_ended_with_a_child_that_had_to_be() -> None:
    result = after_its_first_line(ESCAPE + "time.sleep(300)")
    assert result.timed_out and ended(int(result.stdout))


def test_a_grandchild_that_left_the_group_is_let_be_where_the_child_ended_by_itself() -> None:
    """Servers of compile caches are started so."""
    result = python(ESCAPE, timeout_s=LONG_S)
    server = int(result.stdout)
    assert result.ok and alive(server)
    os.kill(server, signal.SIGKILL)


GUARDED = """
import os, sys, tempfile, threading
from pathlib import Path
from mccprobe.base import process
inner = "import os, subprocess, sys, time;" \
    "a = subprocess.Popen(['sleep', '300'], start_new_session=True); b = subprocess.Popen(['sleep', '300']);" \
    "Path = __import__('pathlib').Path; Path(sys.argv[1]).write_text(f'{os.getpid()} {a.pid} {b.pid}'); time.sleep(300)"
with process.guarded():
    Path(tempfile.mkdtemp(), "file").write_text("left")
    print(tempfile.gettempdir(), flush=True)
    if sys.argv[2] == "killed":
        process.run(process.RunSpec([sys.executable, "-c", inner, sys.argv[1]]))
print(tempfile.gettempdir(), flush=True)
"""


def test_a_guarded_process_that_is_killed_leaves_nothing(tmp_path: Path) -> None:
    told, place = tmp_path / "told", tmp_path / "tmp"
    place.mkdir()
    ours = subprocess.Popen(
        [sys.executable, "-c", GUARDED, str(told), "killed"],
        stdout=subprocess.PIPE,
        env={**os.environ, "TMPDIR": str(place)},
    )
    while not (told.is_file() and told.read_text().count(" ") == 2):
        assert ours.poll() is None
        time.sleep(0.01)
    ours.kill()
    ours.communicate()
    assert all(ended(int(pid)) for pid in told.read_text().split())
    deadline = time.monotonic() + LONG_S
    while any(place.iterdir()) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert not any(place.iterdir()), "temporary files"


OUTSIDE = """
import os, signal, sys
from pathlib import Path
from mccprobe.base import process
with process.guarded(), process.folder_outside(sys.argv[1], "mccprobe-outside-") as folder:
    Path(folder, "file").write_text("left")
    print(folder, flush=True)
    if sys.argv[2] == "killed":
        os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.parametrize("how", ["killed", "ends"])
def test_a_folder_outside_of_the_usual_place_does_not_stay(how: str, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    ran = subprocess.run(
        [sys.executable, "-c", OUTSIDE, str(elsewhere), how],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "TMPDIR": str(tmp_path)},
    )
    assert ran.returncode == (-9 if how == "killed" else 0), ran
    assert Path(ran.stdout.strip()).parent == elsewhere
    deadline = time.monotonic() + LONG_S
    while any(elsewhere.iterdir()) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert not any(elsewhere.iterdir())


def test_a_guarded_process_that_ends_takes_its_guard_with_it(tmp_path: Path) -> None:
    place = tmp_path / "tmp"
    place.mkdir()
    ran = subprocess.run(
        [sys.executable, "-c", GUARDED, "-", "ends"],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "TMPDIR": str(place)},
    )
    inside, outside = ran.stdout.split()
    assert Path(inside).parent == Path(outside) == place and not any(place.iterdir())


def test_a_process_with_threads_is_not_split() -> None:
    before = process.tempfile.tempdir
    stop = threading.Event()
    thread = threading.Thread(target=stop.wait)
    thread.start()
    try:
        with process.guarded():
            assert process.tempfile.tempdir == before
    finally:
        stop.set()
        thread.join()


def test_a_grandchild_that_floods_the_pipe_does_not_hold_the_run() -> None:
    program = """
    import subprocess, sys
    print("answer", flush=True)
    subprocess.Popen(["yes"])
    """
    result = python(program, timeout_s=LONG_S, capture_bytes=100)
    assert result.ok and result.stdout.startswith(b"answer\n"), result


def test_a_child_that_closes_its_pipes_is_waited_for() -> None:
    result = python("import os, time; os.close(1); os.close(2); time.sleep(0.3); os._exit(7)", timeout_s=LONG_S)
    assert (result.returncode, result.timed_out) == (7, False)


def test_a_child_that_closes_its_pipes_still_has_a_time_limit() -> None:
    result = python("import os, time; os.close(1); os.close(2); time.sleep(300)", timeout_s=0.5)
    assert result.timed_out and result.returncode == -signal.SIGTERM


def test_what_was_written_before_the_end_is_read_whole() -> None:
    """More than one pipe holds at once, by a child that has ended when the reader gets to it slowly."""

    def slow(chunk: bytes) -> bytes:
        time.sleep(0.05)
        return chunk

    program = "import os; os.write(2, b'x' * (1 << 20)); os.write(2, b'END')"
    result = python(program, on_stderr=slow, capture_bytes=2 << 20, timeout_s=LONG_S)
    assert result.stderr_bytes == (1 << 20) + 3 and result.stderr.endswith(b"END")


# --- bounded output -----------------------------------------------------------------------------


def test_what_exceeds_the_capture_is_counted_and_dropped() -> None:
    result = python("print('x' * 99)", capture_bytes=10)
    assert (result.stdout, result.stdout_bytes) == (b"x" * 10, 100)


def test_on_stderr_filters_every_chunk() -> None:
    seen = []

    def keep_a(chunk: bytes) -> bytes:
        seen.append(chunk)
        return chunk.replace(b"b", b"")

    result = python("import sys; sys.stderr.write('abab'); print('abab')", on_stderr=keep_a)
    assert (result.stderr, result.stdout, result.stderr_bytes) == (b"aa", b"abab\n", 4)
    assert b"".join(seen) == b"abab"


def test_a_gigabyte_on_standard_error_does_not_stay_in_memory() -> None:
    """In an interpreter of its own: the largest resident size of this one says nothing."""
    program = f"""
    import resource, sys
    from mccprobe.base.process import RunSpec, run
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    flood = "import os; b = b'x' * (1 << 20)\\nfor _ in range(1024): os.write(2, b)"
    result = run(RunSpec([sys.executable, "-c", flood], timeout_s={10 * LONG_S}))
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    print(result.returncode, result.stderr_bytes, len(result.stderr), grown)
    """
    ran = subprocess.run([sys.executable, "-c", textwrap.dedent(program)], capture_output=True, text=True, check=True)
    code, seen, kept, grown_kib = map(int, ran.stdout.split())
    assert (code, seen, kept) == (0, 1 << 30, process.DEFAULT_CAPTURE_BYTES)
    assert grown_kib < 64 << 10, f"{grown_kib} KiB"


# --- being stopped ------------------------------------------------------------------------------


@pytest.mark.parametrize("manner", ["mild", "stubborn"])
def test_stop_all_ends_running_children_and_refuses_new_ones(
    manner: str, tmp_path: Path, bystander: subprocess.Popen[bytes]
) -> None:
    told = tmp_path / "pids"
    program = FAMILY.replace(
        "print(os.getpid(), child.pid, flush=True)",
        f"open({str(told)!r}, 'w').write(f'{{os.getpid()}} {{child.pid}}\\n')",
    )
    raised: list[BaseException] = []

    def work() -> None:
        try:
            python(program, manner, timeout_s=LONG_S)
        except BaseException as error:
            raised.append(error)

    thread = threading.Thread(target=work)
    thread.start()
    while not (told.exists() and told.read_text().endswith("\n")):
        time.sleep(0.01)
    process.stop_all()
    thread.join(LONG_S / 2)
    assert not thread.is_alive(), "a child that ignores SIGTERM was waited for"
    assert [type(error) for error in raised] == [Interrupted], "its exit status must not pass for an answer"
    assert all(ended(int(pid)) for pid in told.read_text().split())
    marker = tmp_path / "started"
    with pytest.raises(Interrupted):
        run(RunSpec(["touch", str(marker)]))
    assert not marker.exists()
    process.allow_starts()
    assert run(RunSpec(["touch", str(marker)])).ok and marker.exists()


def test_an_interrupt_ends_the_main_threads_child_first(tmp_path: Path) -> None:
    told = tmp_path / "pids"
    program = f"""
    import signal, sys
    from mccprobe.base import process
    signal.signal(signal.SIGTERM, process.on_interrupt)
    child = "import os, time; open({str(told)!r}, 'w').write(f'{{os.getpid()}}\\\\n'); time.sleep(300)"
    try:
        process.run(process.RunSpec([sys.executable, "-c", child]))
    except KeyboardInterrupt:
        print("interrupted")
    """
    ours = subprocess.Popen([sys.executable, "-c", textwrap.dedent(program)], stdout=subprocess.PIPE, text=True)
    while not (told.exists() and told.read_text().endswith("\n")):
        assert ours.poll() is None
        time.sleep(0.01)
    ours.terminate()
    assert ours.communicate(timeout=LONG_S)[0] == "interrupted\n"
    assert ended(int(told.read_text()))


def test_interrupts_at_any_moment_leave_no_child(tmp_path: Path) -> None:
    """Signals rain down while children are started; each child carries a mark by which it is found."""
    program = """
    import itertools, os, signal, sys
    from mccprobe.base import process
    armed = False

    def interrupt(number, frame):  # one at a time: what falls into `except` would end this program, not a run
        global armed
        if armed:
            armed = False
            process.await_interrupt()  # each is the first one here
            process.on_interrupt(number, frame)

    signal.signal(signal.SIGINT, interrupt)
    caught = 0
    print("ready", flush=True)
    while caught < 40:
        try:
            armed = True
            for _ in itertools.count():
                process.run(process.RunSpec(["sleep", sys.argv[1]]))
        except KeyboardInterrupt:
            caught += 1
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    print("done", flush=True)
    """
    mark = f"300.0{os.getpid()}{id(tmp_path)}"
    ours = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(program), mark], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert ours.stdout is not None and ours.stdout.readline() == b"ready\n"
    delay = 0.0005
    while ours.poll() is None:
        with contextlib.suppress(ProcessLookupError):
            ours.send_signal(signal.SIGINT)
        time.sleep(delay)
        delay = delay * 1.3 if delay < 0.1 else 0.0005
    out, err = ours.communicate()
    assert out == b"done\n", err.decode()
    left = [
        path.parent.name
        for path in Path("/proc").glob("[0-9]*/cmdline")
        if re.search(mark, _read(path)) and alive(int(path.parent.name))
    ]
    assert left == []


def _read(path: Path) -> str:
    try:
        return path.read_text(errors="replace")
    except OSError:
        return ""
