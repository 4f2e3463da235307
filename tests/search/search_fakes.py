"""Fake targets: a program whose verdicts are written down, in memory, with no compiler.

A scenario says what is wrong where in a small language, one rule per line, first match wins:

    bad if n >= 23
    bad if 320 <= n < 333 or n >= 346
    flaky(0.3) if n >= 40          BAD with probability 0.3, else GOOD
    unresolved(timeout) if 5 <= n <= 9
    unbuildable(crash) if n < 4    no object at all
    script(GOOD BAD) if n == 22    the answers of the first runs, then the last one for ever

and GOOD where no rule matches. `n` is the lowest limit that gives the object.
"""

from __future__ import annotations

import ast
import operator
import random
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from mccprobe.oracle.verdict import Outcome, Unbuildable, Verdict

Condition = Callable[[int], bool]
_COMPARE = {
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
}
_RULE = re.compile(r"(bad|flaky|unresolved|unbuildable|script)(?:\(([^)]*)\))? if (.+)")


def parse_condition(text: str) -> Condition:
    """`320 <= n < 333 or n >= 346` as a function of n; nothing but comparisons, and, or, not."""

    def value(node: ast.expr, n: int) -> int:
        if isinstance(node, ast.Name) and node.id == "n":
            return n
        if isinstance(node, ast.Constant) and isinstance(node.value, int):
            return node.value
        raise ValueError(f"not a limit: {ast.unparse(node)}")

    def holds(node: ast.expr, n: int) -> bool:
        if isinstance(node, ast.BoolOp):
            combine = all if isinstance(node.op, ast.And) else any
            return combine(holds(part, n) for part in node.values)
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            return not holds(node.operand, n)
        if isinstance(node, ast.Compare):
            values = [value(part, n) for part in (node.left, *node.comparators)]
            pairs = zip(node.ops, pairwise(values), strict=True)
            return all(_COMPARE[type(op)](left, right) for op, (left, right) in pairs)
        raise ValueError(f"not a condition: {ast.unparse(node)}")

    tree = ast.parse(text, mode="eval").body
    holds(tree, 0)  # refuses what it does not know at once
    return lambda n: holds(tree, n)


@dataclass(frozen=True)
class Rule:
    kind: str
    argument: str
    condition: Condition


def parse_rules(lines: Sequence[str]) -> list[Rule]:
    rules = []
    for line in lines:
        match = _RULE.fullmatch(line)
        if match is None:
            raise ValueError(f"not a rule: {line}")
        rules.append(Rule(match[1], match[2] or "", parse_condition(match[3])))
    return rules


@dataclass
class RuleTarget:
    """A Target made of rules.

    changes: limits at which the object changes, None for all. same_as: limit -> an earlier limit whose
    object comes back there. Flaky answers depend on (seed, object, number of the run) only.
    """

    total: int
    rules: list[Rule]
    changes: frozenset[int] | None = None
    same_as: Mapping[int, int] = field(default_factory=dict)
    seed: int = 0
    hints: list[list[int]] = field(default_factory=list)
    built: Counter[int] = field(default_factory=Counter)
    ran: Counter[str] = field(default_factory=Counter)

    def representative(self, limit: int) -> int:
        """The lowest limit that gives the same object."""
        if self.changes is not None:
            limit = max((change for change in self.changes if change <= limit), default=0)
        return self.same_as.get(limit, limit)

    def _rule(self, limit: int, kinds: Sequence[str]) -> Rule | None:
        return next((rule for rule in self.rules if rule.kind in kinds and rule.condition(limit)), None)

    def prefetch(self, limits: Sequence[int]) -> None:
        assert all(0 <= limit <= self.total for limit in limits)
        self.hints.append(list(limits))

    def object_at(self, limit: int) -> str | Unbuildable:
        assert 0 <= limit <= self.total
        self.built[limit] += 1
        rule = self._rule(limit, ["unbuildable"])
        if rule is not None:
            return Unbuildable(rule.argument or "compiler crash")
        return f"obj{self.representative(limit)}"

    def run(self, key: str) -> Outcome:
        limit = int(key.removeprefix("obj"))
        count = self.ran[key]
        self.ran[key] += 1
        rule = self._rule(limit, ["bad", "flaky", "unresolved", "script"])
        if rule is None:
            return Outcome(Verdict.GOOD, "exit 0", 0.0)
        if rule.kind == "unresolved":
            return Outcome(Verdict.UNRESOLVED, rule.argument or "exit 125")
        bad = rule.kind == "bad"
        if rule.kind == "flaky":
            bad = random.Random(f"{self.seed}:{key}:{count}").random() < float(rule.argument)
        if rule.kind == "script":
            answers = [Verdict(answer) for answer in rule.argument.split()]
            answer = answers[min(count, len(answers) - 1)]
            if answer is Verdict.UNRESOLVED:
                return Outcome(answer, "exit 125")
            bad = answer is Verdict.BAD
        return Outcome(Verdict.BAD, "exit 1", limit / 8) if bad else Outcome(Verdict.GOOD, "exit 0", 0.0)


@dataclass
class TableTarget:
    """A Target made of two tables: `keys[limit]` (None: gives no object) and the verdict of each key."""

    keys: Sequence[str | None]
    verdicts: Mapping[str, Verdict]
    asked: set[int] = field(default_factory=set)
    ran: Counter[str] = field(default_factory=Counter)

    @property
    def total(self) -> int:
        return len(self.keys) - 1

    def prefetch(self, limits: Sequence[int]) -> None:
        assert len(set(limits)) == len(limits)
        assert all(0 <= limit <= self.total for limit in limits)

    def object_at(self, limit: int) -> str | Unbuildable:
        self.asked.add(limit)
        key = self.keys[limit]
        return Unbuildable("compiler crash") if key is None else key

    def run(self, key: str) -> Outcome:
        self.ran[key] += 1
        return Outcome(self.verdicts[key])

    def verdict(self, limit: int) -> Verdict:
        key = self.keys[limit]
        return Verdict.UNRESOLVED if key is None else self.verdicts[key]


class FlakyTarget:
    """A Target that is bad from `first_bad` on, and shows it with probability `rate`; fast."""

    def __init__(self, total: int, first_bad: int, rate: float, rng: random.Random, changes: Sequence[int]) -> None:
        self.total = total
        self.first_bad = first_bad
        self.rate = rate
        self._rng = rng
        self._keys = []
        starts = set(changes)
        key = "0"
        for limit in range(total + 1):
            key = str(limit) if limit in starts else key
            self._keys.append(key)

    def prefetch(self, limits: Sequence[int]) -> None:
        pass

    def object_at(self, limit: int) -> str:
        return self._keys[limit]

    def run(self, key: str) -> Outcome:
        bad = int(key) >= self.first_bad and self._rng.random() < self.rate
        return Outcome(Verdict.BAD if bad else Verdict.GOOD)
