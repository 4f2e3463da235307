"""Which elements of two sequences belong together, in order and in bounded time.

Equal ends first, then elements that occur once on both sides (patience), then the longest common
subsequence of what lies between while that is small, and the i-th occurrence with the i-th beyond.
Law: the pairs are strictly increasing on both sides and pair equal keys only.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter, defaultdict, deque
from collections.abc import Hashable, Sequence
from itertools import pairwise

SMALL_CELLS = 20_000  # of a common-subsequence table: some milliseconds
DEEPEST = 60  # levels of patience before the simple match


def longest_increasing(values: Sequence[int]) -> list[int]:
    """Places of a longest strictly increasing subsequence, in order; O(n log n)."""
    tails: list[int] = []
    places: list[int] = []
    before = [-1] * len(values)
    for place, value in enumerate(values):
        where = bisect_left(tails, value)
        if where == len(tails):
            tails.append(value)
            places.append(place)
        else:
            tails[where] = value
            places[where] = place
        before[place] = places[where - 1] if where else -1
    found = []
    place = places[-1] if places else -1
    while place >= 0:
        found.append(place)
        place = before[place]
    return found[::-1]


def in_order(left: Sequence[Hashable], right: Sequence[Hashable]) -> list[tuple[int, int]]:
    """Pairs (index in left, index in right) of equal elements, increasing on both sides."""
    pairs: list[tuple[int, int]] = []
    work = [(0, len(left), 0, len(right), 0)]
    while work:
        low, high, from_, to, depth = work.pop()
        while low < high and from_ < to and left[low] == right[from_]:
            pairs.append((low, from_))
            low, from_ = low + 1, from_ + 1
        while low < high and from_ < to and left[high - 1] == right[to - 1]:
            high, to = high - 1, to - 1
            pairs.append((high, to))
        if low == high or from_ == to:
            continue
        anchors = _unique_anchors(left, right, low, high, from_, to) if depth < DEEPEST else []
        if anchors:
            pairs += anchors
            edges = [(low - 1, from_ - 1), *anchors, (high, to)]
            work += [
                (one + 1, two, one_right + 1, two_right, depth + 1)
                for (one, one_right), (two, two_right) in pairwise(edges)
                if two - one > 1 and two_right - one_right > 1
            ]
        elif (high - low) * (to - from_) <= SMALL_CELLS:
            pairs += _common_subsequence(left, right, low, high, from_, to)
        else:
            matched = [(one + low, two + from_) for one, two in by_occurrence(left[low:high], right[from_:to])]
            pairs += [matched[place] for place in longest_increasing([two for _, two in matched])]
    return sorted(pairs)


def by_occurrence(left: Sequence[Hashable], right: Sequence[Hashable]) -> list[tuple[int, int]]:
    """The i-th occurrence of an element on the left with its i-th on the right, sorted by the left."""
    places: dict[Hashable, deque[int]] = defaultdict(deque)
    for index, key in enumerate(right):
        places[key].append(index)
    return [(index, places[key].popleft()) for index, key in enumerate(left) if places.get(key)]


def _unique_anchors(
    left: Sequence[Hashable], right: Sequence[Hashable], low: int, high: int, from_: int, to: int
) -> list[tuple[int, int]]:
    counts_left, counts_right = Counter(left[low:high]), Counter(right[from_:to])
    where = {right[index]: index for index in range(from_, to) if counts_right[right[index]] == 1}
    once = [index for index in range(low, high) if counts_left[left[index]] == 1 and left[index] in where]
    found = [(index, where[left[index]]) for index in once]
    return [found[place] for place in longest_increasing([two for _, two in found])]


def _common_subsequence(
    left: Sequence[Hashable], right: Sequence[Hashable], low: int, high: int, from_: int, to: int
) -> list[tuple[int, int]]:
    """A longest common subsequence by the usual table."""
    rows = high - low
    columns = to - from_
    table = [[0] * (columns + 1) for _ in range(rows + 1)]
    for row in range(rows - 1, -1, -1):
        below, here, key = table[row + 1], table[row], left[low + row]
        for column in range(columns - 1, -1, -1):
            if key == right[from_ + column]:
                here[column] = below[column + 1] + 1
            else:
                here[column] = max(below[column], here[column + 1])
    found = []
    row = column = 0
    while row < rows and column < columns:
        if left[low + row] == right[from_ + column]:
            found.append((low + row, from_ + column))
            row, column = row + 1, column + 1
        elif table[row + 1][column] >= table[row][column + 1]:
            row += 1
        else:
            column += 1
    return found
