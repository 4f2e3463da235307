"""Control flow of one function: blocks, dominators, natural loops, nesting, the main loop.

Edges come from branches whose target the listing tells and from falling through; an indirect branch
has no known target and is counted. A loop is natural: a back edge goes to a block that dominates its
source; loops with one header are one. A retreating edge into a block that does not dominate its
source (an irreducible loop) is counted, not made a loop.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mccprobe.base.errors import InputError
from mccprobe.objects.isa.graph import natural_loops
from mccprobe.objects.isa.pipes import MATRIX_PIPES, mix, pipe_table
from mccprobe.objects.isa.records import Function, Instruction

_ISA_OF_FORMAT = {"mcc-s": "mtgpu", "amdgpu-s": "amdgpu", "nvdisasm": "nvidia"}


def isa_of(listing_format: str) -> str:
    """The instruction set of a Listing.format: one of `pipes.ISAS`."""
    return _ISA_OF_FORMAT.get(listing_format, listing_format.rpartition("-")[2])


@dataclass(frozen=True)
class Block:
    """Instructions first to last (both inclusive, indices) that run one after the other."""

    first: int
    last: int
    successors: tuple[int, ...]  # indices of blocks


@dataclass(frozen=True)
class Loop:
    """A natural loop.

    header: index of the first instruction of its header; label: how the listing names that place (a
    label, an address, or `#index`). blocks: indices of its blocks, inner loops included. depth: 1 for an
    outermost loop. parent: index into `Flow.loops`, None for an outermost loop. instructions: all of
    it, inner loops included; own: without those of inner loops. size_bytes: of all its instructions,
    None without bytes.
    """

    header: int
    label: str
    blocks: tuple[int, ...]
    depth: int
    parent: int | None
    instructions: int
    own: int
    mix: dict[str, int]
    own_mix: dict[str, int]
    size_bytes: int | None

    @property
    def matrix(self) -> int:
        """Matrix instructions of the loop itself, inner loops left out."""
        return sum(self.own_mix.get(pipe, 0) for pipe in MATRIX_PIPES)


@dataclass(frozen=True)
class Flow:
    """Control flow of one function. loops: by place of their header, an outer loop before its inner ones."""

    blocks: tuple[Block, ...]
    loops: tuple[Loop, ...]
    indirect: int  # branches without a known target
    irreducible: int  # retreating edges that make no natural loop

    def main_loop(self) -> Loop | None:
        """The loop with most matrix instructions of its own; among equals the deepest, then the longest."""
        if not self.loops:
            return None
        return max(self.loops, key=lambda loop: (loop.matrix, loop.depth, loop.own, -loop.header))

    def instructions_of(self, loop: Loop) -> list[int]:
        """Indices of the loop's instructions, in order."""
        found: list[int] = []
        for place in loop.blocks:
            found.extend(range(self.blocks[place].first, self.blocks[place].last + 1))
        return sorted(found)


def analyse(function: Function, isa: str) -> Flow:
    """Blocks and loops of a function; near linear in its length. Raises InputError for loops nested too deep."""
    instructions = function.instructions
    if not instructions:
        return Flow((), (), 0, 0)
    blocks, indirect = _blocks(function, isa)
    try:
        bodies, irreducible = natural_loops([block.successors for block in blocks])
    except InputError as error:
        raise InputError(f"{function.name}: {error.message}") from error
    return Flow(blocks, _nested(function, blocks, bodies), indirect, irreducible)


def target_index(function: Function, target: str, by_address: dict[int, int]) -> int | None:
    """Index of the instruction that a target means, None if it lies outside or is not told."""
    if not target:
        return None
    if target in function.labels:
        return function.labels[target]
    try:
        return by_address.get(int(target, 16)) if target.startswith("0x") else None
    except ValueError:  # a symbol that begins so
        return None


def address_index(instructions: Sequence[Instruction]) -> dict[int, int]:
    """Address to the index of the first instruction there (words may hold several)."""
    found: dict[int, int] = {}
    for index, one in enumerate(instructions):
        if one.address is not None:
            found.setdefault(one.address, index)
    return found


