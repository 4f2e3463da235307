"""Edits that are kept only when right: the article's safe_edit, without the hand work.

begin keeps the version that the gate passed; test runs the gate on what is there now; keep makes it the new
last good version, but only the very files that passed; revert puts the last good version back.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mccprobe.base.console import number_of
from mccprobe.base.errors import BadDataFile, EditState
from mccprobe.oracle.kernel.shipped import FILE_NAME
from mccprobe.oracle.kernel.spec import KernelSpec, load_kernel
from mccprobe.oracle.verdict import Verdict
from mccprobe.tuning.check.check import GateReport
from mccprobe.tuning.cycle.versions import FOLDER, EditStore, Version, read_version

Gate = Callable[[KernelSpec], GateReport]


@dataclass(frozen=True)
class EditOutcome:
    """What one command did. done: False if the gate (or the state) did not allow it. gate: None if none was run.

    version: digest of the files now; good: of the last good version. files: those that differ between them, or
    that were put back.
    """

    action: str
    done: bool
    text: str
    kernel: KernelSpec
    version: str
    good: str | None
    gate: GateReport | None = None
    files: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        return {
            "action": self.action,
            "done": self.done,
            "text": self.text,
            "kernel": self.kernel.name,
            "folder": str(self.kernel.folder),
            "version": self.version,
            "good": self.good,
            "verdict": self.gate.verdict.value if self.gate else None,
            "reasons": self.gate.reasons() if self.gate else [],
            "files": list(self.files),
            "notes": list(self.notes),
        }


def begin(kernel: KernelSpec, gate: Gate, *, unchecked: bool = False) -> EditOutcome:
    """Open an edit: what is there becomes the last good version if the gate passes it.

    unchecked: without a gate, for a kernel that is wrong and is to be mended. Raises EditState.
    """
    store = EditStore(kernel)
    with store.locked():
        if store.state("open.json") is not None:
            raise EditState(
                f"{kernel.folder}: an edit is open already", hint="mccprobe edit keep, or edit revert, first"
            )
        version = read_version(kernel)
        report = None
        if not unchecked:
            report = gate(kernel)
            if not report.passed or read_version(kernel).digest != version.digest:
                text = "no edit opened: " + _why_not(report, kernel)
                return EditOutcome("begin", False, text, kernel, version.digest, store.good(), report)
        store.keep(version)
        store.write_state("good.json", _good_state(version, report))
        store.write_state("open.json", {"schema_version": 1, "from": version.digest, "test": None, "reverting": False})
        text = "edit open; the version that was there is kept" + (
            " UNCHECKED" if unchecked else " as the last good one"
        )
        return EditOutcome("begin", True, text, kernel, version.digest, version.digest, report)


def test(kernel: KernelSpec, gate: Gate, asked: Mapping[str, Any] | None = None) -> EditOutcome:
    """Run the gate on what is there now and remember the answer for these very files. Raises EditState.

    asked: what steers the gate (compiler, flags, cases ...), as JSON has it.
    """
    store = EditStore(kernel)
    with store.locked():
        state = _require_open(store)
        version, report, same = _gated(kernel, gate)
        if same:
            store.write_state("open.json", {**state, "test": {**_good_state(version, report), "asked": asked}})
        passed = report.passed and same
        text = "passed; mccprobe edit keep keeps it" if passed else f"not passed: {_why_not(report, kernel)}"
        return EditOutcome(
            "test", passed, text, kernel, version.digest, store.good(), report, *_differences(store, version)
        )


def keep(kernel: KernelSpec, gate: Gate, asked: Mapping[str, Any] | None = None) -> EditOutcome:
    """What is there becomes the last good version and the edit is closed, if the gate passes it.

    A test that passed with these very files, and was asked the same, counts; otherwise the gate is run. Raises
    EditState.
    """
    store = EditStore(kernel)
    with store.locked():
        state = _require_open(store)
        version = read_version(kernel)
        tested = state.get("test") or {}
        report: GateReport | None = None
        passed = tested.get("verdict") == Verdict.GOOD.value and tested.get("asked") == asked
        if tested.get("digest") != version.digest or not passed:
            version, report, same = _gated(kernel, gate)
            if not report.passed or not same:
                text = f"not kept, the edit stays open: {_why_not(report, kernel)}"
                return EditOutcome("keep", False, text, kernel, version.digest, store.good(), report)
            tested = _good_state(version, report)
        files, notes = _differences(store, version)
        store.keep(version)
        store.write_state("good.json", tested)
        store.close_edit()
        return EditOutcome(
            "keep",
            True,
            "kept as the last good version; the edit is closed",
            kernel,
            version.digest,
            version.digest,
            report,
            files,
            notes,
        )


def revert(kernel_path: Path) -> EditOutcome:
    """Put the last good version back and close the edit. What is replaced is kept among the versions.

    kernel_path: its folder; kernel.toml itself may be what the edit broke. Raises EditState.
    """
    store, kernel = _store_at(kernel_path)
    with store.locked():
        state = store.state("open.json")
        good = store.good()
        if state is None or good is None:
            raise EditState(f"{kernel_path}: no edit is open", hint="mccprobe edit begin opens one")
        version = store.load(good)
        notes = []
        if kernel is not None and not state.get("reverting"):
            rejected = read_version(kernel)
            store.keep(rejected)
            notes.append(f"the edit is kept in {store.place(rejected.digest)}")
        store.write_state("open.json", {**state, "reverting": True})
        changed = store.restore(version)
        kernel = load_kernel(kernel_path)
        now = read_version(kernel)
        more = sorted(set(now.files) - set(version.files))
        notes += [f"{path}: was not there before, and stays" for path in more]
        store.close_edit()
        text = f"the last good version is back ({number_of(len(changed), 'file')})"
        return EditOutcome(
            "revert", True, text, kernel, now.digest, version.digest, None, tuple(map(str, changed)), tuple(notes)
        )


def _store_at(folder: Path) -> tuple[EditStore, KernelSpec | None]:
    """The store of this folder, whether or not its kernel.toml can be read."""
    try:
        kernel = load_kernel(folder)
        return EditStore(kernel), kernel
    except BadDataFile:
        bare = KernelSpec(
            path=folder.absolute() / FILE_NAME,
            name=folder.name,
            summary="",
            origin="",
            licence="",
            sources=(),
            host_sources=(),
            entry="",
            compile_args=(),
            link_args=(),
            default_case="",
            tolerance=None,
            cases=(),
            dispatch=(),
            defines=(),
            published=(),
        )
        if not (folder / FOLDER / "open.json").is_file():
            raise
        return EditStore(bare), None


def _require_open(store: EditStore) -> dict[str, Any]:
    state = store.state("open.json")
    if state is None:
        raise EditState(f"{store.kernel.folder}: no edit is open", hint="mccprobe edit begin opens one")
    if state.get("reverting"):
        raise EditState(f"{store.kernel.folder}: a revert was interrupted", hint="mccprobe edit revert ends it")
    return state


def _gated(kernel: KernelSpec, gate: Gate) -> tuple[Version, GateReport, bool]:
    """The files, what the gate says of them, and whether they were the same before and after it."""
    version = read_version(kernel)
    report = gate(load_kernel(kernel.path))
    return version, report, read_version(kernel).digest == version.digest


def _why_not(report: GateReport, kernel: KernelSpec) -> str:
    if not report.passed:
        reasons = report.reasons()
        return reasons[0] if reasons else f"the gate says {report.verdict}"
    return f"the files changed while they were tested ({kernel.folder})"


def _good_state(version: Version, report: GateReport | None) -> dict[str, Any]:
    return {
        "schema_version": 1,
        "digest": version.digest,
        "verdict": report.verdict.value if report else None,
        "toolchain": report.toolchain if report else None,
        "simulated": report.simulated if report else None,
    }


def _differences(store: EditStore, version: Version) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Files that differ from the last good version, and a note if the judge is among them."""
    digest = store.good()
    if digest is None:
        return (), ()
    old, kernel = store.load(digest).files, store.kernel
    changed = sorted(path for path in {*old, *version.files} if old.get(path) != version.files.get(path))
    judges = [path for path in changed if path == kernel.path or path in kernel.host_sources]
    notes = tuple(f"{path} changed: it is part of what judges the kernel" for path in judges)
    return tuple(os.path.relpath(path, kernel.folder) for path in changed), notes
