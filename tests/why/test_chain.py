"""The whole chain through the command line: the article's fault on `sim`, and real cases with their honest limits."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonschema
import pytest

RunCli = Callable[..., Any]
CASES = Path(__file__).resolve().parents[1] / "cases"
FLAG = "--mtgpu-enable-internal-regs-ra"
BYPASS = [f"--internal-opt-user-{kind}=false" for kind in ("fop", "int", "bit")]
# the article's table of section 19: combination -> right?
ARTICLE = {
    "-enable-misched=false": True,
    f"without -mllvm {FLAG}": True,
    "-misched=converge": True,
    **dict.fromkeys(BYPASS, False),
    " ".join(BYPASS): False,
    "the bad build as it is": False,
}

pytestmark = pytest.mark.toolchain("clang-14")


@pytest.fixture(scope="session")
def check(root: Path) -> Callable[[Any], dict[str, Any]]:
    """Validate a run's document; it must also be what lies in the run directory."""
    schemas = {name: json.loads((root / f"reports/{name}.schema.json").read_text()) for name in ("why", "bisect")}

    def checked(run: Any) -> dict[str, Any]:
        document: dict[str, Any] = json.loads(run.stdout)
        jsonschema.validate(document, schemas["why"])
        assert run.code == document["exit_code"], run
        if document["bisect"] is not None:
            jsonschema.validate(document["bisect"], schemas["bisect"])
        place = Path(document["run_directory"])
        assert json.loads((place / "result.json").read_text()) == document
        assert list(place.glob("*/trials/*")) == []
        return document

    return checked


@pytest.mark.clean("run")
def test_the_articles_fault(run_cli: RunCli, check: Callable[[Any], dict[str, Any]]) -> None:
    """The seven wrapper flags and the faulty one: set, pass, function, table, matrix. The rest has tests of its own."""
    steps = [part for step in ("flags", "table", "workarounds") for part in ("--step", step)]
    run = run_cli("why", "--set", "gemm-s4000", "--flag", "internal-regs-ra", *steps, "--json", "-o", "run")
    document = check(run)
    assert run.code == 0 and "SIMULATED" in run.stderr and document["simulated"] is True, run
    assert document["minimal_flag_sets"] == [["internal-regs-ra"]] and document["flag_sets"]["complete"]
    assert len(document["flag_sets"]["given"]) == 8
    culprit = document["culprit"]
    assert (document["status"], culprit["pass_argument"]) == ("found", "machine-scheduler")
    assert culprit["function"].startswith("gemm_wmma_256(")
    rows = {row["change"]: row for row in document["workarounds"]}
    assert {change: rows[change]["verdict"] == "GOOD" for change in ARTICLE} == ARTICLE
    bad = rows["the bad build as it is"]
    for change in (*BYPASS, " ".join(BYPASS)):
        assert rows[change]["no_effect"] and rows[change]["object"] == bad["object"]
        assert rows[change]["note"].endswith("no effect in sim")
    assert all(row["speed_s"] is None for row in rows.values())
    assert bad["max_err"] > 0.1 > rows["-misched=converge"]["max_err"]
    tried = [row for row in document["workarounds"] if row["argv"] and row is not bad]
    assert len(tried) <= 31 and {"-misched=mtgpu-max-ilp", "-misched=default"} <= set(rows)
    cells = {(cell["flag"], cell["pass_state"], cell["function"][:7]): cell for cell in document["table"]}
    assert len(cells) == 8
    assert [key for key, cell in cells.items() if cell["verdict"] == "BAD"] == [("on", "on", "as comp")]
    assert all(cell["runs"] >= 2 and cell["object"] for cell in cells.values())
    text = Path("run/report.txt").read_text()
    assert text.startswith("SIMULATED FAULT (sim): FOUND")
    for start in ("  {internal-regs-ra}", "  Machine Instruction Scheduler", "  on    on ", "  BAD  ", "  GOOD  "):
        marked = [line for line in text.splitlines() if line.startswith(start)]
        assert marked and all(line.endswith("[sim]") for line in marked), start
    again = json.loads(run_cli("bisect", "--resume", "run/bisect", "--json").stdout)
    assert again["culprit"] == culprit and again["trials"]["runs"] == 0