def _conditional(one: Instruction, flow: str) -> bool:
    """A guard makes a jump or an end conditional (NVIDIA's @P0)."""
    if one.flags.startswith("@"):
        return True
    return flow == "branch" and one.mnemonic not in ("BRA", "JMP")


def _blocks(function: Function, isa: str) -> tuple[tuple[Block, ...], int]:
    instructions, count = function.instructions, len(function.instructions)
    find, by_address = pipe_table(isa).find, address_index(function.instructions)
    leaders = {0} | {place for place in function.labels.values() if place < count}
    ends: dict[int, tuple[tuple[int, ...], bool]] = {}  # index -> (targets, falls through)
    indirect = 0
    for index, one in enumerate(instructions):
        flow = find(one.mnemonic).flow
        if not flow or flow == "call":
            continue
        through = _conditional(one, flow)
        targets: tuple[int, ...] = ()
        if flow != "end":
            place = target_index(function, one.target, by_address)
            if place is not None and place < count:
                targets = (place,)
                leaders.add(place)
            elif not one.target:
                indirect += 1
        ends[index] = (targets, through)
        if index + 1 < count:
            leaders.add(index + 1)
    starts = sorted(leaders)
    number = {start: place for place, start in enumerate(starts)}
    blocks = []
    for place, start in enumerate(starts):
        last = (starts[place + 1] if place + 1 < len(starts) else count) - 1
        targets, through = ends.get(last, ((), True))
        after = {number[target] for target in targets}
        if through and last + 1 < count:
            after.add(place + 1)
        blocks.append(Block(start, last, tuple(sorted(after))))
    return tuple(blocks), indirect


def _nested(function: Function, blocks: Sequence[Block], bodies: dict[int, set[int]]) -> tuple[Loop, ...]:
    """Loops with their nesting: the smallest other loop that holds a header is the parent."""
    instructions = function.instructions
    headers = sorted(bodies, key=lambda header: (blocks[header].first, -len(bodies[header])))
    position = {header: index for index, header in enumerate(headers)}
    innermost: dict[int, int] = {}
    parents: dict[int, int | None] = {}
    for header in sorted(bodies, key=lambda one: -len(bodies[one])):  # large to small: the last writer is innermost
        parents[header] = innermost.get(header)
        for block in bodies[header]:
            innermost[block] = header
    names: dict[int, str] = {}
    for name, index in function.labels.items():
        names.setdefault(index, name)
    own_blocks: dict[int, list[int]] = {header: [] for header in headers}
    for block, header in innermost.items():
        own_blocks[header].append(block)
    depths: dict[int, int] = {}
    for header in sorted(bodies, key=lambda one: -len(bodies[one])):
        parent = parents[header]
        depths[header] = 1 if parent is None else depths[parent] + 1
    loops = []
    for header in headers:
        whole = _instructions(instructions, blocks, bodies[header])
        own = _instructions(instructions, blocks, own_blocks[header])
        first = blocks[header].first
        address = instructions[first].address
        parent = parents[header]
        loops.append(
            Loop(
                header=first,
                label=names.get(first) or (f"0x{address:x}" if address is not None else f"#{first}"),
                blocks=tuple(sorted(bodies[header])),
                depth=depths[header],
                parent=None if parent is None else position[parent],
                instructions=len(whole),
                own=len(own),
                mix=mix(whole),
                own_mix=mix(own),
                size_bytes=size_bytes(whole),
            )
        )
    return tuple(loops)


def _instructions(
    instructions: Sequence[Instruction], blocks: Sequence[Block], chosen: set[int] | list[int]
) -> list[Instruction]:
    found: list[Instruction] = []
    for place in sorted(chosen):
        found.extend(instructions[blocks[place].first : blocks[place].last + 1])
    return found


def size_bytes(instructions: Sequence[Instruction]) -> int | None:
    """Bytes of the instructions; several that share one address share its bytes. None if one has no bytes."""
    if not instructions or any(one.data is None for one in instructions):
        return None
    shared = {one.address: len(one.data or b"") for one in instructions if one.address is not None}
    return sum(shared.values()) + sum(len(one.data or b"") for one in instructions if one.address is None)
