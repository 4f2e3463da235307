"""`mccprobe lint` as one JSON document, and as text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from mccprobe import __version__
from mccprobe.inspection.lines import joined
from mccprobe.objects.isa.lint import Finding, LintResult, Rule

SCHEMA_VERSION = 1


def document(results: Sequence[LintResult], rules: Sequence[Rule]) -> dict[str, Any]:
    """The document that `reports/lint.schema.json` describes."""
    return {
        "schema_version": SCHEMA_VERSION,
        "tool_version": __version__,
        "clean": not any(one.findings for one in results),
        "rules": [
            {"id": one.id, "title": one.title, "source": one.source, "observation": one.observation} for one in rules
        ],
        "images": [
            {
                "origin": one.source.image.origin,
                "target": one.source.listing.target or one.source.image.target,
                "functions": one.functions,
                "unread": one.unread,
                "rules": one.rules,
                "findings": [_finding(item) for item in one.findings],
                "observations": [_finding(item) for item in one.observations],
                "warnings": list(one.source.warnings),
            }
            for one in results
        ],
    }


def _finding(one: Finding) -> dict[str, Any]:
    return {
        "rule": one.rule,
        "certainty": one.certainty,
        "function": one.function,
        "where": one.where,
        "message": one.message,
        "evidence": one.evidence,
    }


def render(results: Sequence[LintResult]) -> str:
    """Findings, then observations, then one line on how many there are."""
    lines: list[str] = []
    for one in results:
        lines += _image(one)
    found = sum(len(one.findings) for one in results)
    functions = sum(one.functions for one in results if one.rules)
    if not any(one.rules for one in results):
        return joined([*lines, "nothing checked"])
    unread = sum(one.unread for one in results if one.rules)
    said = f"{functions} {_functions(functions)} checked"
    if unread:
        said += f", {unread} of them by metadata alone: their code is not here, or has no operands"
    lines.append(f"{'clean' if not found else f'{found} finding' + 's' * (found != 1)}: {said}")
    return joined(lines)


def _functions(number: int) -> str:
    return "function" if number == 1 else "functions"


def _image(one: LintResult) -> Iterator[str]:
    origin = one.source.image.origin
    yield from (f"{origin}: warning: {text}" for text in one.source.warnings)
    if not one.rules:
        yield f"{origin}: no rule here looks at {one.isa} code"
    for word, items in (("", one.findings), ("observation: ", one.observations)):
        for item in items:
            where = f" {item.where}" if item.where else ""
            yield f"{origin}: {item.function}{where}: {word}{item.message} [{item.rule}, {item.certainty}]"
            yield f"    {item.evidence}"
