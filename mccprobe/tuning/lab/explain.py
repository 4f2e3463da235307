"""Why a finding is wrong: one entry for each kind, with its source. "article N" is a section of the article."""

from __future__ import annotations

import re
from dataclasses import dataclass

from mccprobe.tuning.lab.record import Finding

_RANGE = re.compile(r"(\d{1,9})-(\d{1,9})")


@dataclass(frozen=True)
class Rule:
    """title: what was seen, in a few words. why: the rule that it breaks, and the way out."""

    title: str
    why: str


RULES = {
    "divergent-operand": Rule(
        "WMMA addresses differ within a physical warp",
        "MP22 does a WMMA operation once for a physical warp of 128 lanes, so all its active lanes must pass one "
        "address (article 11); what happens otherwise is not documented. Derive every WMMA address from "
        "threadIdx.x / 128.",
    ),
    "divergent-operation": Rule(
        "lanes of one warp are in different collective operations",
        "WMMA operations and __syncwarp are done by the active lanes of a warp together, so all of them must come to "
        "the same one.",
    ),
    "barrier-divergence": Rule(
        "threads of a block wait in different __syncthreads",
        "All threads of a block must come to the same __syncthreads; the emulator let them pass, a GPU may hang or "
        "go on too early.",
    ),
    "deadlock": Rule("deadlock", "A barrier or collective operation waits for threads that wait elsewhere."),
    "out-of-bounds": Rule(
        "access outside the memory that it belongs to",
        "On a GPU it reads or overwrites something else. Here a read was given NaN, a write was dropped.",
    ),
    "shared-memory": Rule(
        "more shared memory than a block has", "The launch fails: MP22 has 73,728 bytes a block (article 13, 22)."
    ),
    "race": Rule(
        "race in shared memory",
        "Two warps use one word, one of them writes, and no __syncthreads lies between: which comes first is chance.",
    ),
    "global-race": Rule(
        "race in global memory",
        "Two warps with no __syncthreads between, or two blocks, use one word and nothing puts them in order: which "
        "value stays is chance. An atomic operation, a barrier or another launch does.",
    ),
    "block-race": Rule(
        "a block uses what another block of the launch writes",
        "Blocks run in any order and side by side, so the result is sure only if it does not depend on this word.",
    ),
    "misaligned": Rule(
        "a wide access that is not aligned as its type",
        "The compiler takes the alignment for granted; what MP22 does without it is not documented, and other GPUs "
        "end the kernel.",
    ),
    "warp-race": Rule(
        "lanes of one warp meet in memory without __syncwarp",
        "Whether the lanes of a warp of MP22 run in step is not documented; a __syncwarp or __syncthreads between "
        "makes it sure.",
    ),
    "barrier-after-exit": Rule(
        "a __syncthreads after some threads have ended",
        "Let threads that have nothing to do go on to the last barrier instead of returning early.",
    ),
    "stale-fragment": Rule(
        "a fragment older than the emulator keeps",
        "The emulator keeps 32 WMMA operands a warp; this says nothing about the kernel on a GPU.",
    ),
    "unloaded-fragment": Rule(
        "a fragment that nothing was loaded into", "An operand of mma_sync must come from load_matrix_sync."
    ),
    "crash": Rule(
        "the kernel crashed", "An access that is not watched, as one beside an array of the thread's own, went wild."
    ),
    "trap": Rule("the emulator stopped", "It cannot go on with this program; what it says stands above."),
}


def rule_of(finding: Finding) -> Rule:
    return RULES[finding.kind]


def counts_warps_by(finding: Finding) -> int | None:
    """The number of lanes that the kernel takes for a warp, if the groups of a divergent operand tell it."""
    ranges = [match for group in finding.groups for match in _RANGE.finditer(group.lanes)]
    if finding.kind != "divergent-operand" or len(finding.groups) < 2 or not ranges:
        return None
    sizes = {int(match[2]) - int(match[1]) + 1 for match in ranges}
    starts = {int(match[1]) for match in ranges}
    size = min(sizes)
    return size if all(start % size == 0 for start in starts) and all(one % size == 0 for one in sizes) else None
