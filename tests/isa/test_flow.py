"""Control flow against the definitions: dominators and natural loops by brute force on small graphs."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mccprobe.base.errors import InputError
from mccprobe.objects.isa.flow import analyse
from mccprobe.objects.isa.listing import parse_listing
from mccprobe.objects.isa.pipes import pipe_table
from mccprobe.objects.isa.records import Function, Instruction
from mccprobe.objects.isa.summary import summarise

DATA = Path(__file__).parent / "data"


def _function(successors: list[list[int]]) -> Function:
    """A block for each node, of AMDGPU branches: the first successor by falling through to a jump."""
    instructions: list[Instruction] = []
    labels: dict[str, int] = {}

    def put(mnemonic: str, target: str = "") -> None:
        pipe = pipe_table("amdgpu").find(mnemonic).pipe
        instructions.append(Instruction(None, None, mnemonic, target, f"{mnemonic} {target}", pipe, target))

    for node, after in enumerate(successors):
        labels[f"L{node}"] = len(instructions)
        for target in after[1:]:
            put("s_cbranch_scc1", f"L{target}")
        put("s_branch", f"L{after[0]}") if after else put("s_endpgm")
    return Function("f", tuple(instructions), labels)


def _reachable(graph: dict[int, set[int]], start: int, without: int | None = None) -> set[int]:
    seen: set[int] = set()
    stack = [start] if start != without else []
    while stack:
        node = stack.pop()
        if node not in seen:
            seen.add(node)
            stack.extend(after for after in graph[node] if after != without)
    return seen


GRAPHS = st.integers(1, 8).flatmap(
    lambda count: st.lists(st.lists(st.integers(0, count - 1), max_size=2), min_size=count, max_size=count)
)


@settings(max_examples=300, deadline=None)
@given(GRAPHS)
def test_loops_are_the_natural_loops_of_the_definition(successors: list[list[int]]) -> None:
    flow = analyse(_function(successors), "amdgpu")
    graph = {place: set(block.successors) for place, block in enumerate(flow.blocks)}
    live = _reachable(graph, 0)
    dominates = {(a, b) for a in live for b in live if b not in _reachable(graph, 0, without=a)}
    expected: dict[int, set[int]] = {}
    for source in live:
        for header in graph[source]:
            if (header, source) not in dominates:
                continue
            body = {header}
            for node in live:  # those that reach the source without passing the header
                if node != header and source in _reachable(graph, node, without=header):
                    body.add(node)
            expected.setdefault(header, set()).update(body)
    found = {flow.blocks.index(_block_at(flow.blocks, loop.header)): set(loop.blocks) for loop in flow.loops}
    assert found == expected
    for loop in flow.loops:
        around = [other for other in flow.loops if set(other.blocks) > set(loop.blocks)]
        assert loop.depth == 1 + len(around)
        if loop.parent is not None:
            assert set(flow.loops[loop.parent].blocks) == min((set(one.blocks) for one in around), key=len)


def _block_at(blocks, first):  # type: ignore[no-untyped-def]
    return next(block for block in blocks if block.first == first)


def test_the_gemm_nest() -> None:
    listing = parse_listing((DATA / "gemm-loop-mp22.s").read_text())
    summary = summarise(listing.functions[0])
    assert [(loop.label, loop.depth, loop.parent) for loop in summary.loops] == [("BB0_1", 1, None), ("BB0_2", 2, 0)]
    main = summary.main_loop
    assert main is not None
    assert main.label == "BB0_2"
    assert main.mix == {"INT": 2, "LDMA.RD": 2, "MMA": 2, "CTRL": 1}
    assert summary.loops[0].own_mix["AP"] == 2
    assert (main.size_bytes, summary.words, summary.geometry.state) == (None, None, "unknown")


def test_the_main_loop_has_most_matrix_instructions_even_if_another_is_deeper() -> None:
    text = (
        "k:\nBB0_1:\n\t\t[N-sD---]\t\tMMA.323216 R0, R1, R2, 0\n\t\t[Nw-D---]\t\tCTRL.BR.ALLP0T BB0_1\n"
        "BB0_2:\nBB0_3:\n\t\t[N-sD---]\t\tINT.ADD R1, R1, R2\n\t\t[Nw-D---]\t\tCTRL.BR.ALLP0T BB0_3\n"
        "\t\t[Nw-D---]\t\tCTRL.BR.ALLP0T BB0_2\n\t\t[N-wD---]\t\tCTRL.END\n"
    )
    summary = summarise(parse_listing(text).functions[0])
    assert summary.main_loop is not None
    assert summary.main_loop.label == "BB0_1"


def test_an_irreducible_loop_is_counted_and_no_loop() -> None:
    flow = analyse(_function([[1, 2], [2], [1]]), "amdgpu")
    assert (flow.loops, flow.irreducible) == ((), 1)


def test_a_long_chain_of_blocks_is_no_recursion() -> None:
    count = 20_000
    flow = analyse(_function([[node + 1, 0] for node in range(count)] + [[]]), "amdgpu")
    assert [loop.depth for loop in flow.loops] == [1]


def test_loops_nested_without_end_are_refused() -> None:
    depth = 200
    lines = "".join(f"BB0_{at}:\n\t\t[N-sD---]\t\tINT.ADD R1, R1, R2\n" for at in range(depth))
    lines += "".join(f"\t\t[Nw-D---]\t\tCTRL.BR.ALLP0T BB0_{depth - 1 - at}\n" for at in range(depth))
    (function,) = parse_listing(f"\t.text\n\t.type\tk,@function\nk:\n{lines}\t\t[N-wD---]\t\tCTRL.END\n").functions
    with pytest.raises(InputError, match=r"^k: the loops of \d+ blocks are nested too deep"):
        analyse(function, "mtgpu")
