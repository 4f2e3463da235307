"""Compilers that do one thing wrong, made for one test each, and the self-test narrowed to some assumptions."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from mccprobe.doctor.assumptions import assumptions
from mccprobe.doctor.selftest import self_test
from mccprobe.doctor.subject import ProbeAnswer
from mccprobe.targets.mcc import toolchain as mcc_module
from mccprobe.targets.mcc.toolchain import MccPaths, mcc_toolchain
from mccprobe.targets.sim.build import sim_sdk

FAKES = Path(__file__).resolve().parents[1] / "fakes"
# `without "-a" ...` is the driver's own answer to the rest of the command line
HELPERS = """
without() { # a pattern, then the arguments; those that match it are dropped
  pattern=$1; shift; count=$#
  while [ "$count" -gt 0 ]; do
    argument=$1; shift; count=$((count - 1))
    case $argument in
      $pattern) ;;
      -mllvm) case ${1:-} in $pattern) shift; count=$((count - 1)) ;; *) set -- "$@" "$argument" ;; esac ;;
      *) set -- "$@" "$argument" ;;
    esac
  done
  obedient "$@"
}
refuse() { # a pattern, what is said, then the arguments
  pattern=$1 said=$2; shift 2
  for argument in "$@"; do
    case $argument in $pattern) echo "$said '$argument'" >&2; exit 1 ;; esac
  done
  obedient "$@"
}
output_of() { previous=; for argument in "$@"; do [ "$previous" = -o ] && echo "$argument"; previous=$argument; done; }
"""
OBEDIENT = """
obedient() {
  jobs=$(real -### "$@" 2>&1) || { echo "$jobs" >&2; exit 1; }
  jobs=$(printf '%s\\n' "$jobs" | sed "s|^ \\"[^\\"]*\\" \\"-cc1\\"| \\"$self\\" \\"-cc1\\"|")
  case " $* " in
    *" -### "*) printf '%s\\n' "$jobs" >&2 ;;
    *) printf '%s\\n' "$jobs" | grep '^ "' | while IFS= read -r job; do eval "$job" || exit; done ;;
  esac
}
driver_call() { obedient "$@"; }
"""
MakeMcc = Callable[..., Path]
Ask = Callable[..., Mapping[str, ProbeAnswer]]


@pytest.fixture(autouse=True)
def _no_mcc_here(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """As if this machine had no mcc, whatever it has."""
    monkeypatch.setattr(mcc_module, "DEFAULT_MCC", tmp_path / "no-default" / "mcc")
    monkeypatch.delenv("LD_LIBRARY_PATH", raising=False)


@pytest.fixture(scope="session")
def sdk() -> Path:
    """The stand-in SDK's root, for FAKE_SDK."""
    return sim_sdk(Path(os.environ["MCCPROBE_CACHE"])).root


def script(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{text}\n", encoding="utf-8")
    path.chmod(0o755)
    return path


@pytest.fixture
def broken(tmp_path: Path, sdk: Path, monkeypatch: pytest.MonkeyPatch) -> MakeMcc:
    """`broken('driver_call() { ...; }')`: an mcc that looks real, has the stand-in behind it, and does that one thing.

    toolkit: whether a toolkit lies above it.
    """
    monkeypatch.setenv("FAKE_SDK", str(sdk))

    def make(wrong: str = "", *, toolkit: bool = False) -> Path:
        root = tmp_path / ("musa" if toolkit else "alone")
        if toolkit:
            root.mkdir()
            (root / "lib").symlink_to(sdk / "lib")
            (root / "include").symlink_to(sdk / "include")
            (root / "version.json").write_text('{"musa_toolkits": {}, "mcc": {}}', encoding="utf-8")
        return script(root / "bin" / "mcc", f'. {FAKES}/driver.sh\n{HELPERS}\n{OBEDIENT}\n{wrong}\nmain "$@"')

    return make


@pytest.fixture
def ask() -> Ask:
    """`ask(mcc, "jobs-shown")`: what the self-test says of these assumptions, by id."""

    def run(mcc: Path | str, *ids: str, timeout_s: float = 120) -> Mapping[str, ProbeAnswer]:
        table = [one for one in assumptions() if one.id in ids]
        assert len(table) == len(ids), "an id that is not in the table"
        toolchain = mcc_toolchain(MccPaths(str(mcc)))
        return {one.assumption.id: one.answer for one in self_test(toolchain, timeout_s=timeout_s, table=table)}

    return run
