"""A small disk: tmpfs in a mount namespace of its own, so that nobody else sees it and nothing is left of it."""

from __future__ import annotations

import contextlib
import os
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

SCRIPT = 'mount -t tmpfs -o size="$1" tmpfs "$2" && echo ready && exec sleep 3600'


@dataclass(frozen=True)
class SmallDisk:
    """place: where it lies for processes started behind `prefix`."""

    place: Path
    prefix: tuple[str, ...]
    root: Path

    def remount(self, options: str) -> None:
        """`size=64m`, `ro`, `rw`."""
        command = [*self.prefix, "mount", "-o", f"remount,{options}", str(self.place)]
        subprocess.run(command, check=True, capture_output=True)

    def fill(self) -> None:
        """Leave no byte, in a file `filler`."""
        with contextlib.suppress(OSError), (self.seen(self.place) / "filler").open("wb", buffering=0) as file:
            while True:
                file.write(bytes(4096))

    def seen(self, path: Path) -> Path:
        """The path of a file on the disk for us, who do not see the disk."""
        return self.root / path.relative_to("/")


@contextlib.contextmanager
def small_disk(place: Path, size: str) -> Iterator[SmallDisk]:
    """A disk of this size ("256k") at `place`, an empty folder. Raises OSError where that is not allowed."""
    place.mkdir(parents=True, exist_ok=True)
    ours = os.geteuid() == 0
    begin = ["unshare", "-m"] if ours else ["unshare", "-r", "-m"]
    enter = ("nsenter", "-t", "{}", *(() if ours else ("-U", "--preserve-credentials")), "-m")
    holder = subprocess.Popen(
        [*begin, "sh", "-c", SCRIPT, "sh", size, str(place)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert holder.stdout is not None and holder.stderr is not None
    try:
        if holder.stdout.readline() != "ready\n":
            raise OSError(f"unshare and mount -t tmpfs do not work here: {holder.stderr.read().strip()}")
        yield SmallDisk(place, tuple(word.format(holder.pid) for word in enter), Path(f"/proc/{holder.pid}/root"))
    finally:
        holder.kill()
        holder.communicate()
