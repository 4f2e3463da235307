"""The rules of `mccprobe lint`. Each with the source of what it takes for granted."""

from __future__ import annotations

from collections.abc import Iterator

from mccprobe.objects.binary.reserve import reserves_of
from mccprobe.objects.isa.lint import Context, Finding, Rule
from mccprobe.objects.isa.pipes import UNKNOWN
from mccprobe.objects.isa.records import Instruction
from mccprobe.objects.isa.registers import registers_of, roles
from mccprobe.objects.isa.summary import INSTRUCTION_CACHE_BYTES

HAND_RESERVE_BYTES = 128  # mtgpu.md 3.4: hand-written assembly adds 128
SPILLED_REGISTER_BYTES = 4  # a vector register of AMDGPU, for each thread
SHARED_SYMBOLS = ("llvm.musa.kernel.{}.sm", "llvm.mtgpu.kernel.{}.sm")  # of mcc, of hand assembly (mtgpu.md 4.1, 4.2)
_METADATA_NAME = {"R": "temp", "v": "vector", "s": "scalar"}


def _finding(rule: str, certainty: str, context: Context, where: str, message: str, evidence: str) -> Finding:
    return Finding(rule, certainty, context.function.name, where, message, evidence)


def place(one: Instruction) -> str:
    """Where an instruction stands: its address, else its line."""
    return f"0x{one.address:x}" if one.address is not None else f"line {one.line}"


def mma_reads_bypass(context: Context) -> Iterator[Finding]:
    """An MMA operand in the internal bypass bank."""
    for one in context.function.instructions:
        if one.pipe != "MMA":
            continue
        if any(register.bank == "I" for register in registers_of(one.operands, context.isa)):
            yield _finding(
                "mma-bypass",
                "suspected",
                context,
                place(one),
                "MMA operand in an internal bypass register: the article suspects that MMA cannot read it",
                one.text,
            )


def bypass_read_before_write(context: Context) -> Iterator[Finding]:
    """An I[...] register read in a block that has not written it."""
    instructions = context.function.instructions
    for block in context.flow.blocks:
        written: set[int] = set()
        for one in instructions[block.first : block.last + 1]:
            used = roles(one, context.isa)
            missing = sorted(
                {
                    index
                    for register in used.read
                    if register.bank == "I"
                    for index in range(register.first, register.first + register.size)
                    if index not in written
                }
            )
            if missing:
                names = ", ".join(f"I{index}" for index in missing)
                yield _finding(
                    "bypass-undefined",
                    "suspected",
                    context,
                    place(one),
                    f"{names} is read, and nothing before it in the block writes it",
                    one.text,
                )
            for register in used.written:
                if register.bank == "I":
                    written.update(range(register.first, register.first + register.size))


def _highest(context: Context, bank: str, *, by_table: bool = False) -> tuple[int, Instruction] | None:
    """(highest index + 1, an instruction that has it) of a bank; by_table: as the open table reads it."""
    best: tuple[int, Instruction] | None = None
    for one in context.function.instructions:
        if one.pipe == UNKNOWN or bool(one.confidence) != by_table:
            continue
        for register in registers_of(one.operands, context.isa):
            if register.bank == bank and (best is None or register.first + register.size > best[0]):
                best = (register.first + register.size, one)
    return best


def _register_bank(context: Context) -> Iterator[tuple[str, int, int, Instruction]]:
    """(bank, used, told, where) for the banks that metadata counts."""
    if context.kernel is None:
        return
    for bank in ("R",) if context.isa == "mtgpu" else ("v",):
        told = context.kernel.registers.get(_METADATA_NAME[bank])
        highest = _highest(context, bank)
        if told is not None and highest is not None:
            yield bank, highest[0], told, highest[1]


def more_registers_than_told(context: Context) -> Iterator[Finding]:
    """The body names a register beyond the count in the metadata."""
    for bank, used, told, one in _register_bank(context):
        if used > told:
            yield _finding(
                "register-count",
                "contradiction",
                context,
                place(one),
                f"the body uses {bank}{used - 1}, the metadata counts {told} registers of this bank",
                one.text,
            )


def table_reads_too_many(context: Context) -> Iterator[Finding]:
    """The open table reads a register beyond the count: then the table is wrong for this code, not the compiler."""
    told = context.kernel.registers.get("temp") if context.kernel is not None else None
    highest = _highest(context, "R", by_table=True)
    if told is not None and highest is not None and highest[0] > told:
        yield _finding(
            "open-table-registers",
            "suspected",
            context,
            place(highest[1]),
            f"the open table reads R{highest[0] - 1}, the metadata counts {told} registers: the table is wrong here",
            highest[1].text,
        )


def fewer_registers_than_told(context: Context) -> Iterator[Finding]:
    """The metadata counts more registers than the body names."""
    for bank, used, told, one in _register_bank(context):
        if used < told and context.isa == "mtgpu":
            yield _finding(
                "register-count-unused",
                "reported",
                context,
                "",
                f"the metadata counts {told} registers, the body names {bank}0 to {bank}{used - 1}",
                one.text,
            )


def _shared_bytes(context: Context) -> int | None:
    """Declared shared memory of this kernel, None if no symbol is its own."""
    names = (symbol.format(context.function.name) for symbol in SHARED_SYMBOLS)
    return next((context.symbols[name] for name in names if name in context.symbols), None)


