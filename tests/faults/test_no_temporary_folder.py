"""No folder takes temporary files: the one that TMPDIR names is not there, the others are read-only."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

READ_ONLY = """
for folder in /tmp /var/tmp "$PWD"; do
  mount --bind "$folder" "$folder" && mount -o remount,ro,bind "$folder" || exit 77
done
cd "$PWD"  # into what is mounted now
exec "$@"
"""


def mccprobe(cwd: Path, *words: str) -> subprocess.CompletedProcess[str]:
    namespace = ["unshare", "-m"] if os.geteuid() == 0 else ["unshare", "-r", "-m"]
    ran = subprocess.run(
        [*namespace, "sh", "-c", READ_ONLY, "sh", sys.executable, "-m", "mccprobe", *words],
        cwd=cwd,
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "TMPDIR": str(cwd / "not there"), "PYTHONSAFEPATH": "1"},
    )
    if ran.returncode == 77 or "unshare" in ran.stderr:
        pytest.skip(f"unshare and mount --bind do not work here: {ran.stderr.strip()}")
    return ran


COMMANDS = {
    "bisect": ("bisect", "a.c", "--flag", "-ffast-math", "--out", "/dev/shm/never"),
    "check": ("check", "gemm", "--toolchain", "sim"),
    "doctor": ("doctor",),
}


@pytest.mark.parametrize("words", COMMANDS.values(), ids=COMMANDS)
def test_what_is_missing_is_named(words: tuple[str, ...], tmp_path: Path) -> None:
    (tmp_path / "a.c").write_text("int main(void) { return 0; }\n")
    ran = mccprobe(tmp_path, *words, "--json")
    assert ran.returncode == 4, ran
    assert "error: no folder for temporary files can be written to\n" in ran.stderr, ran
    assert "not there, /tmp, /var/tmp" in ran.stderr and "TMPDIR=DIR" in ran.stderr.splitlines()[-1], ran.stderr
    assert json.loads(ran.stdout)["exit_code"] == 4
    assert not Path("/dev/shm/never").exists()


def test_who_needs_none_works(tmp_path: Path) -> None:
    ran = mccprobe(tmp_path, "flags", "list", "--json")
    assert ran.returncode == 0 and json.loads(ran.stdout), ran
