"""Each rule of the laboratory: broken it is found at its line with its lanes, kept nothing is found."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from mccprobe.tuning.lab.explain import RULES, counts_warps_by
from mccprobe.tuning.lab.record import BankUse, Finding, Observation

pytestmark = pytest.mark.toolchain("clang-14")
Observe = Callable[..., Observation]


def only(observation: Observation) -> Finding:
    assert len(observation.findings) == 1, observation.findings
    return observation.findings[0]


@pytest.mark.parametrize(
    ("name", "kind", "severity", "lanes", "words"),
    [
        ("race", "race", "error", "0-127", "read after write"),
        ("write_after_read", "race", "error", None, "write after read"),
        ("two_writers", "race", "error", None, "write after write"),
        ("warp_race", "warp-race", "doubt", None, "in one warp without __syncwarp"),
        ("atomic_and_plain", "race", "error", None, "read after write"),
        ("global_race", "global-race", "error", "0-127", "read after write in global memory"),
        ("two_blocks", "global-race", "error", "0-127", "after block (0,0,0) warp 0 lane 0, which no order of blocks"),
        ("neighbour_block", "block-race", "doubt", "0", "after block (0,0,0) warp 0 lane 127"),
        ("freed", "out-of-bounds", "error", "0-31", "global memory of 1024 bytes that was freed"),
        ("misaligned", "misaligned", "doubt", "0-31", "write of 16 bytes, whose type is aligned to 16, 4 bytes beside"),
        ("unloaded", "unloaded-fragment", "error", None, "matrix_b)<16,16,16> that nothing was loaded into"),
        ("shared_bounds", "out-of-bounds", "error", "123-127", "past its end: a __shared__ variable of 512 bytes"),
        ("dynamic_bounds", "out-of-bounds", "error", "100-127", "past its end: shared memory of 400 bytes"),
        ("global_bounds", "out-of-bounds", "error", "56-99", "past its end: global memory of 1024 bytes"),
        ("before_global", "out-of-bounds", "error", "0-127", "4 bytes before its start: global memory of 1024 bytes"),
        ("table_bounds", "out-of-bounds", "error", "16-19", "past its end: a __device__ variable of 64 bytes"),
        ("host_pointer", "out-of-bounds", "error", "0", "in no device memory"),
        ("wmma_bounds", "out-of-bounds", "error", "", "load_matrix_sync(matrix_b)<16,16,16> line 15"),
        ("divergent_barrier", "barrier-divergence", "error", "", "different __syncthreads"),
        ("early_exit", "barrier-after-exit", "doubt", "", "56 of 256 threads have ended"),
        ("divergent_operand", "divergent-operand", "error", "0-127", "pass different addresses"),
        ("unsynchronised_tile", "warp-race", "doubt", None, "read after write"),
        ("stale", "stale-fragment", "doubt", None, "after 32 more loads"),
    ],
)
def test_a_broken_rule_is_found_at_its_line(
    observe: Observe, marked: dict[str, int], name: str, kind: str, severity: str, lanes: str | None, words: str
) -> None:
    observation = observe(name)
    # a race has two ends, and threads of one warp can meet where threads of two warps do
    findings = [found for found in observation.findings if found.place and found.place.line == marked[name]]
    finding = next(found for found in findings if found.kind == kind)
    assert finding.place is not None
    assert finding.severity == severity
    assert finding.place.file.endswith("rules.mu")
    assert finding.kernel == name
    assert words in finding.text
    assert lanes is None or finding.lanes == lanes
    assert {other.kind for other in observation.findings} <= {kind, "warp-race"}
    assert kind in RULES


@pytest.mark.parametrize(
    "name",
    [
        *("no_race", "same_value", "warp_in_order", "neighbour_bytes", "atomics", "own_memory", "unrolled_barrier"),
        *("through_global", "neighbour_halfs", "last_block", "all_blocks_add"),
        *("uniform_operand", "banks<32>", "wide_banks", "wmma_banks<16>"),
    ],
)
def test_a_kept_rule_gives_no_finding(observe: Observe, name: str) -> None:
    observation = observe(name)
    assert observation.findings == ()
    assert observation.ended is None


def test_a_race_names_both_places(observe: Observe, marked: dict[str, int]) -> None:
    races = [found for found in observe("race").findings if found.place and found.place.line == marked["race"]]
    assert [race.other.line for race in races if race.other] == [marked["race.other"]]
    assert races[0].text == "read after write: warp 1 lane 0 after warp 0 lane 127, no __syncthreads between"


def test_only_the_warp_of_128_makes_a_divergent_operand(observe: Observe, marked: dict[str, int]) -> None:
    """The same kernel with warps of 32 lanes: each operation gets one address."""
    finding = only(observe("divergent_operand"))
    assert [group.lanes for group in finding.groups] == ["0-31", "32-63", "64-95", "96-127"]
    assert [group.what for group in finding.groups] == [f"base+{512 * part} bytes, ld 16" for part in range(4)]
    assert counts_warps_by(finding) == 32
    assert finding.place is not None
    assert finding.place.function.startswith("multiply<")
    assert finding.place.outer_line > marked["divergent_operand"]
    observation = observe("divergent_operand", WARP="32")
    assert not [found for found in observation.findings if found.kind == "divergent-operand"]


def test_a_divergent_operand_ends_the_run_when_it_traps(observe: Observe) -> None:
    observation = observe("divergent_operand", DIVERGE="trap")
    assert only(observation).kind == "divergent-operand"
    assert observation.ended is not None
    assert observation.ended.startswith("divergent WMMA operand")


def test_a_deadlock_tells_who_waits_where(observe: Observe) -> None:
    finding = only(observe("deadlock"))
    assert finding.kind == "deadlock"
    assert {group.what for group in finding.groups} == {"in __syncthreads", "in __syncwarp"}
    assert all(group.place is not None for group in finding.groups)
    assert all(group.lanes.startswith("warp 0 lanes ") for group in finding.groups)


def test_lanes_in_different_operations(observe: Observe) -> None:
    finding = only(observe("divergent_operation"))
    assert finding.kind == "divergent-operation"
    assert sorted(group.lanes for group in finding.groups) == ["warp 0 lanes 0-63", "warp 0 lanes 64-127"]


def test_a_barrier_that_diverges_tells_both_places(observe: Observe) -> None:
    finding = only(observe("divergent_barrier"))
    lines = [group.place.line for group in finding.groups if group.place]
    assert len(set(lines)) == 2
    assert sorted(group.lanes for group in finding.groups) == ["warp 0 lanes 0-127", "warp 1 lanes 0-127"]


def test_threads_that_ended_before_a_barrier_are_all_told(observe: Observe) -> None:
    """Also the one whose end lets the others pass."""
    finding = only(observe("early_exit"))
    assert [group.lanes for group in finding.groups] == ["warp 1 lanes 72-127"]


def test_more_shared_memory_than_there_is(observe: Observe, marked: dict[str, int]) -> None:
    finding = only(observe("too_much"))
    assert finding.place is not None
    assert finding.place.line == marked["dynamic_bounds"] - 2  # of the kernel
    assert finding.kind == "shared-memory"
    assert finding.text == "80000 bytes of shared memory (0 static, 80000 dynamic); a block has 73728"


# --- banks: 16 of 4 bytes, 32 lanes ---------------------------------------------------------------


def bank_use(observation: Observation, line: int) -> BankUse:
    found = [use for use in observation.banks if use.place.line == line]
    assert len(found) == 1, observation.banks
    return found[0]


@pytest.mark.parametrize(("stride", "ways"), [(0, 1), (1, 2), (2, 4), (16, 32), (17, 2), (32, 32), (33, 2)])
def test_the_bank_arithmetic_of_a_stride(observe: Observe, marked: dict[str, int], stride: int, ways: int) -> None:
    """Lane l reads word l * stride: bank l * stride % 16 (article, section 13); one word for all is one cycle."""
    use = bank_use(observe(f"banks<{stride}>"), marked["banks"])
    words_in_bank = max(len({lane * stride for lane in range(32) if lane * stride % 16 == bank}) for bank in range(16))
    assert use.ways == use.worst == ways == words_in_bank
    assert use.ideal == (1 if stride == 0 else 2)


@pytest.mark.parametrize("name", ["wide_banks", "built_wide"])
def test_a_wide_access_is_counted_in_full(observe: Observe, marked: dict[str, int], name: str) -> None:
    """32 lanes of 16 bytes are 128 words: 8 cycles of 16 banks; also where the value was made of two halves."""
    use = bank_use(observe(name), marked[name])
    assert (use.access, use.bytes, use.ways, use.ideal) == ("store", 16, 8, 8)


@pytest.mark.parametrize(("ld", "ways"), [(16, 8), (24, 8), (32, 16)])
def test_a_wmma_operation_is_counted_in_full(observe: Observe, marked: dict[str, int], ld: int, ways: int) -> None:
    """16 lines of 8 words. 16 or 24 halfs apart they take all banks in turn, 32 apart only 8 of them."""
    use = bank_use(observe(f"wmma_banks<{ld}>"), marked["wmma_banks"])
    words = {line * ld // 2 + word for line in range(16) for word in range(8)}
    assert max(sum(word % 16 == bank for word in words) for bank in range(16)) == ways
    assert (use.access, use.ways, use.ideal) == ("wmma", ways, 8)


def test_the_schema_has_every_kind(root: Path) -> None:
    schema = (root / "reports" / "lab.schema.json").read_text(encoding="utf-8")
    kinds = next(kinds for kinds in re.findall(r'"enum": (\[[^\]]*\])', schema) if "deadlock" in kinds)
    assert sorted(RULES) == json.loads(kinds)
