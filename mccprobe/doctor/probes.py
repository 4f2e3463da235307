"""The register of probes: a function of a Subject for each assumption that can be asked."""

from __future__ import annotations

from collections.abc import Callable

from mccprobe.doctor.subject import ProbeAnswer, Subject

Probe = Callable[[Subject], ProbeAnswer]
PROBES: dict[str, Probe] = {}


def probe(function: Probe) -> Probe:
    """Register under the function's name, which the table of assumptions uses."""
    PROBES[function.__name__] = function
    return function
