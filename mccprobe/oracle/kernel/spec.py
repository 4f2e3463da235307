"""kernel.toml as records: how a kernel is built and run, its cases, and what "right" means.

Format: reports/kernel.schema.json. Paths are relative to the file and must exist. Formulas and
conditions are evaluated for every case while loading, so that a bad one is found before a compiler
is started.
"""

from __future__ import annotations

import math
import re
from pathlib import Path

from mccprobe.base.errors import BadDataFile, PathUnusable, UsageError
from mccprobe.base.paths import exists, is_folder
from mccprobe.oracle.kernel.expression import ExpressionError
from mccprobe.oracle.kernel.records import (
    MAX_SIZE,
    SHAPE,
    Case,
    Define,
    Dispatch,
    Expected,
    ExpectedOutcome,
    KernelSpec,
    Published,
    Tolerance,
    parse_shape,
)
from mccprobe.oracle.kernel.shipped import FILE_NAME, find_shipped_kernels, is_shipped, kernels_folder
from mccprobe.oracle.verdict import Verdict
from mccprobe.targets import registry
from mccprobe.targets.flags.datafile import Table, nearest, read_toml, shorten

__all__ = [
    "Case",
    "Define",
    "Dispatch",
    "Expected",
    "ExpectedOutcome",
    "KernelSpec",
    "Published",
    "Tolerance",
    "find_shipped_kernels",
    "is_shipped",
    "kernels_folder",
    "load_kernel",
    "parse_shape",
    "shipped_kernel",
]


_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,99}")
_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,199}")


def load_kernel(path: Path) -> KernelSpec:
    """Read a kernel folder or its kernel.toml. Raises BadDataFile."""
    try:
        file = path / FILE_NAME if is_folder(path) else path
    except PathUnusable as error:
        raise BadDataFile(f"{shorten(str(path))}: cannot be read: {error.problem}", hint=error.hint) from error
    if file != path and not exists(file):
        raise BadDataFile(
            f"{shorten(str(path))}: a folder without {FILE_NAME}",
            hint=f"name a source file, or a folder with a {FILE_NAME} (kernels/README.md)",
        )
    top = read_toml(file)
    cases = tuple(_case(table) for table in _named(top, "cases"))
    if not cases:
        top.fail("cases", "is missing; expected one [[cases]] table at least")
    spec = KernelSpec(
        path=file.resolve(),
        name=_checked(top, "name", _NAME),
        summary=top.text("summary"),
        origin=top.text("origin", ""),
        licence=top.text("licence", ""),
        sources=_paths(top, "sources", required=True),
        host_sources=_paths(top, "host_sources"),
        entry=_checked(top, "entry", _IDENTIFIER),
        compile_args=top.texts("compile_args"),
        link_args=top.texts("link_args"),
        default_case=top.text("default_case", cases[0].name),
        tolerance=_tolerance(top.table("tolerance"), cases) if "tolerance" in top else None,
        cases=cases,
        dispatch=tuple(_dispatch(table, cases) for table in top.tables("dispatch")),
        defines=tuple(_define(table) for table in _named(top, "defines")),
        published=tuple(_published(table) for table in top.tables("published")),
        expected=tuple(_expected(table, cases) for table in top.tables("expected")),
    )
    top.finish()
    names = {case.name for case in cases}
    for index, case in enumerate(cases):
        if case.reduced_for and (case.reduced_for not in names or case.reduced_for == case.name):
            top.fail(f"cases[{index}].reduced_for", f"{shorten(case.reduced_for)} is no other case")
    if spec.default_case not in names:
        top.fail("default_case", f"{shorten(spec.default_case)} is not one of {', '.join(sorted(names))}")
    return spec


def shipped_kernel(name: str) -> KernelSpec:
    """The shipped kernel in folder `name`. Raises UsageError, BadDataFile."""
    folders = {folder.name: folder for folder in find_shipped_kernels()}
    if name not in folders:
        shipped = ", ".join(sorted(folders)) or "none found; MCCPROBE_KERNELS may name their folder"
        near = "".join(f"nearest name: {other}; " for other in nearest(name, folders, 1))
        raise UsageError(f"no shipped kernel {shorten(name)}", hint=f"{near}shipped: {shipped}")
    return load_kernel(folders[name])


def _named(top: Table, key: str) -> list[Table]:
    """Tables whose names differ."""
    tables, seen = top.tables(key), set()
    for table in tables:
        name = table.text("name")
        if name in seen:
            table.fail("name", f"{shorten(name)} is there twice")
        seen.add(name)
    return tables


def _checked(table: Table, key: str, pattern: re.Pattern[str]) -> str:
    value = table.text(key)
    if not pattern.fullmatch(value):
        table.fail(key, f"{shorten(value)} is not a name")
    return value


