"""Run one command with the wrapper first in PATH, without installing anything.

The wrapper lies in the cache, in a folder named for its content: two commands at once share it, and a compile server
that a build leaves behind still finds it.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from pathlib import Path

from mccprobe.base.errors import InputError
from mccprobe.base.files import replace_file
from mccprobe.base.paths import make_own
from mccprobe.base.process import RunResult
from mccprobe.base.streams import run_on_own_streams
from mccprobe.build.wrapper.flagset import WrapperSets
from mccprobe.build.wrapper.install import COMMAND
from mccprobe.build.wrapper.script import generate


def run_in_front(
    command: Sequence[str],
    compiler: Path,
    sets: WrapperSets,
    cache: Path,
    *,
    stdout: Path | None = None,
    name: str = COMMAND,
) -> RunResult:
    """Run `command`; name: what it calls the compiler.

    Standard streams are those of this process, or `stdout` is named.

    Raises InputError when the cache is not writable.
    """
    folder = _wrapper_folder(generate(compiler, sets), cache, name)
    env = {**os.environ, "PATH": f"{folder}{os.pathsep}{os.environ.get('PATH', os.defpath)}"}
    return run_on_own_streams(command, env=env, stdout=stdout)


def _wrapper_folder(data: bytes, cache: Path, name: str) -> Path:
    folder = cache / "wrapper" / hashlib.sha256(data).hexdigest()[:16]
    target = folder / name
    try:
        make_own(cache, folder.parent.name, folder.name)
        if not (target.is_file() and target.read_bytes() == data):
            replace_file(target, data, mode=0o755)
    except OSError as error:
        text = f"{target}: cannot be written: {error.strerror or error}"
        raise InputError(text, hint="MCCPROBE_CACHE names another cache folder") from error
    return folder
