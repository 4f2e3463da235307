"""How to add the packages of an extra to the environment that mccprobe runs in.

`pip install 'mccprobe[pages]'` asks a package index for mccprobe. It is right for an installation from an index
alone, and names nothing for one from a wheel file, by pipx, by uv or in a checkout.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
import re
import shlex
import shutil
import sys
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parents[2]


def install_command(extra: str) -> str:
    """The command line, for a shell."""
    if (CHECKOUT / "pyproject.toml").is_file():
        return f"{_pip_install()} -e {shlex.quote(f'{CHECKOUT}[{extra}]')}"
    packages = shlex.join(_packages(extra))
    if not packages:
        return f"install the packages of the extra {extra} (pyproject.toml lists them)"
    if (Path(sys.prefix) / "pipx_metadata.json").is_file():
        return f"pipx inject {shlex.quote(Path(sys.prefix).name)} {packages}"
    return f"{_pip_install()} {packages}"


def _pip_install() -> str:
    """For the environment of this Python. One made by uv, or without pip, has no pip of its own."""
    if importlib.util.find_spec("pip") is None:
        python = shlex.quote(sys.executable)
        return f"uv pip install --python {python}" if shutil.which("uv") else f"pip --python {python} install"
    in_path = shutil.which("pip")
    own = in_path is not None and Path(in_path).parent == Path(sys.prefix) / "bin"
    return "pip install" if own else f"{shlex.quote(sys.executable)} -m pip install"


def _packages(extra: str) -> list[str]:
    """What the installed mccprobe's metadata lists for an extra; empty where nothing is installed."""
    try:
        listed = importlib.metadata.requires("mccprobe") or []
    except importlib.metadata.PackageNotFoundError:
        return []
    wanted = re.compile(rf"extra == [\"']{re.escape(extra)}[\"']")
    return [text.partition(";")[0].strip() for text in listed if wanted.search(text.partition(";")[2])]
