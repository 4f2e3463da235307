"""Undefined behaviour of a program that is LLVM IR: no front end instruments it, so its text is changed instead.

Each change keeps the result of every program that is right: flags that make poison are dropped and shift amounts are
masked; `undef` and `poison` get one value, then another; locals are filled. A -O0 build that gives another result with
one of them has used what has no value (LangRef, "Poison Values", "Undefined Values").
"""

from __future__ import annotations

import re
from collections.abc import Callable

from mccprobe.explain.screen.weigh import PATTERN
from mccprobe.oracle.verdict import Outcome
from mccprobe.report.why_record import ScreenCheck, ScreenOutcome

POISON = "poison in the IR"
UNDEF = "undef in the IR"
_LINE = re.compile(r"^[ \t]+\S.*$", re.MULTILINE)
_FLAGS = re.compile(r"(?<= )(?:nsw|nuw|exact|inbounds|nusw|nneg|disjoint|samesign|nnan|ninf|fast) ")
_IS_POISON = re.compile(r"(@llvm\.(?:ctlz|cttz|abs)\.[^(]*\(.*, i1 )true\)")
_METADATA = re.compile(r", !(?:range|nonnull|align|noundef|dereferenceable(?:_or_null)?) !\d+")
_SHIFT = re.compile(
    r"^(?P<indent>[ \t]+)(?P<result>%\S+) = (?P<op>shl|lshr|ashr) "
    r"(?P<type>i(?P<bits>\d+)|<(?P<lanes>\d+) x i(?P<each>\d+)>) (?P<value>.*), (?P<amount>%[^\s,]+)(?P<rest>.*)$"
)
_CONSTANT_SHIFT = re.compile(r"^[ \t]+%\S+ = (?:shl|lshr|ashr) i(?P<bits>\d+) .*, (?P<amount>\d+)(?:, !.*)?$")
_NO_VALUE = re.compile(r"(?<=[ \[<{(])(?:undef|poison)\b(?![(.])")
_TYPED = re.compile(r"\bi(\d+) (?:(?:noundef|signext|zeroext|inreg) )*(?:undef|poison)\b")
_SECOND = re.compile(r"\b(i\d+) (\S+), (?:undef|poison)\b")
_PHI = re.compile(r"= phi i\d+ ")
_VECTOR = re.compile(r"<(\d+) x i(\d+)> (?:undef|poison)\b")
_GLOBAL = re.compile(r"^@[^\n]* = [^\n]*$", re.MULTILINE)
_ALLOCA = re.compile(
    r"^(?P<indent>[ \t]+)(?P<result>%\S+) = alloca (?P<type>[^,\n]+|[{\[<][^\n]*?[}\]>])(?:, align \d+)?(?:, !.*)?$",
    re.MULTILINE,
)
_FILL = 0xAA  # as clang's -ftrivial-auto-var-init=pattern fills


def without_poison(module: str) -> str:
    """The same module without the flags that make poison, and with each shift amount below the width."""
    return _LINE.sub(lambda found: _masked(_plain(found.group())), module)


def _plain(line: str) -> str:
    return _METADATA.sub("", _IS_POISON.sub(r"\1false)", _FLAGS.sub("", line)))


def _masked(line: str) -> str:
    constant = _CONSTANT_SHIFT.match(line)
    if constant:
        bits, amount = int(constant["bits"]), int(constant["amount"])
        return line[: constant.start("amount")] + str(amount % bits) + line[constant.end("amount") :]
    shift = _SHIFT.match(line)
    if not shift:
        return line
    bits = int(shift["bits"] or shift["each"])
    if bits & (bits - 1):
        return line  # no mask keeps exactly the amounts below such a width
    lanes = shift["lanes"]
    mask = f"<{', '.join([f'i{bits} {bits - 1}'] * int(lanes))}>" if lanes else str(bits - 1)
    new = f"%mccprobe.amount.{re.sub(r'[^0-9A-Za-z]', '.', shift['result'][1:])}"
    before = f"{shift['indent']}{new} = and {shift['type']} {shift['amount']}, {mask}\n"
    whole = f"{shift['indent']}{shift['result']} = {shift['op']} {shift['type']} {shift['value']}, {new}"
    return f"{before}{whole}{shift['rest']}"


def with_values(module: str, *, ones: bool) -> str:
    """The same module with a value for each `undef` and `poison`: zero, or all ones where it is an integer."""

    def change(found: re.Match[str]) -> str:
        line = found.group()
        if "shufflevector" in line or "@llvm.dbg." in line or ' c"' in line or not _NO_VALUE.search(line):
            return line
        if ones:
            line = _TYPED.sub(lambda typed: f"i{typed[1]} {_ones(typed[1])}", line)
            line = _SECOND.sub(lambda second: f"{second[1]} {second[2]}, {_ones(second[1][1:])}", line)
            line = _VECTOR.sub(
                lambda vector: f"<{vector[1]} x i{vector[2]}> <"
                + ", ".join([f"i{vector[2]} {_ones(vector[2])}"] * int(vector[1]))
                + ">",
                line,
            )
            if _PHI.search(line):
                line = _NO_VALUE.sub("-1" if "phi i1 " not in line else "true", line)
        return _NO_VALUE.sub("zeroinitializer", line)

    return _LINE.sub(change, _GLOBAL.sub(change, module))


