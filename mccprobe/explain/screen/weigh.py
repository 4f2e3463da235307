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

from mccprobe.base.process import RunSpec, run
from mccprobe.explain.screen.build import PlainBuilder, plain_options
from mccprobe.report.why_record import ScreenCheck, ScreenOutcome
from mccprobe.targets.llvm.locate import QUERY_TIMEOUT_S

PATTERN = "-ftrivial-auto-var-init=pattern"
_UNSET = re.compile(r"\[(?:-Werror,)?-Wuninitialized\]$")
# Without one of these no C program gets at memory as another type than it has: a conversion of a pointer, by clang's
# names of them in its tree; a union or assembly, in what the preprocessor leaves of the user's own text.
# A call without a prototype and an alias are conversions that the tree does not show.
_CONVERSION = re.compile(
    r"<(?:BitCast|LValueBitCast|LValueToRValueBitCast|IntegralToPointer)>|\b(?:VAArgExpr|AliasAttr|WeakRefAttr) "
    r"|\(\*\)\(\)' <FunctionToPointerDecay>"
)
_OTHER_TYPE = re.compile(r"\bunion\b|\b(?:__)?asm(?:__)?\b")
_MARKER = re.compile(r'# \d+ "(?:\\.|[^"\\])*"((?: \d)*)')  # flag 3: a system header
_LOOKED_AT_BYTES = 64 << 20  # of a printed tree or a preprocessed text; more is not looked through
_STRICT = tuple(
    f"-Werror={name}"
    for name in ("incompatible-pointer-types", "int-conversion", "format", "implicit-function-declaration")
)


def weighed(checks: Sequence[ScreenCheck], builder: PlainBuilder) -> list[ScreenCheck]:
    """The same checks, some findings as hints, each with the reason."""
    # one row that is not clean is enough: a kernel that no sanitizer reaches excludes nothing
    clean = {check.name for check in checks} - {c.name for c in checks if c.outcome is not ScreenOutcome.CLEAN}

    def excluded(check: ScreenCheck) -> str:
        if check.name == "-fwrapv" and "UBSan" in clean:
            return "UBSan saw no overflow on this input, so the switch only keeps a pass from firing"
        if check.name == "-fno-finite-loops" and "-O0" in clean:
            return "the program ends at -O0, so none of its loops is endless on this input"
        if check.name == "-fno-strict-aliasing" and {"ASan", "UBSan"} <= clean and keeps_types(builder):
            return "clang's tree of the source shows no conversion of a pointer and no union, so it cannot do that"
        if check.name == "warnings" and {"MSan", PATTERN} <= clean and _only_unset(check):
            return "MSan saw no decision on it on this input, so the place is not run"
        return ""

    return [
        replace(check, outcome=ScreenOutcome.HINT, text=f"{check.text}; but {why}")
        if check.outcome is ScreenOutcome.FINDING and (why := excluded(check))
        else check
        for check in checks
    ]


def _only_unset(check: ScreenCheck) -> bool:
    return all(_UNSET.search(line) for line in check.text.splitlines())


def keeps_types(builder: PlainBuilder) -> bool:
    """True if the source of the program cannot access memory as another type; C alone, and only what is all there.

    Of two sources one may declare the other's objects with another type, which no tree shows.
    """
    if len(builder.sources) != 1 or any(Path(name).suffix not in (".c", ".i") for name in builder.sources):
        return False
    [source] = builder.sources
    options = plain_options(builder.workspace.request.args)
    tree = _printed(builder, *options, "-fsyntax-only", *_STRICT, "-Xclang", "-ast-dump", source)
    if tree is None or _CONVERSION.search(tree):
        return False
    text = _printed(builder, *options, "-E", source)
    return text is not None and not _OTHER_TYPE.search(own_text(text))


def _printed(builder: PlainBuilder, *args: str) -> str | None:
    """All that the compiler prints, None if it fails or prints too much."""
    result = run(RunSpec([*builder.driver, *args], timeout_s=QUERY_TIMEOUT_S, capture_bytes=_LOOKED_AT_BYTES))
    return result.stdout_text if result.ok and result.stdout_bytes == len(result.stdout) else None


def own_text(preprocessed: str) -> str:
    """What is not of system headers."""
    kept, own = [], True
    for line in preprocessed.splitlines():
        marker = _MARKER.fullmatch(line)
        if marker:
            own = "3" not in marker[1].split()
        elif own:
            kept.append(line)
    return "\n".join(kept)
