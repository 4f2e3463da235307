"""Reports as pandas data frames, for notebooks. The one module that imports pandas, and only when called."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, TypeAlias

from mccprobe.base.errors import UsageError
from mccprobe.base.extras import install_command
from mccprobe.objects.model.resources import KernelResources

Frame: TypeAlias = Any  # pandas.DataFrame: pandas brings no types and may be absent


def flat_row(kernel: KernelResources) -> dict[str, Any]:
    """One kernel as one row: the columns of `--csv` and of the frame, in a fixed order for all targets.

    An absent number is None, never 0.
    """
    document = kernel.to_dict()
    row: dict[str, Any] = {name: document[name] for name in ("heading", "name", "target", "source_format", "origin")}
    for kind in REGISTER_KINDS:
        row[f"{kind}_registers"] = document["registers"].get(kind)
    row["shared_memory_bytes"] = document["shared_memory_bytes"]
    row["shared_declared_bytes"] = document["shared_memory"]["declared_bytes"]
    row["shared_reserved_bytes"] = document["shared_memory"]["reserved_bytes"]
    row["private_memory_bytes"] = document["private_memory_bytes"]
    row["private_memory_verdict"] = document["private_memory"]["verdict"]
    spills: Mapping[str, int] = document["spills"] or {}
    row["vector_spills"], row["scalar_spills"] = spills.get("vector"), spills.get("scalar")
    for name in ("has_barrier", "max_block_size", "code_bytes", "instructions"):
        row[name] = document[name]
    first = next((entry for entry in kernel.occupancy if not entry.reason), None) or kernel.occupancy[0]
    row["occupancy_model"] = first.model
    row["block_size"] = first.block_size
    row["blocks_per_mp"] = first.blocks_per_mp
    row["occupancy_percent"] = first.percent
    row["limiter"] = first.limiter
    row["demangled"] = document["demangled"]
    return row


REGISTER_KINDS = (
    "temp", "attribute", "shared", "internal", "slot", "coefficient", "vector", "scalar", "accumulation",
)  # fmt: skip


def kernels_frame(kernels: Iterable[KernelResources]) -> Frame:
    """One row a kernel, the columns of `flat_row`; whole numbers stay whole where some are missing.

    Raises UsageError where pandas is not installed.
    """
    try:
        import pandas as pd  # type: ignore[import-untyped]
    except ImportError as error:
        raise UsageError("data frames need pandas", hint=install_command("frames")) from error
    return pd.DataFrame([flat_row(kernel) for kernel in kernels]).convert_dtypes()
