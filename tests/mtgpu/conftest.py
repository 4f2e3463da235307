"""The writer of MTGPU objects, and the folder of real ones where the environment names it."""

from __future__ import annotations

import importlib.util
import os
import sys
from pathlib import Path
from types import ModuleType

import pytest

OBJECTS = "MTGPU_OBJECTS"


@pytest.fixture(scope="session")
def writer() -> ModuleType:
    """tests/binary/writer.py."""
    path = Path(__file__).resolve().parents[1] / "binary" / "writer.py"
    spec = importlib.util.spec_from_file_location("mccprobe_mtgpu_writer", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="session")
def real_objects() -> Path:
    """The fat binaries of MooreThreads/gpu-compute-driver-bench that the tables were measured on."""
    folder = os.environ.get(OBJECTS, "")
    if not folder:
        pytest.skip(f"{OBJECTS} names no folder of real MTGPU objects")
    return Path(folder).resolve()
