"""An MTGPU object to a Listing by the open table: classes for mnemonics, registers as far as they are read.

The text of an instruction is its class and its operands, `?` for one that is not read. What no rule takes is
`<unknown>`; code that does not fit the cut is one `<misfit>`, with its place and the reason among the warnings.
"""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Sequence

from mccprobe.objects.binary.records import CodeSymbol
from mccprobe.objects.isa.mtgpu.cut import Piece, as_integer, cut, dwords_of
from mccprobe.objects.isa.mtgpu.decode import UNKNOWN, Decoded, decoder_of
from mccprobe.objects.isa.mtgpu.table import FAMILIES, family_of, open_table
from mccprobe.objects.isa.pipes import UNKNOWN as UNKNOWN_PIPE
from mccprobe.objects.isa.records import Function, Instruction, Listing

FORMAT = "open-mtgpu"
NAME, MISFIT = "<unknown>", "<misfit>"
SHOWN_MISFITS = 5
CONTROL = 0xC  # low four bits of every branch and end that was seen
CLASSES_ONLY = "read by the open table {family}: classes of instructions, not mnemonics, each with its certainty"
NO_TABLE = "no open table for {target}: instructions are cut at bit 31 and not named"


def open_listing(symbols: Sequence[CodeSymbol], target: str) -> tuple[Listing, tuple[str, ...]]:
    """Every function of an object, and what must be known of the result. Without a table: cut, and unnamed."""
    decoder = decoder_of(target)
    functions = []
    warnings: list[str] = []
    for symbol in symbols:
        if decoder is not None:
            decoded = decoder.decode(symbol.data)
        else:
            decoded = [Decoded(piece, UNKNOWN, None) for piece in cut(symbol.data).pieces]
        functions.append(function_of(symbol.name, symbol.address, decoded))
        warnings += [_misfit(symbol, one.piece) for one in decoded if one.piece.misfit]
    if len(warnings) > SHOWN_MISFITS:
        warnings[SHOWN_MISFITS:] = [f"{len(warnings) - SHOWN_MISFITS} more places do not fit"]
    family = family_of(target)
    note = CLASSES_ONLY.format(family=family) if family else NO_TABLE.format(target=target or "an unknown target")
    return Listing(FORMAT, tuple(functions), target=target), (note, *warnings)


def tool_of(target: str) -> str:
    """How results name the open table of a target, `none` where there is none."""
    family = family_of(target)
    return f"open table {family}" if family else "none"


def _misfit(symbol: CodeSymbol, piece: Piece) -> str:
    place, size = symbol.address + piece.offset, len(piece.data)
    return f"{symbol.name}: unknown code at 0x{place:x} (offset {piece.offset}, {size} bytes): {piece.misfit}"


def function_of(name: str, address: int, decoded: Sequence[Decoded]) -> Function:
    """Decoded pieces as a function; its branches name their targets by address."""
    return Function(name, tuple(_instruction(address, one) for one in decoded), {}, address)


def _instruction(address: int, one: Decoded) -> Instruction:
    place, meaning = address + one.piece.offset, one.meaning
    rule = meaning.rule
    if rule is None:
        name = MISFIT if one.piece.misfit else NAME
        return Instruction(place, one.piece.data, name, "", name, UNKNOWN_PIPE)
    target = "" if one.target is None else f"0x{address + one.target:x}"
    parts = [operand.text for operand in meaning.operands]
    if meaning.width is not None:
        parts.append(f"{8 * meaning.width} bits")
    if rule.flow in ("branch", "jump"):
        parts.append(target or "?")
    operands = ", ".join(parts)
    text = f"{rule.name} {operands}".rstrip()
    return Instruction(
        place, one.piece.data, rule.name, operands, text, rule.pipe, target, confidence=meaning.confidence
    )


def is_cut(function: Function) -> bool:
    """True if every byte of the function is in an instruction by the cut, so that their number is known."""
    return all(one.mnemonic != MISFIT for one in function.instructions)


def flow_known(function: Function) -> bool:
    """False where an instruction without a class, or code that does not fit, may be a branch."""
    named = any(one.pipe != UNKNOWN_PIPE for one in function.instructions)
    return (
        named
        and is_cut(function)
        and not any(
            one.pipe == UNKNOWN_PIPE and one.data is not None and one.data[0] & 0xF == CONTROL
            for one in function.instructions
        )
    )


def marks(function: Function) -> dict[str, int]:
    """Instructions by confidence, `unknown` for those without a class."""
    found = Counter(one.confidence or "unknown" for one in function.instructions)
    return {level: found[level] for level in ("certain", "likely", "unknown") if found[level]}


def comparison_key(one: Instruction) -> str:
    """Text and bytes of an instruction of the open table; of a branch with a target without its distance."""
    assert one.data is not None
    if not one.target:
        return f"{one.text} {one.data.hex()}"
    return f"{one.mnemonic} <target> {as_integer(dwords_of(one.data)) & ~_distance_bits():x}"


@functools.cache
def _distance_bits() -> int:
    known = [open_table(family).distance for family in sorted(set(FAMILIES.values()))]
    bits = {bit for one in known for bit in (*one.bits, *one.sign)}
    return functools.reduce(lambda mask, bit: mask | 1 << bit, bits, 0)
