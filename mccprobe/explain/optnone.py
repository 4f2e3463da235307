"""One function left unoptimised: LLVM's -force-attribute, which every clang since 3.7 takes behind -mllvm."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from mccprobe.build.job import CompileJob
from mccprobe.build.unit import UNLIMITED, Unit


def optnone_options(symbol: str) -> tuple[str, str]:
    """The two LLVM options; IR with optnone is valid only where the function is noinline as well."""
    return f"-force-attribute={symbol}:noinline", f"-force-attribute={symbol}:optnone"


def optnone_job(unit: Unit, symbol: str, options: Sequence[str] = (), *, limit: int = UNLIMITED) -> CompileJob:
    """The compile with this one function left unoptimised. options: further LLVM options."""
    first, second = optnone_options(symbol)
    job = unit.job(limit, options=[*options, first], label=f"{unit.tag} with optnone on {symbol}")
    at = job.argv.index(first) + 1  # an option given twice: Unit.job takes each name once
    return replace(job, argv=(*job.argv[:at], "-mllvm", second, *job.argv[at:]))
