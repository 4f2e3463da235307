"""The real mcc: where it is looked for, how its toolkit is pinned, what of it is probed.

Looked for in this order: --mcc, MCCPROBE_MCC, --musa-path, MUSA_HOME / MUSA_PATH / MUSA_INSTALL_PATH
(bin/mcc below each), /usr/local/musa/bin/mcc, PATH. mccprobe's own wrapper is never taken for the
compiler. An inherited MUSA_HOME can contaminate a run silently (julia-musa S2, S4), so the toolkit is
pinned to where the chosen mcc lies and what points elsewhere is told.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from mccprobe.base.errors import CompilerNotFound, StaleCompileCache, ToolchainError
from mccprobe.targets.llvm import locate
from mccprobe.targets.llvm.driver import ClangDriver
from mccprobe.targets.llvm.findings import Findings, ProbeCache, device_nodes, from_document, to_document
from mccprobe.targets.llvm.probe import accepted_pins, probe
from mccprobe.targets.mcc.toolkit import toolkit_root
from mccprobe.targets.protocol import Capabilities, Identity, Recording, Toolchain
from mccprobe.targets.sim.toolchain import SIMULATED_MARK, SimToolchain

HOME_VARIABLES = ("MUSA_HOME", "MUSA_PATH", "MUSA_INSTALL_PATH")
DEFAULT_MCC = Path("/usr/local/musa/bin/mcc")  # where the SDK installs itself (mtgpu.md section 6)
STALE_CACHE = Path("/tmp/mcc_cache")  # named in the article, section 19: a stale one misled its bisection


@dataclass(frozen=True)
class MccPaths:
    """What the user said: --mcc and --musa-path."""

    mcc: str | None = None
    musa_path: str | None = None


@dataclass(frozen=True)
class FoundMcc:
    """Where mcc is (None: nowhere), who named it, where it was looked for, wrappers that were passed over."""

    path: Path | None
    by: str
    looked: tuple[str, ...]
    wrappers: tuple[str, ...] = ()


def find_mcc(paths: MccPaths) -> FoundMcc:
    """Look for mcc. A path that the user named must be there and be a compiler; the rest is a search."""
    for name, value in (("--mcc", paths.mcc), ("MCCPROBE_MCC", os.environ.get("MCCPROBE_MCC"))):
        if value:
            found = shutil.which(value)
            if found is None:
                raise CompilerNotFound(f"mcc ({name})", [value], hint=f"{name} must name an executable file")
            if locate.is_our_wrapper(Path(found)):
                raise ToolchainError(
                    f"{found} ({name}) is mccprobe's wrapper, not the compiler",
                    hint="name the real mcc with --mcc PATH",
                )
            return FoundMcc(Path(found).absolute(), name, (value,))
    if paths.musa_path and not locate.is_program(Path(paths.musa_path) / "bin" / "mcc"):
        raise CompilerNotFound(
            "mcc below --musa-path",
            [str(Path(paths.musa_path) / "bin" / "mcc")],
            hint="--musa-path names the root of a MUSA toolkit, the folder above bin/mcc",
        )
    candidates = [("--musa-path", Path(paths.musa_path) / "bin" / "mcc")] if paths.musa_path else []
    candidates += [(name, Path(os.environ[name]) / "bin" / "mcc") for name in HOME_VARIABLES if os.environ.get(name)]
    candidates.append((str(DEFAULT_MCC), DEFAULT_MCC))
    candidates += [("PATH", Path(folder) / "mcc") for folder in os.environ.get("PATH", "").split(os.pathsep) if folder]
    looked, wrappers = [], []
    for name, path in candidates:
        if name != "PATH":
            looked.append(str(path))
        if not locate.is_program(path):
            continue
        if locate.is_our_wrapper(path):
            wrappers.append(str(path))
            continue
        return FoundMcc(path.absolute(), name, tuple(looked), tuple(wrappers))
    return FoundMcc(None, "", (*looked, "PATH"), tuple(wrappers))


class MccToolchain(ClangDriver):
    """Moore Threads' compiler on the user's machine.

    root: the toolkit that every compile is pinned to; None where the folder above mcc is not one.
    cache: folder for answers of probes. told: notes on how it was found.
    """

    name = "mcc"
    simulated = False

    def __init__(
        self,
        mcc: Path,
        root: Path | None,
        cache: Path | None = None,
        *,
        identity: Identity | None = None,
        told: Sequence[str] = (),
    ) -> None:
        super().__init__([str(mcc)])
        self._identity = identity
        self.root = root
        self.told = tuple(told)
        self._cache = ProbeCache(cache / "probes" if cache else None)
        self._findings: Findings | None = None
        # after this the driver does not change: every command that starts with it is pinned
        self.driver = (str(mcc), *self._pins(mcc))

    def _pins(self, mcc: Path) -> tuple[str, ...]:
        if self.root is None:
            return ()
        key = self._cache.key("pins", self.identify().fingerprint, self.root)
        kept = self._cache.load(key)
        if kept is not None and isinstance(kept.get("pins"), list):
            return tuple(map(str, kept["pins"]))
        pins = accepted_pins(mcc, self.root, {**os.environ, "LC_ALL": "C"})
        self._cache.store(key, {"pins": list(pins)})
        return pins

    def environment(self, scratch: Path) -> dict[str, str]:
        env = super().environment(scratch)
        if self.root is not None:
            for name in HOME_VARIABLES:
                if name in env:
                    env[name] = str(self.root)
        return env

    def _probe_arguments(self) -> tuple[str, ...]:
        # as device code: an option of the device driver (-Od3) would only be "unused" on host code
        return ("-x", "musa", "--musa-device-only")

    def findings(self) -> Findings:
        """The probe's answers, asked once for each compiler, toolkit and environment."""
        if self._findings is None:
            told = {name: value for name, value in sorted(os.environ.items()) if name.startswith("MUSA_")}
            key = self._cache.key(
                "probe", self.identify().fingerprint, self.driver, told, device_nodes(), STALE_CACHE.is_dir()
            )
            kept = self._cache.load(key)
            found = from_document(kept) if kept is not None else None
            if found is None:
                found = probe(self.driver, self.identify(), self.root, self.environment)
                if not found.stale:  # a cause that the user is about to remove is asked again
                    self._cache.store(key, to_document(found))
            self._findings = found
        return self._findings

    def capabilities(self) -> Capabilities:
        found = self.findings()
        return Capabilities(
            compile=found.compile,
            run=found.run,
            bisect=False if found.stale else found.bisect,
            resources=found.resources,
            timing=found.run,
            bundle=found.bundle,
            notes=(
                *self.told,
                *self.environment_notes(),
                *found.notes,
                *([f"stale compile cache: {found.stale}"] if found.stale else []),
            ),
        )

    def environment_notes(self) -> tuple[str, ...]:
        """What of the environment could let another toolkit or an old object in."""
        notes = []
        if self.root is None:
            notes.append("no toolkit is pinned: the folder above this mcc is not one (name it with --musa-path DIR)")
        else:
            how = ", ".join(self.driver[1:]) or "by the environment alone: this mcc takes no --musa-path"
            notes.append(f"toolkit: {self.root} (pinned: {how})")
            notes += foreign_homes(self.root)
        if STALE_CACHE.is_dir():
            notes.append(f"a compile cache lies at {STALE_CACHE}; every log is checked against its limit")
        if os.environ.get("MUSA_CACHE_PATH"):
            notes.append("MUSA_CACHE_PATH is set; every compile gets an empty folder in its place")
        return tuple(notes)

    def record(self, args: Sequence[str], scratch: Path, *, cwd: Path | None = None) -> Recording:
        """As every driver, but not before the compiler was seen to answer for what it was asked.

        Raises StaleCompileCache.
        """
        stale = self.findings().stale
        if stale:
            raise StaleCompileCache(
                f"{self.driver[0]} answers from a compile cache: {stale}",
                hint="remove the cache (for mcc: rm -r /tmp/mcc_cache, unset MUSA_CACHE_PATH) or the caching "
                "wrapper, and run again: a bisection on old objects names a wrong pass",
            )
        return super().record(args, scratch, cwd=cwd)