def _paths(top: Table, key: str, *, required: bool = False) -> tuple[Path, ...]:
    paths = []
    for index, name in enumerate(top.texts(key, required=required)):
        path = top.path.parent / name
        try:
            there = path.is_file()
        except OSError:  # a name that no file system takes
            there = False
        if not there:
            hint = f"paths are relative to {top.path.parent}"
            top.fail(f"{key}[{index}]", f"{shorten(name)}: no such file", hint=hint)
        paths.append(path.resolve())
    return tuple(paths)


def _case(table: Table) -> Case:
    name = _checked(table, "name", _NAME)
    if SHAPE.fullmatch(name):
        table.fail("name", f"{name} reads as a shape")
    case = Case(
        name=name,
        m=table.integer("m", low=1, high=MAX_SIZE),
        n=table.integer("n", low=1, high=MAX_SIZE),
        k=table.integer("k", low=1, high=MAX_SIZE),
        legacy=table.boolean("legacy", False),
        toolchains=table.texts("toolchains"),
        reduced_for=table.text("reduced_for", ""),
    )
    for index, toolchain in enumerate(case.toolchains):
        if toolchain not in registry.names("check"):
            known = ", ".join(sorted(registry.names("check")))
            table.fail(f"toolchains[{index}]", f"{shorten(toolchain)} is not one of {known}")
    table.finish()
    return case


def _tolerance(table: Table, cases: tuple[Case, ...]) -> Tolerance:
    kind = table.choice("kind", ("absolute", "relative"))
    found = Tolerance(kind, table.text("formula"), table.text("reason"))
    table.finish()
    for case in cases:
        try:
            limit = found.limit(case)
        except (ExpressionError, OverflowError) as error:
            _bad_expression(table, "formula", found.formula, error)
        if not (math.isfinite(limit) and limit >= 0):
            table.fail("formula", f"is {limit:g} for case {case.name}; expected a number from 0 up")
    return found


def _dispatch(table: Table, cases: tuple[Case, ...]) -> Dispatch:
    found = Dispatch(_checked(table, "kernel", _IDENTIFIER), table.text("condition"))
    table.finish()
    for case in cases:
        try:
            found.holds(case)
        except ExpressionError as error:
            _bad_expression(table, "condition", found.condition, error)
    return found


def _bad_expression(table: Table, key: str, text: str, error: Exception) -> None:
    raise BadDataFile(
        f"{table.path}: {table.at}.{key}: {shorten(text)}: {error}",
        hint="for example 0.01*sqrt(K/512), or M % 256 == 0 && N % 256 == 0",
    ) from error


def _define(table: Table) -> Define:
    name = _checked(table, "name", _IDENTIFIER)
    found = Define(name, table.scalar("default"), table.scalars("values"), table.text("reason", ""))
    table.finish()
    if found.values and found.default not in found.values:
        table.fail("default", f"{shorten(str(found.default))} is not in values")
    return found


def _published(table: Table) -> Published:
    found = Published(
        metric=table.text("metric"),
        value=table.scalar("value"),
        subject=table.text("subject", ""),
        unit=table.text("unit", ""),
        source=table.text("source"),
        approximate=table.boolean("approximate", False),
    )
    table.finish()
    return found


def _expected(table: Table, cases: tuple[Case, ...]) -> Expected:
    found = Expected(
        kernel=_checked(table, "kernel", _IDENTIFIER),
        case=table.choice("case", [case.name for case in cases]),
        verdict=Verdict(table.choice("verdict", (Verdict.GOOD.value, Verdict.BAD.value))),
        reason=table.text("reason"),
        on=tuple(_outcome(entry) for entry in table.tables("on")),
    )
    table.finish()
    return found


def _outcome(table: Table) -> ExpectedOutcome:
    share = table.numbers("wrong_share", low=0, high=1) or (0.0, 1.0)
    if len(share) != 2 or share[0] > share[1]:
        table.fail("wrong_share", "expected the least and the largest share, such as [0.74, 0.76]")
    found = ExpectedOutcome(
        toolchain=table.choice("toolchain", frozenset(registry.names("check"))),
        verdict=Verdict(table.choice("verdict", [verdict.value for verdict in Verdict])),
        settings=_assignments(table, "settings"),
        defines=_assignments(table, "defines"),
        wrong_share=(share[0], share[1]),
        told=table.text("told", ""),
    )
    table.finish()
    return found


def _assignments(table: Table, key: str) -> tuple[tuple[str, str], ...]:
    """["NAME=VALUE", ...]"""
    found = []
    for index, text in enumerate(table.texts(key)):
        name, equals, value = text.partition("=")
        if not equals or not _IDENTIFIER.fullmatch(name):
            table.fail(f"{key}[{index}]", f"{shorten(text)} is not NAME=VALUE")
        found.append((name, value))
    return tuple(found)
