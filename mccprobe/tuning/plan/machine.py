"""What is publicly said of an S4000 beside `mccprobe.objects.model.limits`: each number with unit and source."""

from __future__ import annotations

from dataclasses import dataclass

BANKS = 16  # of shared memory, article section 13
BANK_BYTES = 4  # width of a bank, article section 13
L2_BYTES = 25_165_824  # 24.0 MB measured, article section 14
HALF_BYTES = 2
FLOAT_BYTES = 4
VECTOR_HALFS = 8  # of a float4 that a thread moves from global to shared memory
MAX_REGISTERS = 256  # of a thread, article section 5: "256 registers = 1024 bytes"
OPERAND_REGISTERS = 2  # a thread, of an A or B fragment of 32x32x16: mutlass mma_mp22.hpp (mtgpu.md 8)
SDK_ACCUMULATOR_FLOATS = 32  # __frag_base<float, 32> of a 32x32x16 accumulator, SDK 3.1.0, article section 20


@dataclass(frozen=True)
class Quantity:
    """A number of the machine. value: in `unit`."""

    name: str
    value: float
    unit: str
    source: str


MULTIPROCESSORS = Quantity("multiprocessors", 56, "MP", "mtgpu.md 8")
PEAK = Quantity("peak", 100e12, "FLOP/s", "S4000 data sheet, article section 22.3")
BANDWIDTH_SPECIFIED = Quantity("global bandwidth, specified", 768e9, "bytes/s", "article section 23")
BANDWIDTH = Quantity("global bandwidth, measured", 748e9, "bytes/s", "article section 23")
SHARED_BANDWIDTH = Quantity("shared memory, sequential reads", 27, "bytes/cycle/MP", "article section 23")
MMA_LATENCY = Quantity("latency of MMA.323216", 403, "cycles", "article section 23")
BARRIER = Quantity("barrier in the model", 148, "cycles", "article section 23; measured there: 152")
CLOCKS = (
    Quantity("clock, specified", 1.5, "GHz", "article section 23"),
    Quantity("clock, mthreads-gmi maximum", 1.6, "GHz", "article section 23"),
    Quantity("clock, musaGetDeviceProperties", 1.66999, "GHz", "article section 23"),
)
QUANTITIES = (MULTIPROCESSORS, PEAK, BANDWIDTH_SPECIFIED, BANDWIDTH, SHARED_BANDWIDTH, MMA_LATENCY, BARRIER, *CLOCKS)