def shared_memory_disagrees(context: Context) -> Iterator[Finding]:
    """Shared memory told by the metadata against the kernel's symbol and the known reserves."""
    kernel, declared = context.kernel, _shared_bytes(context)
    if kernel is None or declared is None or kernel.shared_memory_bytes is None:
        return
    surplus = kernel.shared_memory_bytes - declared
    evidence = f"symbol {declared} bytes, shared_memory_size {kernel.shared_memory_bytes}"
    if surplus < 0:
        yield _finding(
            "shared-memory",
            "contradiction",
            context,
            "",
            f"the kernel's shared symbol is {-surplus} bytes larger than the metadata's shared memory",
            evidence,
        )


def shared_memory_surplus(context: Context) -> Iterator[Finding]:
    """A surplus that is neither mcc's reserve of this architecture nor hand assembly's 128 bytes."""
    kernel, declared = context.kernel, _shared_bytes(context)
    if kernel is None or declared is None or kernel.shared_memory_bytes is None:
        return
    surplus = kernel.shared_memory_bytes - declared
    of_mcc = reserves_of(kernel.target)
    if surplus >= 0 and of_mcc and surplus not in (0, *of_mcc, HAND_RESERVE_BYTES):
        yield _finding(
            "shared-memory-surplus",
            "reported",
            context,
            "",
            f"{surplus} bytes more than declared; known reserves are {min(of_mcc)} (mcc on {kernel.target}, rounded up "
            f"to an alignment) and {HAND_RESERVE_BYTES} (hand assembly)",
            f"symbol {declared} bytes, shared_memory_size {kernel.shared_memory_bytes}",
        )


def spills(context: Context) -> Iterator[Finding]:
    """Spilled registers, or (MTGPU tells no spill count) private memory over the threshold."""
    kernel = context.kernel
    if kernel is None:
        return
    if kernel.spills is not None:
        registers = kernel.spills.get("vector", 0) or 0
        if registers * SPILLED_REGISTER_BYTES > context.spill_threshold_bytes:
            yield _finding(
                "spill",
                "reported",
                context,
                "",
                f"{registers} vector registers are spilled, {registers * SPILLED_REGISTER_BYTES} bytes a thread",
                f"threshold {context.spill_threshold_bytes} bytes",
            )
    elif (kernel.private_memory_bytes or 0) > context.spill_threshold_bytes:
        yield _finding(
            "spill",
            "reported",
            context,
            "",
            f"{kernel.private_memory_bytes} bytes of private memory a thread: spilled registers or arrays on the stack",
            f"threshold {context.spill_threshold_bytes} bytes; the metadata has no spill count",
        )


def loop_over_cache(context: Context) -> Iterator[Finding]:
    """An innermost loop whose bytes exceed the instruction cache."""
    parents = {loop.parent for loop in context.flow.loops}
    for index, loop in enumerate(context.flow.loops):
        if index in parents or loop.size_bytes is None or loop.size_bytes <= INSTRUCTION_CACHE_BYTES:
            continue
        yield _finding(
            "loop-cache",
            "measured",
            context,
            loop.label,
            f"the loop has {loop.size_bytes} bytes, the instruction cache {INSTRUCTION_CACHE_BYTES} [article]",
            f"{loop.instructions} instructions",
        )


RULES: tuple[Rule, ...] = (
    Rule(
        "mma-bypass",
        "MMA operand in an internal bypass register",
        "article, section 19 (suspected there)",
        ("mtgpu",),
        mma_reads_bypass,
    ),
    Rule(
        "bypass-undefined",
        "bypass register read before it is written in its block",
        "mtgpu.md 4.2 for the bank; that its values do not cross blocks is inferred",
        ("mtgpu",),
        bypass_read_before_write,
    ),
    Rule(
        "register-count",
        "body uses more registers than the metadata counts",
        "mtgpu.md 3.2: the count equals the highest index + 1",
        ("mtgpu", "amdgpu"),
        more_registers_than_told,
    ),
    Rule(
        "shared-memory",
        "shared symbol larger than the metadata's shared memory",
        "mtgpu.md 3.4",
        ("mtgpu",),
        shared_memory_disagrees,
    ),
    Rule(
        "spill",
        "spilled bytes over the threshold",
        "metadata; the article's sections 12 and 20",
        ("mtgpu", "amdgpu"),
        spills,
    ),
    Rule(
        "loop-cache",
        "innermost loop larger than the instruction cache",
        "article, line 182",
        ("mtgpu",),
        loop_over_cache,
    ),
    Rule(
        "open-table-registers",
        "open table reads more registers than the metadata counts",
        "the table is measured from public objects; a compiler is never accused by it",
        ("mtgpu",),
        table_reads_too_many,
        observation=True,
    ),
    Rule(
        "register-count-unused",
        "metadata counts more registers than the body names",
        "mtgpu.md 3.2",
        ("mtgpu",),
        fewer_registers_than_told,
        observation=True,
    ),
    Rule(
        "shared-memory-surplus",
        "shared memory beyond symbol and known reserves",
        "mtgpu.md 3.4",
        ("mtgpu",),
        shared_memory_surplus,
        observation=True,
    ),
)
