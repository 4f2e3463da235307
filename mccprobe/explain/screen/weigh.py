"""A finding is taken back to a hint where another check excludes, on this input, what it stands for.

Without this, real faults of compilers would be called faults of programs: taking a licence away from the optimiser
often keeps the guilty pass from firing. Measured on 15 real miscompiles: -fwrapv alone turns three right,
-fno-finite-loops one, -fno-strict-aliasing one, and one has a variable without a value in a loop that never runs.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from mccprobe.explain.screen.build import PlainBuilder
from mccprobe.explain.screen.origins import place_of
from mccprobe.explain.screen.sanitizers import BOTH
from mccprobe.explain.screen.types import keeps_types
from mccprobe.report.why_record import ScreenCheck, ScreenOutcome

PATTERN = "-ftrivial-auto-var-init=pattern"
STRICT_ALIASING = "-fno-strict-aliasing"
_UNSET = re.compile(r"\[(?:-Werror,)?-Wuninitialized\]$")
_UNSET_AT = re.compile(
    r"^(?P<file>.*?):(?P<line>\d+):\d+: (?:warning|error): .*?variable '(?P<variable>[^']+)'.*"
    r"\[(?:-Werror,)?-W(?:(?:sometimes-|conditional-)?uninitialized|return-stack-address)\]$",
    re.MULTILINE,
)
_PLACE = re.compile(r"^also at (.*?):(\d+)(?:, of '([^']*)')?$", re.MULTILINE)


def weighed(checks: Sequence[ScreenCheck], builder: PlainBuilder) -> list[ScreenCheck]:
    """The same checks, some findings as hints, each with the reason."""
    # one row that is not clean is enough: a kernel that no sanitizer reaches excludes nothing
    clean = {check.name for check in checks} - {c.name for c in checks if c.outcome is not ScreenOutcome.CLEAN}
    both_clean = BOTH.name in clean or {"ASan", "UBSan"} <= clean

    def excluded(check: ScreenCheck) -> str:
        if check.name == "-fwrapv" and "UBSan" in clean:
            return "UBSan saw no overflow on this input, so the switch only keeps a pass from firing"
        if check.name == "-fno-finite-loops" and "-O0" in clean:
            return "the program ends at -O0, so none of its loops is endless on this input"
        if check.name == STRICT_ALIASING and both_clean and keeps_types(builder):
            return "clang's tree of the source shows no conversion of a pointer and no union, so it cannot do that"
        if check.name == "warnings" and {"MSan", PATTERN} <= clean and _only_unset(check):
            return "MSan saw no decision on it on this input, so the place is not run"
        return ""

    return _on_one_place(
        [
            replace(check, outcome=ScreenOutcome.HINT, text=f"{check.text}; but {why}")
            if check.outcome is ScreenOutcome.FINDING and (why := excluded(check))
            else check
            for check in checks
        ]
    )


def _on_one_place(checks: list[ScreenCheck]) -> list[ScreenCheck]:
    """MSan's hint is a finding where the compiler warns of the same variable, or of one on the same line."""
    warned = [warning for check in checks if check.name == "warnings" for warning in _UNSET_AT.finditer(check.text)]

    def both(check: ScreenCheck) -> str:
        for file, line, variable in _hinted(check.text):
            for warning in warned:
                if Path(warning["file"]).name != Path(file).name:
                    continue
                names = {variable, variable.rstrip("0123456789")}
                if warning["variable"] in names if variable else warning["line"] == line:
                    return f"the compiler warns of it too: {warning.group()}"
        return ""

    return [
        replace(check, outcome=ScreenOutcome.FINDING, text=f"{why}\n{check.text}")
        if check.name == "MSan" and check.outcome is ScreenOutcome.HINT and (why := both(check))
        else check
        for check in checks
    ]


def _hinted(text: str) -> list[tuple[str, str, str]]:
    """(file, line, variable) of what MSan reports in the program's own code."""
    first = place_of(text)
    found = _PLACE.findall("\n".join([f"also {first}" if first else "", text]))
    return [(file, line, variable) for file, line, variable in found]


def _only_unset(check: ScreenCheck) -> bool:
    return all(_UNSET.search(line) for line in check.text.splitlines())
