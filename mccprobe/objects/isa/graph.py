"""Natural loops of a flow graph. Nodes are numbers, node 0 is the entry, `edges[node]` its successors.

Iterative throughout: a function may have 100,000 blocks.
"""

from __future__ import annotations

from collections.abc import Sequence

from mccprobe.base.errors import InputError

Edges = Sequence[Sequence[int]]
MAX_MEAN_DEPTH = 64  # loops around a block, on average; compilers' code has a handful, and time and memory grow with it
MAX_LOOP_BLOCKS = 1 << 21  # of all loops together


def reverse_postorder(edges: Edges) -> list[int]:
    """Blocks reachable from the entry; iterative, since a function may have 100,000 blocks."""
    seen = {0}
    finished: list[int] = []
    stack = [(0, iter(edges[0]))]
    while stack:
        block, rest = stack[-1]
        for successor in rest:
            if successor not in seen:
                seen.add(successor)
                stack.append((successor, iter(edges[successor])))
                break
        else:
            stack.pop()
            finished.append(block)
    return finished[::-1]


def dominators(edges: Edges) -> tuple[list[int], dict[int, int]]:
    """Reverse postorder and immediate dominators (Cooper, Harvey, Kennedy 2001)."""
    order = reverse_postorder(edges)
    place = {block: index for index, block in enumerate(order)}
    before: dict[int, list[int]] = {block: [] for block in order}
    for block in order:
        for successor in edges[block]:
            before[successor].append(block)
    idom = {order[0]: order[0]}
    changed = True
    while changed:
        changed = False
        for block in order[1:]:
            known = [one for one in before[block] if one in idom]
            best = known[0]
            for other in known[1:]:
                one = best
                while one != other:
                    while place[one] > place[other]:
                        one = idom[one]
                    while place[other] > place[one]:
                        other = idom[other]
                best = one
            if idom.get(block) != best:
                idom[block] = best
                changed = True
    return order, idom


def _dominator_intervals(order: Sequence[int], idom: dict[int, int]) -> dict[int, tuple[int, int]]:
    """Each block's entry and exit in a walk of the dominator tree: a dominates b if a's holds b's."""
    children: dict[int, list[int]] = {block: [] for block in order}
    for block in order[1:]:
        children[idom[block]].append(block)
    clock = 0
    opened: dict[int, int] = {}
    spans: dict[int, tuple[int, int]] = {}
    stack: list[tuple[int, bool]] = [(order[0], False)]
    while stack:
        block, leaving = stack.pop()
        if leaving:
            spans[block] = (opened[block], clock)
            continue
        opened[block] = clock = clock + 1
        stack.append((block, True))
        stack.extend((child, False) for child in children[block])
    return spans


def natural_loops(edges: Edges) -> tuple[dict[int, set[int]], int]:
    """Header to the nodes of its loop, and the number of irreducible edges. Raises InputError beyond MAX_MEAN_DEPTH."""
    order, idom = dominators(edges)
    place = {block: index for index, block in enumerate(order)}
    spans = _dominator_intervals(order, idom)
    before: dict[int, list[int]] = {block: [] for block in order}
    back: dict[int, list[int]] = {}
    irreducible = 0
    for block in order:
        for successor in edges[block]:
            before[successor].append(block)
            if place[successor] > place[block]:
                continue
            if spans[successor][0] <= spans[block][0] <= spans[successor][1]:
                back.setdefault(successor, []).append(block)
            else:
                irreducible += 1
    bodies: dict[int, set[int]] = {}
    room = min(MAX_MEAN_DEPTH * len(order), MAX_LOOP_BLOCKS)
    for header, sources in back.items():
        body = {header}
        stack = [source for source in sources if source not in body]
        while stack:
            block = stack.pop()
            if block not in body:
                body.add(block)
                stack.extend(one for one in before[block] if one not in body)
        bodies[header] = body
        room -= len(body)
        if room < 0:
            raise InputError(f"the loops of {len(order)} blocks are nested too deep (over {MAX_MEAN_DEPTH} on average)")
    return bodies, irreducible
