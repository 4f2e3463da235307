"""Golden scenarios: a failure expression and settings, then every trial and the result in full.

A file of scenarios/ is a JSON header, a line `---`, and the expected text. `pytest --update-goldens`
rewrites the text; read the diff and see if you agree. The language of the rules: search_fakes.py.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from search_fakes import RuleTarget, parse_rules

from mccprobe.oracle.verdict import Verdict
from mccprobe.search.procedure import SearchResult, Settings, Trial, bisect

SCENARIOS = sorted((Path(__file__).parent / "scenarios").glob("*.txt"))
HEADER_KEYS = {"about", "total", "rules", "changes", "same_as", "known", "settings", "answer"}


def build(header: dict[str, Any]) -> RuleTarget:
    changes = header.get("changes")
    same_as: dict[int, int] = {}
    for limits, earlier in header.get("same_as", {}).items():
        first, _, last = limits.partition("..")
        same_as |= dict.fromkeys(range(int(first), int(last or first) + 1), earlier)
    return RuleTarget(
        header["total"],
        parse_rules(header["rules"]),
        None if changes is None else frozenset(changes),
        same_as,
        header.get("settings", {}).get("seed", 0),
    )


def describe_trial(trial: Trial) -> str:
    how = "ran" if trial.ran else "reused" if trial.key else "unbuildable"
    line = (
        f"{trial.ordinal:4} {trial.purpose:18} {trial.limit:6} {trial.key or '-':8} {trial.verdict:10} "
        f"{how:11} {trial.outcome.reason}"
    )
    return line.rstrip()


def describe_result(result: SearchResult) -> str:
    edges = [
        f"edge {edge.execution}: {edge.from_verdict} -> {edge.to_verdict}"
        + (f", no verdict at {list(edge.unresolved)}" if edge.unresolved else "")
        for edge in result.edges
    ]
    rate = result.failure_rate
    lines = [
        f"status {result.status}, good {result.good}, bad {result.bad}, monotone {result.monotone}",
        *edges,
        f"confidence {result.confidence:.4f}, good end {result.good_end}, largest error {result.max_err_bad}",
        f"{result.runs} runs, {result.objects_tested} objects tested, {result.limits_built} limits built",
    ]
    if rate is not None:
        lines.append(f"failure rate {rate.bad}/{rate.runs}, {rate.low:.3f} to {rate.high:.3f}")
    return "\n".join(lines + [f"note: {note}" for note in result.notes])


@pytest.mark.parametrize("path", SCENARIOS, ids=lambda path: path.stem)
def test_scenario(path: Path, update_goldens: bool) -> None:
    head, _, expected = path.read_text().partition("\n---\n")
    header = json.loads(head)
    assert set(header) <= HEADER_KEYS
    target = build(header)
    known = {key: Verdict(verdict) for key, verdict in header.get("known", {}).items()}
    seen: list[Trial] = []
    result = bisect(target, Settings(**header.get("settings", {})), known=known, on_trial=seen.append)

    assert tuple(seen) == result.log
    assert target.ran.total() == result.runs == sum(trial.ran for trial in result.log)
    # what a person says the answer is, apart from the recorded text
    assert [result.status, result.good, result.bad] == header["answer"], describe_result(result)

    text = "\n".join([*map(describe_trial, result.log), "", describe_result(result), ""])
    if update_goldens:
        path.write_text(f"{head}\n---\n{text}")
        return
    assert text == expected


def test_there_are_scenarios_of_every_status() -> None:
    answers = {json.loads(path.read_text().partition("\n---\n")[0])["answer"][0] for path in SCENARIOS}
    assert answers == {
        "edge",
        "wrong-at-zero",
        "no-difference",
        "undecided",
        "oracle-unusable",
        "budget",
    }