def run_case(name: str, run_cli: RunCli, place: Path, *extra: str) -> Any:
    expect = json.loads((CASES / name / "expect.json").read_text())
    good, bad = expect["good_args"], expect["bad_args"]
    flag = bad[len(good) :] if bad[: len(good)] == good and "-mllvm" in bad else []
    options = ["--flag", flag[1], "--"] if flag else ["--reference", " ".join(good), "--"]
    return run_cli(
        "why",
        CASES / name / "test.c",
        "--compiler",
        expect["compiler"],
        "--json",
        *extra,
        "-o",
        place,
        *options,
        *(good if flag else bad),
    )


def test_an_enabler_is_not_called_guilty(
    run_cli: RunCli, check: Callable[[Any], dict[str, Any]], tmp_path: Path
) -> None:
    document = check(run_case("11-ipra-frame-pointer", run_cli, tmp_path / "run"))
    assert document["screen"]["clean"] is True
    assert (document["status"], document["culprit"]["pass"]) == ("exposed", "PostOrderFunctionAttrsPass")
    assert "attributes or metadata only" in document["bisect"]["confirmation"]["text"]
    assert document["first_bad_instruction"] is None and document["first_bad_instruction_reason"]
    assert document["minimal_flag_sets"] == [["-enable-ipra"]]
    assert Path(document["report"]).is_file()


def test_wrong_at_limit_0_ends_with_its_limit(
    run_cli: RunCli, check: Callable[[Any], dict[str, Any]], tmp_path: Path
) -> None:
    run = run_case("21-asan-frontend14", run_cli, tmp_path / "run")
    document = check(run)
    assert (run.code, document["status"], document["culprit"]) == (1, "wrong-at-zero", None)
    assert "every optional pass left out" in document["first_bad_instruction_reason"]
    assert document["table"] == [] and document["where"]["state"] == "not run"
    rows = {row["change"].partition(":")[0]: row["verdict"] for row in document["workarounds"]}
    assert (rows["the bad build as it is"], rows["the reference build"]) == ("BAD", "GOOD")
    assert {fact["verdict"] for fact in document["facts"]} >= {"BAD"}


def test_invalid_machine_code_is_named_by_the_verifier(
    run_cli: RunCli, check: Callable[[Any], dict[str, Any]], tmp_path: Path
) -> None:
    steps = [part for step in ("flags", "where") for part in ("--step", step)]
    document = check(run_case("22-linearize-scheduler", run_cli, tmp_path / "run", *steps))
    assert document["status"] == "exposed"
    assert document["where"]["verifier"].startswith("Using an undefined physical register, after Instruction Selection")
    found = document["first_bad_instruction"]
    assert found is not None and found["confirmed"] == "verifier" and found["function"]


PARITY = """/* three times what the case 25-nonmonotone-parity has, in the form in which the pass meets it there */
#include <stdio.h>
int first, second, third;
#define SWEEP(column) \\
  for (row = 0; row < 6; row++) { count = 0; do count++; while (count < 6); column = count; }
int main(void) {
  int row, count;
  SWEEP(first)
  SWEEP(second)
  SWEEP(third)
  printf("parity=%d\\n", (first + second + third) & 1);
  return 0;
}
"""


def test_three_edges_under_profile(run_cli: RunCli, check: Callable[[Any], dict[str, Any]], tmp_path: Path) -> None:
    """Each of three loops is made wrong by itself, and the program shows only whether their number is odd."""
    source = tmp_path / "parity.c"
    source.write_text(PARITY)
    steps = [part for step in ("flags", "bisect", "facts") for part in ("--step", step)]
    document = check(
        run_cli(
            "why",
            source,
            "--compiler",
            "clang-14",
            "--json",
            "--profile",
            *steps,
            "-o",
            tmp_path / "run",
            "--flag",
            "-enable-loop-flatten",
            "--",
            "-Os",
        )
    )
    edges = [(edge["execution"], edge["from"], edge["to"]) for edge in document["bisect"]["edges"]]
    assert edges == [(44, "GOOD", "BAD"), (57, "BAD", "GOOD"), (70, "GOOD", "BAD")]
    assert document["bisect"]["monotone"] is False
    assert {edge["pass"] for edge in document["bisect"]["edges"]} == {"LoopFlattenPass"}
    text = (tmp_path / "run/report.txt").read_text()
    assert text.count("\n  edge ") == 3


