"""One compile with LLVM's machine verifier: where a step left invalid machine code, it names the fault at once."""

from __future__ import annotations

import re
from dataclasses import dataclass

from mccprobe.base.process import RunSpec, run
from mccprobe.bisection.passes.confirm import verify_job
from mccprobe.build.job import OUTPUT, SCRATCH
from mccprobe.build.line_feed import LineFeed
from mccprobe.build.unit import Unit

_COMPLAINT = re.compile(r"\*\*\* Bad machine code: (.*?) \*\*\*")
_FIELD = re.compile(r"- (function|basic block|instruction): +(.*)")
_SLOT = re.compile(r"^\d+[Berd]?\t")  # an instruction is printed behind its slot index where there is one
_ADDRESS = re.compile(r" \(0x[0-9a-f]+\)")


@dataclass(frozen=True)
class Complaint:
    """The verifier's first complaint. after: the step behind which it came ("" where it is not told)."""

    text: str
    after: str
    function: str
    block: str
    instruction: str

    def describe(self) -> str:
        """One line for people."""
        step = f", after {self.after}" if self.after else ""
        place = f", function {self.function}" if self.function else ""
        return f"{self.text}{step}{place}" + (f": {self.instruction}" if self.instruction else "")


class _Reader:
    """Reads the verifier's text as a stream: its dump of a large function is megabytes."""

    def __init__(self) -> None:
        self._lines = LineFeed()
        self._after = ""
        self._text: str | None = None
        self._step = ""
        self._fields: dict[str, str] = {}
        self._done = False

    def feed(self, chunk: bytes) -> bytes:
        for line in self._lines.feed(chunk):
            if not self._done:
                self._line(line.decode("utf-8", "replace"))
        return b""

    def _line(self, line: str) -> None:
        found = _COMPLAINT.match(line)
        if self._text is None:
            if line.startswith("# After "):
                self._after = line.removeprefix("# After ").strip()
            elif found:
                self._text, self._step = found.group(1), self._after
            return
        field = _FIELD.match(line)
        if field:
            self._fields.setdefault(field.group(1), field.group(2).strip())
        self._done = found is not None or not line.startswith("- ")

    def complaint(self) -> Complaint | None:
        self.feed(b"\n")
        if self._text is None:
            return None
        block = _ADDRESS.sub("", self._fields.get("basic block", "")).lstrip("%").split(" ")[0]
        instruction = _SLOT.sub("", self._fields.get("instruction", ""))
        return Complaint(self._text, self._step, self._fields.get("function", ""), block, instruction)


def first_complaint(unit: Unit, limit: int) -> Complaint | None:
    """Compile at this limit with the verifier on; its first complaint, None if it has none."""
    job = verify_job(unit, limit)
    reader = _Reader()
    with unit.ledger.run.scratch("verify") as scratch:
        argv = [argument.replace(OUTPUT, str(scratch / "object")) for argument in job.argv]
        env = {name: value.replace(SCRATCH, str(scratch)) for name, value in job.env.items()}
        run(RunSpec(argv, cwd=job.cwd, env=env, timeout_s=job.timeout_s, on_stderr=reader.feed))
    return reader.complaint()
