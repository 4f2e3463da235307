"""pytest plugin for tools/mutation: quick tests in this process, quickest first, the same examples each time.

MUTATION_SLOW=1 brings the slow ones back, for mutants that the quick ones let through.
"""

import json
import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, settings

SLOW_S = 1.0  # a test that took longer in the run that maps tests to functions waits for MUTATION_SLOW
SLOWEST_S = 8.0  # and over this it never runs: hangs and time limits are what such a test is about

settings.register_profile(
    "mutation",
    derandomize=True,  # a mutant's verdict can be had again
    database=None,
    deadline=None,
    phases=[Phase.explicit, Phase.generate],  # no shrinking
    suppress_health_check=list(HealthCheck),
)
settings.load_profile("mutation")


def _seconds() -> dict[str, float]:
    try:
        kept = json.loads(Path("mutation-seconds.json").read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    durations: dict[str, float] = kept["duration_by_test"]
    return durations


def _waits(item: pytest.Item, seconds: float) -> bool:
    """Whether a test is left out: it runs the command line (in a process of its own no mutant is switched
    on), or long."""
    if "run_cli" in getattr(item, "fixturenames", ()):
        return True
    return seconds > (SLOWEST_S if os.environ.get("MUTATION_SLOW") else SLOW_S)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    seconds = _seconds()
    left_out = [item for item in items if _waits(item, seconds.get(item.nodeid, 0.0))]
    if left_out:
        config.hook.pytest_deselected(items=left_out)
    kept = [item for item in items if item not in left_out]
    items[:] = sorted(kept, key=lambda item: seconds.get(item.nodeid, 0.0))
