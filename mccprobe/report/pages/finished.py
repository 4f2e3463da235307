"""The result of a run that ended: a page of it needs no compiler."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from mccprobe.base.errors import BadReport, ExitCode
from mccprobe.base.paths import exists, read_file
from mccprobe.report.pages.blocks import Page

MOST_BYTES = 256 << 20  # of result.json: some kilobytes
RESULT, TEXT = "result.json", "report.txt"


def finished_result(root: Path) -> dict[str, Any] | None:
    """result.json of a run; None where there is none, or where a budget ended it: such a run is to be gone on with.

    Raises BadReport for one that cannot be read.
    """
    path = root / RESULT
    if not exists(path):
        return None
    try:
        result = json.loads(read_file(path, MOST_BYTES).decode("utf-8"))
    except OSError as error:
        raise BadReport(f"{path}: {error.strerror or error}") from error
    except (ValueError, RecursionError) as error:
        raise BadReport(f"{path}: not JSON: {str(error)[:200]}") from error
    if not isinstance(result, dict):
        raise BadReport(f"{path}: not what mccprobe writes")
    stopped_by_budget = result.get("exit_code") == ExitCode.BUDGET or result.get("status") == "budget"
    return None if stopped_by_budget else result


def finished_page(root: Path, result: Mapping[str, Any], make: Callable[[Mapping[str, Any]], Page]) -> Page:
    """The page of a result that was read back. Raises BadReport where it is not what mccprobe writes."""
    try:
        return make(result)
    except (KeyError, TypeError, ValueError, AttributeError, IndexError) as error:
        raise BadReport(
            f"{root / RESULT}: not what this mccprobe writes ({type(error).__name__}: {str(error)[:200]})",
            hint="a result of this command is needed",
        ) from error
