"""The pass table against real compilers: every title is known, every option does what the table says."""

from __future__ import annotations

import difflib
import importlib.util
import re
import subprocess
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest

from mccprobe.targets.passes.table import load_pass_table

_spec = importlib.util.spec_from_file_location("collect_titles", Path(__file__).with_name("collect_titles.py"))
assert _spec is not None and _spec.loader is not None
collect = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(collect)

PASSES = list(load_pass_table().passes())
OPTIONS = sorted({option for info in PASSES for option in (*info.neutralisers, *info.partial)})
VERSIONS = (13, 14, 15, 16, 19)

SAMPLES = [
    ["p.c", "-O0"],
    ["p.c", "-O2"],
    ["p.c", "-Os", "-g"],
    ["p.c", "-O3", "-ffast-math", "-march=skylake-avx512"],
    ["p.c", "-O2", "-flto"],
    ["p.c", "-O3", "-mllvm", "-enable-newgvn", "-mllvm", "-enable-loopinterchange", "-mllvm", "-enable-loop-flatten"],
    ["p.cc", "-O2"],
    ["p.cl", "-O2", *collect.AMD, "-mcpu=gfx906"],
    ["p.cl", "-O3", *collect.AMD, "-mcpu=gfx1030"],
]


@pytest.mark.toolchain
@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("arguments", SAMPLES, ids=" ".join)
def test_every_title_is_in_the_table(
    compiler: Callable[..., str], tmp_path: Path, version: int, arguments: list[str]
) -> None:
    count, lacking = collect.missing(compiler(version), arguments, tmp_path)
    assert lacking == []
    assert count >= (1 if "-O0" in arguments else 40), "the bisect log was not read"


UNKNOWN = re.compile(r"Unknown command line argument '(-[^']+)'")


def _refused(name: str, options: list[str]) -> set[str]:
    """Those that the compiler does not know; it names them all at once."""
    argv = [name, "-O1", "-x", "c", "-c", "/dev/null", "-o", "/dev/null"]
    run = subprocess.run(
        [*argv, *(word for option in options for word in ("-mllvm", option))],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    refused = set(UNKNOWN.findall(run.stderr))
    assert run.returncode == 0 or refused, run.stderr
    return refused


@pytest.mark.toolchain("clang-14", "clang-19")
def test_every_option_is_taken_by_clang_14_or_19() -> None:
    refused = {name: _refused(name, OPTIONS) for name in ("clang-14", "clang-19")}
    assert refused["clang-14"] & refused["clang-19"] == set()
    # clang 14 is what mcc is built on: only options of passes that came later may be missing there
    assert refused["clang-14"] == {
        "-amdgpu-atomic-optimizer-strategy=None",
        "-amdgpu-enable-delay-alu=false",
        "-amdgpu-enable-image-intrinsic-optimizer=false",
        "-amdgpu-enable-rewrite-partial-reg-uses=false",
        "-amdgpu-enable-vopd=false",
        "-disable-cfi-fixup",
        "-disable-replace-with-vec-lib",
        "-disable-select-optimize",
    }


def _titles(name: str, folder: Path, *options: str) -> set[str]:
    more = [word for option in options for word in ("-mllvm", option)]
    return set(collect.iter_titles(name, ["p.c", "-O2", *more], folder))


# The pass that canonicalises freeze instructions for loop strength reduction goes with it.
GOES_WITH = {"-disable-lsr": {"Canonicalize Freeze Instructions in Loops"}}


@pytest.mark.toolchain("clang-14")
def test_options_take_no_other_pass_away(tmp_path: Path) -> None:
    base = _titles("clang-14", tmp_path)
    tried = 0
    for info in PASSES:
        for option in info.neutralisers:
            if info.title not in base or info.kind == "ir":
                continue
            tried += 1
            gone = base - _titles("clang-14", tmp_path, option)
            assert gone <= {info.title} | GOES_WITH.get(option, set()), option
    assert tried >= 20


BANNER = re.compile(r"^(?:# )?\*\*\* IR Dump (Before|After) .*\(([\w-]+)\) \*\*\*", re.MULTILINE)
SLOT = re.compile(r"^\d+B", re.MULTILINE)


def _changed_lines(name: str, source: Path, arguments: Iterable[str], *options: str) -> dict[str, int]:
    """Lines that each of these passes changes in all functions together; without those that do not run."""
    listed = ",".join(arguments)
    wanted = [f"-print-before={listed}", f"-print-after={listed}", *options]
    run = subprocess.run(
        [name, "-w", "-O2", "-S", str(source), "-o", "/dev/null"]
        + [word for option in wanted for word in ("-mllvm", option)],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert run.returncode == 0, run.stderr[-400:]
    parts = BANNER.split(run.stderr)[1:]
    dumps: dict[str, dict[str, list[str]]] = {}
    for when, argument, text in zip(parts[::3], parts[1::3], parts[2::3], strict=True):
        sides = dumps.setdefault(argument, {"Before": [], "After": []})
        sides[when] += [line.strip() for line in SLOT.sub("", text).split("\n")]
    return {
        argument: sum(line[0] in "+-" for line in difflib.ndiff(sides["Before"], sides["After"]))
        for argument, sides in dumps.items()
    }


@pytest.mark.toolchain("clang-14")
def test_a_pass_that_is_switched_off_changes_nothing(tmp_path: Path) -> None:
    source = tmp_path / "p.c"
    source.write_text(collect.C)
    base = _titles("clang-14", tmp_path)
    tried = [info for info in PASSES if info.title in base and info.kind not in ("ir", "isel") and info.neutralisers]
    plain = _changed_lines("clang-14", source, {info.argument for info in tried})
    still = {}
    for info in tried:
        for option in info.neutralisers:
            changed = _changed_lines("clang-14", source, [info.argument], option)
            if changed.get(info.argument):
                still[f"{info.title} with {option}"] = changed
    assert still == {}
    acting = sorted(info.title for info in tried if plain.get(info.argument))
    assert len(acting) >= 6, f"the program makes too few passes act: {acting}"
