"""`opt -passes=` texts: the pass as the compiler's own pipeline runs it, with its parameters and nesting.

Two sources, both asked of the very opt: `-print-pipeline-passes` shows the pipeline with parameters,
`-print-passes` says at which level a pass runs.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

MOST_CANDIDATES = 8  # spellings tried; a pass stands in a pipeline with two or three sets of parameters
_HEADING = re.compile(r"^([A-Za-z]+) passes(?: with params)?:$")
_LEVELS = {"Module": "module", "CGSCC": "cgscc", "Function": "function", "LoopNest": "loop", "Loop": "loop"}
_WRAPPED = {"module": ("{}",), "cgscc": ("cgscc({})",), "function": ("function({})",),
            "loop": ("function(loop({}))", "function(loop-mssa({}))")}  # fmt: skip


@dataclass(frozen=True)
class _Step:
    """One element of a pipeline text. adaptors: the names it stands in, outermost first."""

    name: str
    text: str
    adaptors: tuple[str, ...]


def pipeline_steps(text: str) -> Iterator[_Step]:
    """The passes of a pipeline text in order: `a,function<eager-inv>(b<x;y>,loop(c))`."""
    adaptors: list[str] = []
    current = ""
    angle = 0
    for character in text + ",":
        if angle or character == "<":
            current += character
            angle += (character == "<") - (character == ">")
        elif character == "(":
            adaptors.append(current)
            current = ""
        elif character in ",)\n":
            if current.strip():
                yield _Step(current.partition("<")[0].strip(), current.strip(), tuple(adaptors))
            current = ""
            if character == ")" and adaptors:
                adaptors.pop()
        else:
            current += character


def pass_level(listing: str, name: str) -> str:
    """What a pass runs on ("module", "cgscc", "function", "loop"), from -print-passes; "" where it is not listed."""
    level = ""
    for line in listing.splitlines():
        heading = _HEADING.match(line)
        if heading or line.endswith(":"):
            level = _LEVELS.get(heading.group(1), "") if heading else ""
        elif level and line.strip().partition("<")[0] == name:
            return level
    return ""


def single_pass_texts(name: str, pipeline: str, listing: str) -> list[str]:
    """Texts for -passes= that run this pass alone: as the pipeline has it, then without parameters."""
    found = []
    for step in pipeline_steps(pipeline):
        if step.name != name:
            continue
        inner = next((adaptor for adaptor in reversed(step.adaptors) if adaptor.startswith("loop")), "")
        level = "loop" if inner else pass_level(listing, name) or _level_of(step.adaptors)
        wrappers = (f"function({inner}({{}}))",) if inner else _WRAPPED[level]
        found += [wrapper.replace("{}", step.text) for wrapper in wrappers]
    level = pass_level(listing, name)
    found += [wrapper.replace("{}", name) for wrapper in _WRAPPED.get(level, ())]
    return list(dict.fromkeys(found))[:MOST_CANDIDATES]


def _level_of(adaptors: tuple[str, ...]) -> str:
    names = [adaptor.partition("<")[0] for adaptor in adaptors]
    return next((name for name in reversed(names) if name in ("function", "cgscc")), "module")
