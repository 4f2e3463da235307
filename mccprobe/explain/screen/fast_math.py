"""-ffast-math, taken apart: which of its parts alone turns the bad build right when it is taken away again?

The parts are those of the clang users manual ("Controlling Floating Point Behavior"). A compiler that does not take an
option does not have that part.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from mccprobe.base.console import number_of
from mccprobe.base.errors import SourceDoesNotCompile
from mccprobe.oracle.verdict import Verdict

PARTS = (
    "-fno-associative-math", "-fno-reciprocal-math", "-fsigned-zeros", "-fhonor-nans", "-fhonor-infinities",
    "-fno-finite-math-only", "-fmath-errno", "-ftrapping-math", "-ffp-contract=off", "-fno-approx-func",
)  # fmt: skip
_BUNDLES = frozenset(("-ffast-math", "-Ofast"))


def has_bundle(args: Sequence[str]) -> bool:
    """True if the arguments hold -ffast-math by one of its names."""
    return not _BUNDLES.isdisjoint(args)


def parts_named(verdict: Callable[[str], Verdict | None]) -> str:
    """One line on the parts. verdict: of the bad build with one part taken away, None where nothing changes."""
    right, wrong, unknown = [], [], []
    for part in PARTS:
        try:
            answer = verdict(part)
        except SourceDoesNotCompile:
            unknown.append(part)
            continue
        if answer is Verdict.GOOD:
            right.append(part)
        elif answer is not None:
            wrong.append(part)
    if right:
        text = f"of its parts, each alone turns it right: {', '.join(right)}"
    else:
        text = f"none of its {number_of(len(PARTS), 'part')} alone turns it right: it takes several, or start-up code"
    text += f"; still wrong with {', '.join(wrong)}" if wrong and right else ""
    return text + (f"; this compiler does not take {', '.join(unknown)}" if unknown else "")
