"""No reader is forgotten: the table has every function of the package that reads text or bytes from outside."""

from __future__ import annotations

import ast
import importlib
from collections.abc import Iterator
from pathlib import Path

import pytest

from .reader import ROOT
from .readers import NOT_READERS, rows

PACKAGE = ROOT / "mccprobe"
BEGINNINGS = ("read_", "parse_", "load_", "decode_", "split_", "harvest_", "from_document", "from_dict")
NAMES = frozenset(("read", "load", "parse", "harvest", "unpack", "expand"))
FROM_OUTSIDE = frozenset("bytes str Path Any object memoryview dict Mapping Sequence Table".split())
COVERED = {name for reader in rows() for name in reader.reads}


def modules() -> Iterator[tuple[str, ast.Module]]:
    for path in sorted(PACKAGE.rglob("*.py")):
        name = ".".join(path.relative_to(PACKAGE).with_suffix("").parts)
        yield name, ast.parse(path.read_text(encoding="utf-8"))


def takes_from_outside(function: ast.FunctionDef) -> bool:
    given = [one for one in (*function.args.args, *function.args.posonlyargs) if one.arg not in ("self", "cls")]
    parts = [part for one in given if one.annotation for part in ast.walk(one.annotation)]
    return any(isinstance(part, ast.Name) and part.id in FROM_OUTSIDE for part in parts)


def readers_in(tree: ast.Module) -> Iterator[str]:
    for node in tree.body:
        inside = node.body if isinstance(node, ast.ClassDef) and not node.name.startswith("_") else [node]
        owner = f"{node.name}." if isinstance(node, ast.ClassDef) else ""
        for function in inside:
            if isinstance(function, ast.FunctionDef) and not function.name.startswith("_"):
                reads = function.name.startswith(BEGINNINGS) or function.name in NAMES
                if reads and takes_from_outside(function):
                    yield owner + function.name


def test_every_reader_is_in_the_table() -> None:
    found = {f"{module}.{name}" for module, tree in modules() for name in readers_in(tree)}
    assert len(found) > 30
    missing = sorted(found - COVERED - NOT_READERS.keys())
    assert not missing, f"add a row to tests/hostile/readers.py, or a reason to NOT_READERS, for: {missing}"


@pytest.mark.parametrize("name", sorted(COVERED | NOT_READERS.keys()))
def test_what_the_table_names_is_there(name: str) -> None:
    parts = name.split(".")
    place = next(
        importlib.import_module(".".join(("mccprobe", *parts[:count])))
        for count in range(len(parts) - 1, 0, -1)
        if (PACKAGE / Path(*parts[:count])).with_suffix(".py").is_file()
    )
    module = place.__name__.removeprefix("mccprobe.").split(".")
    for part in parts[len(module) :]:
        place = getattr(place, part)
    assert callable(place)


# Of data that comes with the package: nobody else writes it, and a test reads all of it.
PACKAGE_DATA = frozenset(
    (
        "objects.isa.pipes",
        "objects.isa.mtgpu.table",
        "targets.passes.mixes",
        "targets.passes.table",
        "report.bug_report_words",
        "doctor.assumptions",
    )
)
PACKAGE_DATA |= {"doctor.surroundings"}
PARSERS = frozenset(("json.loads", "json.load", "tomllib.loads", "tomllib.load", "orjson.loads"))


def catches(node: ast.Try | ast.With, wanted: str) -> bool:
    if isinstance(node, ast.With):  # contextlib.suppress
        places: list[ast.AST] = [item.context_expr for item in node.items]
    else:
        places = [handler.type for handler in node.handlers if handler.type is not None]
    names = [one.id for place in places for one in ast.walk(place) if isinstance(one, ast.Name)]
    return wanted in names or "Exception" in names


def unguarded(tree: ast.AST, inside: tuple[ast.Try | ast.With, ...] = ()) -> Iterator[int]:
    """Lines of parses of foreign documents whose damage, or nesting without end, nobody catches."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.Call) and ast.unparse(node.func) in PARSERS:
            wanted = ("RecursionError", "ValueError")
            if not all(any(catches(outer, name) for outer in inside) for name in wanted):
                yield node.lineno
        outer = (*inside, node) if isinstance(node, ast.Try | ast.With) else inside
        yield from unguarded(node, outer)


def test_nesting_without_end_is_caught_wherever_a_document_is_parsed() -> None:
    """json and tomllib raise RecursionError for `[[[[...`, which is no ValueError."""
    found = [f"{module}:{line}" for module, tree in modules() if module not in PACKAGE_DATA for line in unguarded(tree)]
    # the parser itself, whose callers catch; and a document that we wrote a line before
    allowed = {"targets.flags.datafile"}
    assert [one for one in found if one.split(":")[0] not in allowed] == []
