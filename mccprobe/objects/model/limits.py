"""What a multiprocessor holds, as far as somebody has said it in public; each number with its source.

A number that is not public is unknown, and stays so: nothing is filled in from a neighbour. Marks as in
the reference: [S] seen in source or document text, [I] inferred, [article] claimed by the article alone.
"""

from __future__ import annotations

from dataclasses import dataclass

XLA = "zml/xla musa_target_contract.h and its MUSA target config test [S]"
FLAGTREE = "FlagTree [S]"
MUSA_INFO = "musaInfo print in the public MUSA 5.2 install guide [S]"


@dataclass(frozen=True)
class Constant:
    """A number with its unit and source. value: None where no public source gives it."""

    value: int | None
    unit: str
    source: str

    def describe(self) -> str:
        return f"unknown ({self.source})" if self.value is None else f"{self.value:,} {self.unit} [{self.source}]"


@dataclass(frozen=True)
class Limits:
    """The per-multiprocessor limits of one target.

    shared_per_mp is its own number: a limit of one block says nothing about how much there is.
    """

    target: str
    device: str
    threads_per_mp: Constant
    threads_per_block: Constant
    registers_per_mp: Constant
    registers_per_block: Constant
    shared_per_block: Constant
    shared_per_mp: Constant
    warp_threads: Constant


def _unknown(unit: str) -> Constant:
    return Constant(None, unit, "no public source")


PUBLIC_LIMITS: dict[str, Limits] = {
    limits.target: limits
    for limits in (
        Limits(
            target="mp_21",
            device="S80, S3000",
            threads_per_mp=Constant(6144, "threads", XLA),
            threads_per_block=Constant(1024, "threads", XLA),
            # XLA gives 262,144 to a block and 131,072 to an MP: more than there is. Both are kept as told.
            registers_per_mp=Constant(131_072, "registers", XLA),
            registers_per_block=Constant(262_144, "registers", XLA),
            shared_per_block=Constant(28_672, "bytes", XLA),
            shared_per_mp=_unknown("bytes"),
            warp_threads=Constant(128, "threads", XLA),
        ),
        Limits(
            target="mp_22",
            device="S4000, S90",
            threads_per_mp=_unknown("threads"),
            threads_per_block=Constant(1024, "threads", "inferred from mp_21 and mp_31 [I]"),
            registers_per_mp=_unknown("registers"),
            registers_per_block=_unknown("registers"),
            shared_per_block=Constant(73_728, "bytes", FLAGTREE),
            shared_per_mp=_unknown("bytes"),
            warp_threads=Constant(128, "threads", "XLA MUSA_ABI.md [S]"),
        ),
        Limits(
            target="mp_31",
            device="S5000",
            threads_per_mp=Constant(3072, "threads", MUSA_INFO),
            threads_per_block=Constant(1024, "threads", MUSA_INFO),
            registers_per_mp=_unknown("registers"),
            registers_per_block=Constant(131_072, "registers", MUSA_INFO),
            shared_per_block=Constant(196_608, "bytes", MUSA_INFO),
            shared_per_mp=_unknown("bytes"),
            warp_threads=Constant(32, "threads", MUSA_INFO),
        ),
    )
}

# What the article's compiler_report.sh reckons with, for the S4000 alone.
ARTICLE_LIMITS = Limits(
    target="mp_22",
    device="S4000",
    threads_per_mp=Constant(6144, "threads", "article section 15"),
    threads_per_block=Constant(1024, "threads", "article section 15"),
    registers_per_mp=Constant(262_144, "registers", "article section 15"),
    registers_per_block=_unknown("registers"),
    shared_per_block=Constant(73_728, "bytes", "article section 5: 72 KB; FlagTree [S]"),
    shared_per_mp=Constant(73_728, "bytes", "assumed: what one block may have is all there is [I]"),
    warp_threads=Constant(128, "threads", "article section 11"),
)


@dataclass(frozen=True)
class AmdLimits:
    """One AMD target as LLVM 14 describes it (`AMDGPU/Utils/AMDGPUBaseInfo.cpp`, IsaInfo)."""

    wave_threads: int
    simds_per_cu: int  # getEUsPerCU
    waves_per_simd: int  # getMaxWavesPerEU
    vector_registers: int  # getTotalNumVGPRs, of a SIMD and lane
    vector_granule: int  # getVGPRAllocGranule
    scalar_registers: int  # getTotalNumSGPRs, of a SIMD
    scalar_granule: int  # getSGPRAllocGranule
    lds_bytes: int  # getLocalMemorySize: FeatureLocalMemorySize65536
    blocks_of_several_waves: int  # getMaxWorkGroupsPerCU: barriers of a compute unit
    threads_per_block: int  # getMaxFlatWorkGroupSize


LLVM_SOURCE = "LLVM 14 AMDGPUBaseInfo.cpp, IsaInfo"

_GFX9 = AmdLimits(
    wave_threads=64, simds_per_cu=4, waves_per_simd=10, vector_registers=256, vector_granule=4,
    scalar_registers=800, scalar_granule=16, lds_bytes=65_536, blocks_of_several_waves=16, threads_per_block=1024,
)  # fmt: skip
AMD_LIMITS: dict[str, AmdLimits] = dict.fromkeys(("gfx900", "gfx906", "gfx908"), _GFX9)