def foreign_homes(root: Path) -> list[str]:
    """Notes on inherited variables that point at another toolkit than `root`."""
    notes = []
    for name in HOME_VARIABLES:
        value = os.environ.get(name)
        if value and Path(value).resolve() != root.resolve():
            notes.append(f"{name}={value} points elsewhere; compiles get {root} in its place")
    for folder in filter(None, os.environ.get("LD_LIBRARY_PATH", "").split(os.pathsep)):
        if (Path(folder) / "libmusart.so").exists() and not Path(folder).resolve().is_relative_to(root.resolve()):
            notes.append(f"LD_LIBRARY_PATH holds another toolkit's libraries: {folder}")
    return notes


def mcc_toolchain(paths: MccPaths, cache: Path | None = None) -> Toolchain:
    """The mcc that `find_mcc` finds. One that says it is the stand-in is treated as the stand-in.

    Raises CompilerNotFound or ToolchainError.
    """
    found = find_mcc(paths)
    if found.path is None:
        raise CompilerNotFound(
            "mcc",
            found.looked,
            hint="install the MUSA SDK, or name it with --mcc PATH; without it: --toolchain sim",
        )
    identity = locate.identify([str(found.path)])
    if SIMULATED_MARK in identity.version:
        return SimToolchain(found.path)
    told = [
        f"named by {found.by}",
        *(f"{wrapper} is mccprobe's wrapper: passed over" for wrapper in found.wrappers),
    ]
    root = toolkit_root(found.path, paths.musa_path)
    return MccToolchain(found.path, root, cache, identity=identity, told=told)
