"""Occupancy: the article's figures, the public limits, laws that hold for every demand, LLVM's own number."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mccprobe.objects.model.amd import waves_by_registers
from mccprobe.objects.model.estimate import Advice
from mccprobe.objects.model.limits import AMD_LIMITS, ARTICLE_LIMITS, PUBLIC_LIMITS, Constant, Limits
from mccprobe.objects.model.occupancy import Demand, Occupancy, disagreements, estimate

FINAL = {"temp": 126, "attribute": 2, "internal": 2, "coefficient": 0}  # 126: article; the others: public mcc output


def demand(
    target: str = "mp_22", shared: int | None = 37_396, block: int | None = 1024, **registers: int | None
) -> Demand:
    return Demand(target, registers or FINAL, shared, block, "test")


def answers(wanted: Demand) -> dict[str, Occupancy]:
    return {entry.model: entry for entry in estimate(wanted)}


# --- the article's figures ------------------------------------------------------------------------


def test_the_final_kernel_has_one_block_and_a_sixth_of_the_threads() -> None:
    """Sections 15 and 24: 1 block/SM, 1024 of 6144 threads, "about 16 %"."""
    optimistic = answers(demand())["article-optimistic"]
    assert (optimistic.blocks_per_mp, int(optimistic.percent or 0)) == (1, 16)
    assert optimistic.bound == "exact"


def test_its_registers_are_129k_a_block_half_of_262k() -> None:
    """Section 15: 126 x 1024 is about 129K, "half of the 262K": so registers alone would let two blocks in."""
    registers = answers(demand())["article-optimistic"].limit("registers")
    assert registers is not None
    assert registers.per_block == 129_024
    assert registers.per_mp.value == 262_144
    assert registers.blocks == 2


def test_the_article_contradicts_itself_and_that_is_told() -> None:
    wanted = demand()
    (told,) = [note for note in disagreements(wanted, estimate(wanted)) if "against its own figures" in note]
    assert "129,024 of 262,144 registers would let 2 blocks in" in told
    assert "2 x 37,396 bytes of shared memory is more than 73,728" in told


def test_the_next_step_is_the_issues() -> None:
    step = answers(demand())["article-optimistic"].next_step
    assert step.startswith(
        "if registers per MP are 262,144 [article]: shared memory limits, 37,396 of 73,728 bytes a block, "
        "532 bytes less would fit 2"
    )
    assert "of one block [I]" in step


def test_532_bytes_less_do_fit_two() -> None:
    assert answers(demand(shared=37_396 - 532))["article-optimistic"].blocks_per_mp == 2
    assert answers(demand(shared=37_396 - 531))["article-optimistic"].blocks_per_mp == 1


def test_two_blocks_of_1024_threads_at_130_registers_are_266k_and_too_many() -> None:
    """Section 15: 1024 x 2 x 130 = 266K, beyond 262K."""
    registers = answers(demand(temp=130, shared=0))["article-optimistic"].limit("registers")
    assert registers is not None
    assert 2 * (registers.per_block or 0) == 266_240
    assert registers.blocks == 1


def test_the_conservative_model_says_zero_only_beyond_256_registers() -> None:
    """Section 15: 0 blocks, 0 %. Its three other counts are not published; with those of public mcc output it is 1."""
    known = answers(demand())["article-conservative"]
    assert known.blocks_per_mp == 1
    assert "not published" in " ".join(known.notes)
    enough = answers(demand(temp=126, attribute=60, internal=60, coefficient=11))["article-conservative"]
    assert (enough.blocks_per_mp, enough.percent) == (0, 0.0)
    just_not = answers(demand(temp=126, attribute=60, internal=60, coefficient=10))["article-conservative"]
    assert just_not.blocks_per_mp == 1


def test_where_the_articles_models_disagree_it_is_told() -> None:
    wanted = demand(temp=126, attribute=60, internal=60, coefficient=11)
    told = disagreements(wanted, estimate(wanted))
    assert any("models disagree: 1 block against 0 blocks" in note for note in told)


def test_mublas_has_one_block() -> None:
    """Section 22.2: 512 threads, 250 registers, 65,664 bytes. Registers would let two in, shared memory does not."""
    optimistic = answers(demand(temp=250, shared=65_664, block=512))["article-optimistic"]
    assert (optimistic.blocks_per_mp, optimistic.limiter) == (1, "shared memory")
    assert optimistic.percent == 8.3


@pytest.mark.parametrize("shared", [74 * 1024, 92 * 1024])
def test_more_than_72_kib_does_not_start(shared: int) -> None:
    """Section 5: 74 KB and 92 KB double buffers are beyond the 72 KB limit."""
    for entry in estimate(demand(shared=shared)):
        assert entry.blocks_per_mp == 0
        assert "73,728" in " ".join(entry.notes)


# --- public limits --------------------------------------------------------------------------------


def test_for_mp_22_the_public_record_gives_no_answer() -> None:
    public = answers(demand())["public-limits"]
    assert public.blocks_per_mp is None
    assert public.percent is None
    assert public.reason == "unknown per multiprocessor: threads, registers, shared memory"


def test_mp_31_is_bounded_by_its_threads_alone() -> None:
    (public,) = estimate(demand("mp_31"))
    assert (public.blocks_per_mp, public.bound, public.limiter) == (3, "at most", "threads")
    assert public.notes == ("unknown per multiprocessor: registers, shared memory",)


@pytest.mark.parametrize(("target", "temp"), [("mp_31", 129), ("mp_21", 257)])
def test_more_registers_than_a_block_may_have_do_not_start(target: str, temp: int) -> None:
    (public,) = estimate(demand(target, shared=1024, temp=temp))
    assert (public.blocks_per_mp, public.percent, public.bound, public.limiter) == (0, 0.0, "exact", None)
    assert any("registers" in note and "does not start" in note for note in public.notes)
    (public,) = estimate(demand(target, shared=1024, temp=temp - 1))
    assert not any("does not start" in note for note in public.notes)


@pytest.mark.parametrize(("shared", "told"), [(28_672, False), (28_673, True)])
def test_the_cap_of_llama_cpp_on_static_shared_memory_is_told(shared: int, told: bool) -> None:
    wanted = demand(shared=shared)
    assert any("llama.cpp" in note for note in disagreements(wanted, estimate(wanted))) is told


def test_mp_21_counts_registers_and_tells_that_its_sources_contradict_each_other() -> None:
    wanted = demand("mp_21", shared=1024, temp=100)
    (public,) = estimate(wanted)
    assert (public.blocks_per_mp, public.limiter) == (1, "registers")
    assert "contradict" in disagreements(wanted, (public,))[0]


@pytest.mark.parametrize("target", ["", "mp_42", "gfx1100"])
def test_a_target_without_public_limits_gets_none(target: str) -> None:
    (entry,) = estimate(demand(target))
    assert entry.model == "none"
    assert entry.reason


def test_no_block_size_no_occupancy() -> None:
    assert {entry.reason for entry in estimate(demand(block=None))} == {"no block size"}


def test_a_missing_count_makes_the_answer_an_upper_bound() -> None:
    entry = answers(demand(temp=126, attribute=None, internal=2, coefficient=0))["article-conservative"]
    assert entry.bound == "at most"
    assert entry.blocks_per_mp == 1


def constants(limits: Limits) -> list[Constant]:
    return [value for value in vars(limits).values() if isinstance(value, Constant)]


@pytest.mark.parametrize("limits", [*PUBLIC_LIMITS.values(), ARTICLE_LIMITS], ids=lambda limits: limits.target)
def test_every_constant_has_a_unit_and_a_source(limits: Limits) -> None:
    assert constants(limits)
    for constant in constants(limits):
        assert constant.unit and constant.source
        assert (constant.value is None) == (constant.source == "no public source")


# --- laws -----------------------------------------------------------------------------------------

COUNTS = st.integers(0, 300)
DEMANDS = st.builds(
    Demand,
    target=st.sampled_from([*PUBLIC_LIMITS, *AMD_LIMITS]),
    registers=st.fixed_dictionaries(
        dict.fromkeys((*FINAL, "vector", "scalar"), COUNTS)
    ),
    shared_memory_bytes=st.integers(0, 80_000),
    block_size=st.integers(1, 1024),
)  # fmt: skip


@given(DEMANDS, st.integers(0, 50), st.integers(0, 5000))
def test_more_demand_never_gives_more_blocks(wanted: Demand, registers: int, shared: int) -> None:
    more = Demand(
        wanted.target,
        {kind: (count or 0) + registers for kind, count in wanted.registers.items()},
        (wanted.shared_memory_bytes or 0) + shared,
        wanted.block_size,
    )
    for before, after in zip(estimate(wanted), estimate(more), strict=True):
        if before.blocks_per_mp is not None and after.blocks_per_mp is not None:
            assert after.blocks_per_mp <= before.blocks_per_mp


@given(DEMANDS)
def test_the_estimate_is_the_least_of_its_limits(wanted: Demand) -> None:
    for entry in estimate(wanted):
        known = [limit.blocks for limit in entry.limits if limit.blocks is not None]
        if entry.blocks_per_mp and known:
            assert entry.blocks_per_mp == min(known)
        if entry.percent is not None:
            assert 0 <= entry.percent <= 100


@given(DEMANDS)
def test_what_the_next_step_promises_is_true(wanted: Demand) -> None:
    for entry in estimate(wanted):
        promised = re.search(r"([\d,]+) (bytes less|fewer a thread|fewer) would fit (\d+)", entry.next_step)
        if promised is None or entry.limiter is None:
            continue
        less, fits = int(promised[1].replace(",", "")), int(promised[3])
        registers, shared = dict(wanted.registers), wanted.shared_memory_bytes or 0
        if entry.limiter == "shared memory":
            shared -= less
        elif entry.limiter == "registers":
            registers["temp"] = (registers["temp"] or 0) - less
        else:
            kind = entry.limiter.removesuffix(" registers")
            registers[kind] = (registers[kind] or 0) - less
        smaller = Demand(wanted.target, registers, shared, wanted.block_size)
        after = next(found for found in estimate(smaller) if found.model == entry.model)
        limit = after.limit(entry.limiter)
        assert limit is not None
        assert limit.blocks is None or limit.blocks >= fits


@given(DEMANDS)
def test_what_is_advised_is_recomputed_and_holds(wanted: Demand) -> None:
    """And one thread, register or byte more than advised would not fit."""
    for entry in estimate(wanted):
        advice = entry.advice
        if advice is None:
            continue
        for more in (0, 1):
            after = next(one for one in estimate(_as_advised(wanted, advice, more)) if one.model == entry.model)
            limit = after.limit(advice.resource)
            assert limit is not None
            assert (limit.blocks is None or limit.blocks >= advice.blocks) == (more == 0), (advice, more, limit)


def _as_advised(wanted: Demand, advice: Advice, more: int) -> Demand:
    registers, shared = dict(wanted.registers), wanted.shared_memory_bytes or 0
    block = wanted.block_size if advice.block_size is None else advice.block_size + more
    if advice.registers_fewer is not None:
        registers["temp"] = (registers["temp"] or 0) - advice.registers_fewer + more
    if advice.shared_bytes_less is not None:
        shared += more - advice.shared_bytes_less
    return Demand(wanted.target, registers, shared, block)


@pytest.mark.parametrize("target", ["mp_21", "mp_22"])
def test_blocks_take_whole_warps_of_128_threads(target: str) -> None:
    """6,144 threads are 48 warps: blocks of 877 threads take 7 warps, and 6 of them fit; 768 fit 8."""
    found = {
        size: estimate(Demand(target, {"temp": 5, "attribute": 2, "internal": 2, "coefficient": 0}, 20, size))[0]
        for size in (1024, 877, 768)
    }
    assert [found[size].blocks_per_mp for size in (1024, 877, 768)] == [6, 6, 8]
    advice = found[1024].advice
    assert advice is not None and (advice.block_size, advice.blocks) == (768, 8)
    assert found[877].percent == 87.5


# --- LLVM's own number ------------------------------------------------------------------------------

KERNEL = """
kernel void k{n}(global float *p) {{
  float x[{n}];
#pragma unroll
  for (int i = 0; i < {n}; ++i) x[i] = p[i * 64];
  __builtin_amdgcn_s_barrier();
#pragma unroll
  for (int i = 0; i < {n}; ++i) p[i * 64 + 1] = x[i] * x[({n} - 1 - i)];
}}
"""


@pytest.mark.toolchain("clang-14")
def test_waves_are_those_that_llvm_prints(tmp_path: Path) -> None:
    source = tmp_path / "k.cl"
    source.write_text("".join(KERNEL.format(n=n) for n in (1, 8, 20, 26, 30, 34, 45, 60, 80, 120, 200)))
    command = ["clang-14", "--target=amdgcn-amd-amdhsa", "-mcpu=gfx908", "-nogpulib", "-O2", "-S", "-o", "-"]
    ran = subprocess.run([*command, str(source)], capture_output=True, text=True, check=False, timeout=120)
    assert ran.returncode == 0, ran.stderr
    numbers = [
        [int(found) for found in re.findall(rf"^; {name}: (\d+)", ran.stdout, re.MULTILINE)]
        for name in ("NumVGPRsForWavesPerEU", "NumSGPRsForWavesPerEU", "Occupancy")
    ]
    assert len(numbers[0]) == 11
    assert len(set(numbers[2])) >= 4, "the kernels do not differ enough to tell anything"
    limits = AMD_LIMITS["gfx908"]
    for vector, scalar, printed in zip(*numbers, strict=True):
        ours = min(waves_by_registers("vector", vector, limits), waves_by_registers("scalar", scalar, limits))
        assert ours == printed, (vector, scalar)