def _ones(bits: str) -> str:
    return "true" if bits == "1" else "-1"


def with_filled_locals(module: str) -> str:
    """The same module with a pattern in every local of a constant size."""
    typed = not re.search(r"\bptr\b", module)
    pointer = "i8*" if typed else "ptr"
    suffix = "p0i8" if typed else "p0"
    name = f"@llvm.memset.{suffix}.i64"
    made = 0

    def change(found: re.Match[str]) -> str:
        nonlocal made
        kind, result, indent = found["type"].strip(), found["result"], found["indent"]
        made += 1
        size = (
            f"ptrtoint ({kind}* getelementptr ({kind}, {kind}* null, i32 1) to i64)"
            if typed
            else f"ptrtoint (ptr getelementptr ({kind}, ptr null, i32 1) to i64)"
        )
        lines = [found.group()]
        if typed:
            lines.append(f"{indent}%mccprobe.local.{made} = bitcast {kind}* {result} to i8*")
            result = f"%mccprobe.local.{made}"
        lines.append(f"{indent}call void {name}({pointer} {result}, i8 {_FILL}, i64 {size}, i1 false)")
        return "\n".join(lines)

    changed = _ALLOCA.sub(change, module)
    if made and f"{name}(" not in module:
        changed += f"\ndeclare void {name}({pointer}, i8, i64, i1)\n"
    return changed


AtO0 = Callable[[str, int], tuple[Outcome | None, str]]
Bad = Callable[[str, str, str, str], ScreenCheck]


class IrChecks:
    """The rows of a program that is IR.

    module: its text, None where there is none. at_o0: the outcome of a text built at -O0 in its
    run of that number, or None and why.
    turns_right: (row, module, changed, means), is the text right when it is built as the bad build is?
    """

    def __init__(self, module: Callable[[], str | None], at_o0: AtO0, turns_right: Bad) -> None:
        self._module = module
        self._at_o0 = at_o0
        self._turns_right = turns_right

    def rows(self, *, cheap: bool = False) -> list[tuple[str, str, Callable[[], ScreenCheck]]]:
        """(name, part, check). cheap: without trials of the bad build."""
        return [
            (POISON, "program", lambda: self._poison(cheap=cheap)),
            (UNDEF, "program", lambda: self._undef(cheap=cheap)),
            (PATTERN, "program", self._pattern),
        ]

    def _poison(self, *, cheap: bool) -> ScreenCheck:
        means = "the program uses the result of an operation that is poison (overflow, or a shift by its width or more)"
        return self._compared(
            POISON, lambda module: (module, without_poison(module)), means, "nothing in it can make poison", cheap=cheap
        )

    def _undef(self, *, cheap: bool) -> ScreenCheck:
        means = "the program uses a value that is undef or poison"
        return self._compared(
            UNDEF,
            lambda module: (with_values(module, ones=False), with_values(module, ones=True)),
            means,
            "nothing in it is undef or poison",
            cheap=cheap,
        )

    def _pattern(self) -> ScreenCheck:
        means = "the program reads a local that it never wrote"
        return self._compared(
            PATTERN, lambda module: (module, with_filled_locals(module)), means, "it has no locals", cheap=True
        )

    def _compared(
        self, name: str, change: Callable[[str], tuple[str, str]], means: str, nothing: str, *, cheap: bool
    ) -> ScreenCheck:
        """Two texts of one program, built at -O0: they print the same unless it uses what has no value."""
        module = self._module()
        if module is None:
            return ScreenCheck(name, "program", ScreenOutcome.NOT_RUN, "the IR cannot be printed")
        one, other = change(module)
        if one == other:
            return ScreenCheck(name, "program", ScreenOutcome.CLEAN, nothing)
        first, why = self._at_o0(one, 0)
        second, why_too = self._at_o0(other, 0)
        if first is None or second is None:
            return ScreenCheck(name, "program", ScreenOutcome.NOT_RUN, f"it does not build: {why or why_too}")
        if first != second:
            again, _ = self._at_o0(one, 1)
            if again != first:
                return ScreenCheck(name, "program", ScreenOutcome.HINT, "the -O0 build differs from run to run")
            text = f"{means}: the -O0 build is {_described(first)}, and {_described(second)} with another value"
            return ScreenCheck(name, "program", ScreenOutcome.FINDING, text)
        if cheap:
            return ScreenCheck(name, "program", ScreenOutcome.CLEAN, "the same at -O0 without it")
        return self._turns_right(name, module, other, means)


def _described(outcome: Outcome) -> str:
    return f"{outcome.verdict} ({outcome.reason})"
