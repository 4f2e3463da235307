"""Many words at once, with numpy: for whole libraries. The same answers as `decode.Classifier`.

The byte-wise test of `decode` is a finite automaton: a state is the set of rows that accepted the bytes
so far. Its transitions are made when a word first needs them and kept in one array for each byte
position, so that a word costs one look-up a byte. numpy is an optional dependency and is imported when
a BulkClassifier is made; without it `decode` answers one by one.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from typing import Any

from mccprobe.base.errors import ToolchainError
from mccprobe.base.extras import install_command
from mccprobe.objects.isa.decode import Classifier
from mccprobe.objects.isa.encoding import Answer

CHUNK_WORDS = 1 << 16  # states and bytes of a chunk stay in the cache
MAX_STATES = 1 << 14  # of one byte position: 16 MB of transitions; beyond it all are given back
MISSING = -1


class BulkClassifier:
    """A classifier for arrays of words of one slot (-1 where words have none), all bytes there."""

    def __init__(self, classifier: Classifier, slot: int = -1) -> None:
        """Raises ToolchainError without numpy."""
        try:
            import numpy
        except ImportError as error:
            raise ToolchainError("numpy is not installed", hint=install_command("fast")) from error
        self._np: Any = numpy
        self._classifier = classifier
        self._slot = slot
        self.window = classifier.window
        self.answers: list[Answer] = []
        self._answer_numbers: dict[Answer, int] = {}
        self._reset()

    @staticmethod
    def available() -> bool:
        """Whether numpy is installed; it is not imported."""
        return importlib.util.find_spec("numpy") is not None

    def _reset(self) -> None:
        start = self._classifier.start(self.window, self._slot)
        # state 0 of every level: no row is left
        self._sets: list[list[int]] = [[0, start], *([0] for _ in range(self.window))]
        self._numbers: list[dict[int, int]] = [{one: n for n, one in enumerate(sets)} for sets in self._sets]
        self._next: list[Any] = [self._blank(8) for _ in range(self.window)]
        self._final: list[int] = []  # final state -> number of its answer

    def _blank(self, states: int) -> Any:
        table = self._np.full((states, 256), MISSING, dtype=self._np.int32)
        table[0] = 0
        return table

    def classify(self, code: bytes, step: int | None = None) -> Iterator[Any]:
        """Numbers in `answers`, an array for each chunk, of the windows at 0, step, 2 * step, ...

        Only whole windows are classified: (len(code) - window) // step + 1 of them.
        """
        step = step or self.window
        count = (len(code) - self.window) // step + 1
        text = self._np.frombuffer(code, dtype=self._np.uint8)
        for first in range(0, max(count, 0), CHUNK_WORDS):
            number = min(CHUNK_WORDS, count - first)
            states = self._walk(text, first * step, number, step)
            if states is None:  # no code: nearly every word is a new state
                self._reset()
                yield self._one_by_one(code, first * step, number, step)
            else:
                yield self._numbered()[states]

    def _walk(self, text: Any, offset: int, count: int, step: int) -> Any:
        """Final states of a chunk, None if there would be too many states."""
        np = self._np
        state = np.ones(count, dtype=np.int32)
        for level in range(self.window):
            begin = offset + level
            index = (state << 8) + text[begin : begin + (count - 1) * step + 1 : step]
            state = self._next[level].ravel().take(index)
            if state.min() < 0:
                if not self._fill(level, np.unique(index[state < 0])):
                    return None
                state = self._next[level].ravel().take(index)
        return state

    def _numbered(self) -> Any:
        """Final state -> number of its answer."""
        for alive in self._sets[self.window][len(self._final) :]:
            self._final.append(self._number(self._classifier.verdict(alive)))
        return self._np.array(self._final, dtype=self._np.int32)

    def _number(self, answer: Answer) -> int:
        number = self._answer_numbers.setdefault(answer, len(self.answers))
        if number == len(self.answers):
            self.answers.append(answer)
        return number

    def _one_by_one(self, code: bytes, offset: int, count: int, step: int) -> Any:
        ask, window = self._classifier.answer, self.window
        starts = range(offset, offset + count * step, step)
        words = (int.from_bytes(code[start : start + window], "little") for start in starts)
        return self._np.array([self._number(ask(word, None, self._slot)) for word in words], dtype=self._np.int32)

    def _fill(self, level: int, wanted: Any) -> bool:
        """Make these transitions; False if there would be too many states."""
        accepted = self._classifier.accept(level)
        sets, above = self._sets[level], self._sets[level + 1]
        numbers = self._numbers[level + 1]
        found = []
        for index in wanted.tolist():
            alive = sets[index >> 8] & accepted[index & 0xFF]
            number = numbers.get(alive)
            if number is None:
                number = numbers[alive] = len(above)
                above.append(alive)
            found.append(number)
        self._next[level].ravel()[wanted] = found
        if level + 1 < self.window:
            states = len(self._next[level + 1])
            if len(above) > MAX_STATES:
                return False
            if len(above) > states:
                grown = self._blank(2 * len(above))
                grown[:states] = self._next[level + 1]
                self._next[level + 1] = grown
        return True

    def pipes(self, code: bytes, step: int | None = None) -> dict[str, int]:
        """How many windows belong to each pipe; "" for those without one."""
        counts: dict[str, int] = {}
        for numbers in self.classify(code, step):
            for number, times in enumerate(self._np.bincount(numbers, minlength=1).tolist()):
                if times:
                    pipe = self.answers[number].pipe
                    counts[pipe] = counts.get(pipe, 0) + times
        return counts
