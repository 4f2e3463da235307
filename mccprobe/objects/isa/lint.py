"""Rules over instruction streams and metadata: what is suspicious, on what evidence, how certain.

A rule reports only what should not be in a compiler's output; what is merely odd is an observation and
changes no exit code. `certainty` says what a finding is worth:

    contradiction   two things that the compiler says exclude each other
    measured        counted from bytes, against a figure whose source is told
    reported        the compiler says it itself
    suspected       a pattern that somebody suspects; the mechanism is not public
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from mccprobe.objects.binary.records import KernelMetadata
from mccprobe.objects.isa.diff import kernels_by_name
from mccprobe.objects.isa.disassemble import ImageListing
from mccprobe.objects.isa.flow import Flow, analyse, isa_of
from mccprobe.objects.isa.mtgpu.listing import FORMAT as OPEN_FORMAT
from mccprobe.objects.isa.pipes import UNKNOWN
from mccprobe.objects.isa.records import Function, Instruction

SPILL_THRESHOLD_BYTES = 16  # article: 8 private bytes are "metadata level", no spill


@dataclass(frozen=True)
class Finding:
    """rule: its id. where: a place in the listing, "" for the whole function. evidence: what was seen."""

    rule: str
    certainty: str
    function: str
    where: str
    message: str
    evidence: str


@dataclass(frozen=True)
class Context:
    """What a rule may look at: one function, its control flow, its kernel's metadata, its module's symbols."""

    function: Function
    flow: Flow
    isa: str
    kernel: KernelMetadata | None
    symbols: dict[str, int]
    functions: int  # of the image
    spill_threshold_bytes: int


Check = Callable[[Context], Iterator[Finding]]


@dataclass(frozen=True)
class Rule:
    """id and title of a rule, why it is one, and its check. observation: it reports nothing that must be wrong."""

    id: str
    title: str
    source: str
    isas: tuple[str, ...]
    check: Check
    observation: bool = False


@dataclass(frozen=True)
class LintResult:
    """One image. rules: how many look at its instruction set; with none nothing was checked.

    unread: functions without a decoded body, of which the metadata alone was looked at.
    """

    source: ImageListing
    isa: str
    findings: tuple[Finding, ...]
    observations: tuple[Finding, ...]
    functions: int
    rules: int
    unread: int


def is_read(one: Instruction, by_class: bool = False) -> bool:
    """True if the listing has it with its operands: a disassembler decoded it, or (by_class) the open table."""
    return one.pipe != UNKNOWN and (by_class or not one.confidence)


def lint_images(
    sources: Sequence[ImageListing], rules: Sequence[Rule], *, spill_threshold_bytes: int = SPILL_THRESHOLD_BYTES
) -> list[LintResult]:
    """Apply all rules to all images."""
    return [_lint(one, rules, spill_threshold_bytes) for one in sources]


def _lint(source: ImageListing, rules: Sequence[Rule], threshold: int) -> LintResult:
    isa = isa_of(source.listing.format)
    kernels = kernels_by_name(source.image)
    findings: list[Finding] = []
    observations: list[Finding] = []
    functions = {function.name: function for function in source.listing.functions}
    applied = sum(isa in rule.isas for rule in rules)
    for name in kernels:  # metadata speaks also where the body is missing
        functions.setdefault(name, Function(name, ()))
    by_class = source.listing.format == OPEN_FORMAT
    unread = sum(not any(is_read(one, by_class) for one in function.instructions) for function in functions.values())
    for function in functions.values():
        context = Context(
            function,
            analyse(function, isa),
            isa,
            kernels.get(function.name),
            source.listing.symbols,
            len(functions),
            threshold,
        )
        for rule in rules:
            if isa in rule.isas:
                (observations if rule.observation else findings).extend(rule.check(context))
    return LintResult(source, isa, tuple(findings), tuple(observations), len(functions), applied, unread)