def test_a_finding_of_the_screen_stops_the_accusation(
    run_cli: RunCli, check: Callable[[Any], dict[str, Any]], tmp_path: Path
) -> None:
    """Signed overflow: "wrong" at -O2, and the program's fault. The record is complete all the same."""
    source = tmp_path / "overflow.c"
    source.write_text(
        "#include <stdio.h>\n#include <limits.h>\n__attribute__((noinline)) int after(int x) { return x + 1 > x; }\n"
        'int main(void) { volatile int x = INT_MAX; printf("%d\\n", after(x)); return 0; }\n'
    )
    steps = [part for step in ("screen", "bisect") for part in ("--step", step)]
    question = ("why", source, "--compiler", "clang-14", "--reference", "-O0", "--json", *steps)
    run = run_cli(*question, "-o", tmp_path / "run", "--", "-O2")
    document = check(run)
    assert run.code == 1 and "may be at fault, not yet the compiler" in document["stopped"], run
    assert document["screen"]["clean"] is False and document["screen"]["reason"]
    assert document["culprit"] is None and document["status"] is None and document["workarounds"] == []
    assert (tmp_path / "run/report.txt").read_text().startswith("STOPPED: the program")
    again = f"mccprobe why --resume {tmp_path / 'run'} --skip-screen"
    assert again in (tmp_path / "run/report.txt").read_text()
    skipped = check(run_cli("why", "--resume", tmp_path / "run", "--skip-screen", "--json"))
    assert skipped["screen"]["state"] == "skipped" and skipped["culprit"] is not None
    assert json.loads((tmp_path / "run/run.json").read_text())["options"]["skip_screen"] is True
    refused = run_cli("why", "--resume", tmp_path / "run", "--skip-screen", "--step", "bisect")
    assert refused.code == 2 and "steps cannot be changed" in refused.stderr


def test_flags_without_effect_are_no_fault(
    run_cli: RunCli, check: Callable[[Any], dict[str, Any]], tmp_path: Path
) -> None:
    source = tmp_path / "right.c"
    source.write_text('#include <stdio.h>\nint main(void) { puts("right"); return 0; }\n')
    flags = ("--flag", "-enable-newgvn", "--flag", "-enable-loop-flatten")
    run = run_cli("why", source, "--compiler", "clang-14", *flags, "--json", "-o", tmp_path / "run", "--", "-O2")
    document = check(run)
    assert run.code == 1 and document["minimal_flag_sets"] == [] and document["bisect"] is None, run
    assert document["stopped"] == "no set of the flags gives a wrong result"


def test_other_programs_with_the_same_signature(
    run_cli: RunCli, check: Callable[[Any], dict[str, Any]], tmp_path: Path
) -> None:
    """The same fault in a copy, none in a right program, no answer for what is not there."""
    case = CASES / "07-loop-interchange" / "test.c"
    same, right = tmp_path / "same.c", tmp_path / "right.c"
    same.write_text("/* another file */\n" + case.read_text())
    right.write_text('#include <stdio.h>\nint main(void) { puts("right"); return 0; }\n')
    also = [part for path in (same, right, tmp_path / "gone.c") for part in ("--also", str(path))]
    run = run_cli(
        "why",
        case,
        "--compiler",
        "clang-14",
        "--flag",
        "-enable-loopinterchange",
        "--json",
        *also,
        "--step",
        "where",
        "--step",
        "signature",
        "-o",
        tmp_path / "run",
        "--",
        "-O3",
    )
    found = check(run)["signature"]
    assert found["title"] == "LoopInterchangePass" and found["shape"], run
    shows = {other["name"]: other["shows"] for other in found["others"]}
    assert shows == {"same.c": True, "right.c": False, "gone.c": None}
    text = {other["name"]: other["text"] for other in found["others"]}
    assert "same pass" in text["same.c"] and "same shape" in text["same.c"] and "no such file" in text["gone.c"]
