"""One input, one reader: a record or a MccprobeError within bounds, else a Fault that says what came instead.

The bounds end a reader that hangs or takes all memory; no test says how fast one is. Processor time is
counted and not the clock's, so that a busy machine is no fault. Whole process only: call `bound_memory` once.
"""

from __future__ import annotations

import resource
import signal
import traceback
from pathlib import Path
from types import FrameType

from mccprobe.base.errors import MccprobeError
from tests.hostile.reader import Reader

MOST_SECONDS = 10.0  # of processor time for one input; the slowest needs a hundredth
MOST_MORE_BYTES = 512 << 20  # above what the process has when it begins


class Fault(Exception):
    """key: equal for equal faults (type and place)."""

    def __init__(self, key: str, text: str) -> None:
        super().__init__(text)
        self.key = key


class OutOfTime(BaseException):
    """Not an Exception: no reader may take it for damage."""


def _alarm(signum: int, frame: FrameType | None) -> None:
    raise OutOfTime


def bound_memory() -> None:
    """Whatever is asked for above MOST_MORE_BYTES is a MemoryError from now on."""
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    hard = resource.getrlimit(resource.RLIMIT_AS)[1]
    resource.setrlimit(resource.RLIMIT_AS, (used + MOST_MORE_BYTES, hard))


def ask(reader: Reader, data: bytes, scratch: Path, *, seconds: float = MOST_SECONDS) -> str:
    """How it ended: "record", or the class of the error. Raises Fault for anything else."""
    before = signal.signal(signal.SIGVTALRM, _alarm)
    signal.setitimer(signal.ITIMER_VIRTUAL, seconds)
    try:
        reader.call(data, scratch)
    except MccprobeError as error:
        if not error.message.strip() or len(error.message) > 4000:
            told = f"a message of {len(error.message)} characters"
            raise Fault(f"{type(error).__name__} without bounds", told) from error
        return type(error).__name__
    except reader.allowed as error:
        return type(error).__name__
    except OutOfTime as error:
        raise _fault(error, "more processor time than its input can cost") from None
    except MemoryError as error:
        raise _fault(error, "more memory than its input can cost") from None
    except Exception as error:
        raise _fault(error, str(error)[:200]) from error
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)
    return "record"


def _fault(error: BaseException, text: str) -> Fault:
    own = [one for one in traceback.extract_tb(error.__traceback__) if "/mccprobe/" in one.filename]
    place = f"{own[-1].filename.rpartition('/mccprobe/')[2]}:{own[-1].lineno}" if own else "tests"
    return Fault(f"{type(error).__name__} at {place}", f"{type(error).__name__} at {place}: {text}")
