"""The winner as a catalogue file with one [[set]]: what `mccprobe wrapper install --set FILE` takes."""

from __future__ import annotations

import json
import re

from mccprobe.tuning.flag_search.report import Best, SearchReport, shown_share


def set_name(subject: str) -> str:
    """`searched-gemm`."""
    return "searched-" + re.sub(r"[^A-Za-z0-9_.-]+", "-", subject).strip("-")


def set_text(report: SearchReport, best: Best) -> str:
    """TOML. -D parameters stand in it as flags: without them it is not what was measured."""
    stand_in = f"{report.heading}: " if report.heading else ""
    objective = report.objective
    summary = f"{stand_in}{report.subject}: {objective.name} {shown_share(best.share)} against no flags"
    source = f"mccprobe flags search, {report.strategy}, {report.toolchain}; {objective.label}"
    keys = {"name": set_name(report.subject), "summary": summary, "source": source}
    lines = ["schema_version = 1", "", "[[set]]"]
    lines += [f"{key} = {json.dumps(value, ensure_ascii=False)}" for key, value in keys.items()]
    lines += ["flags = [", *(f"    {json.dumps(flag, ensure_ascii=False)}," for flag in best.flags), "]"]
    return "\n".join(lines) + "\n"
