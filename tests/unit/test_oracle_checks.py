"""Who says GOOD, BAD or UNRESOLVED: every way in which a check can end."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from mccprobe.base.errors import OracleUnusable
from mccprobe.oracle.checks import CommandOracle, Expected, KernelOracle, Oracle, ReferenceOracle
from mccprobe.oracle.verdict import Verdict

GOOD, BAD, UNRESOLVED = Verdict.GOOD, Verdict.BAD, Verdict.UNRESOLVED


def script(folder: Path, body: str) -> Path:
    path = folder / "a program"
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(0o755)
    return path


def verdict(oracle: Oracle, folder: Path, body: str) -> tuple[Verdict, str]:
    outcome = oracle.judge(script(folder, body), folder)
    return outcome.verdict, outcome.reason


# --- the reference's output ---------------------------------------------------------------------


EXPECTED = Expected(b"42\n", 3)


@pytest.mark.parametrize(
    ("body", "want", "reason"),
    [
        ("echo 42; exit 3", GOOD, "as the reference"),
        ("echo 42; echo noise >&2; exit 3", GOOD, "as the reference"),
        ("echo 43; exit 3", BAD, "prints '43'"),
        ("echo 42; exit 0", BAD, "exit 0, prints '42'"),
        ("echo 42; kill -SEGV $$", BAD, "signal SIGSEGV, prints '42'"),
        ("echo 42; kill -ILL $$", UNRESOLVED, "signal SIGILL: an instruction that this processor lacks"),
        ("echo 43; kill -KILL $$", UNRESOLVED, "signal SIGKILL: ended from outside"),
        ("kill -TERM $$", UNRESOLVED, "signal SIGTERM: ended from outside"),
        ("echo 42; exit 125", UNRESOLVED, "exit 125 (cannot tell)"),
        (
            "echo gone >&2; echo TRAP: divergent >&2; echo end >&2; exit 125",
            UNRESOLVED,
            "invalid program: TRAP: divergent",
        ),
        ("printf '42'; exit 3", BAD, "prints '42'"),
        ("printf '\\377\\376\\n'; exit 3", BAD, "prints '\\\\xff\\\\xfe'"),
        ("yes | head -c 99; exit 3", BAD, "prints 'y / y"),
        ("yes | head -c 9000000; exit 3", UNRESOLVED, "printed 9000000 bytes, too many to compare"),
        ("yes | head -c 9000000 >&2; echo 42; exit 3", GOOD, "as the reference"),
    ],
)
def test_reference(body: str, want: Verdict, reason: str, tmp_path: Path) -> None:
    found, told = verdict(ReferenceOracle(EXPECTED), tmp_path, body)
    assert found is want and told.startswith(reason), (found, told)
    assert len(told) < 150


@pytest.mark.parametrize("code", [0, 1, 125, 126, 127, 200])
def test_the_references_own_status_is_the_measure(code: int, tmp_path: Path) -> None:
    oracle = ReferenceOracle(Expected(b"", code))
    assert verdict(oracle, tmp_path, f"exit {code}")[0] is GOOD
    assert verdict(oracle, tmp_path, f"exit {code ^ 1}")[0] in (BAD, UNRESOLVED)


def test_a_reference_that_dies_by_a_signal(tmp_path: Path) -> None:
    oracle = ReferenceOracle(Expected(b"", -11))
    assert verdict(oracle, tmp_path, "kill -SEGV $$")[0] is GOOD
    assert verdict(oracle, tmp_path, "kill -ABRT $$")[0] is BAD
    assert verdict(oracle, tmp_path, "exit 139")[0] is BAD


def test_a_trap_is_wrong_only_where_that_is_said(tmp_path: Path) -> None:
    """SIGILL is a trap of the compiler's or an instruction that the processor lacks; nobody else's kill is either."""
    told = ReferenceOracle(EXPECTED, bad_if_crash=True)
    assert verdict(told, tmp_path, "kill -ILL $$")[0] is BAD
    assert verdict(told, tmp_path, "kill -KILL $$")[0] is UNRESOLVED
    assert verdict(ReferenceOracle(Expected(b"", -4)), tmp_path, "kill -ILL $$")[0] is GOOD
    assert told.id != ReferenceOracle(EXPECTED).id


def test_arguments_and_folder(tmp_path: Path) -> None:
    oracle = ReferenceOracle(Expected(f"a b|$x|{tmp_path}|{tmp_path}\n".encode(), 0), ["a b", "$x"])
    assert verdict(oracle, tmp_path, 'echo "$1|$2|$PWD|$TMPDIR"')[0] is GOOD
    assert oracle.command("./p") == ["./p", "a b", "$x"]


def test_a_program_that_cannot_be_started_is_unresolved(tmp_path: Path) -> None:
    for oracle in (ReferenceOracle(EXPECTED), KernelOracle("c")):
        outcome = oracle.judge(tmp_path / "gone", tmp_path)
        assert outcome.verdict is UNRESOLVED and "could not be started" in outcome.reason


@pytest.mark.parametrize("bad_if_timeout", [False, True])
def test_time_limits(bad_if_timeout: bool, tmp_path: Path) -> None:
    want = BAD if bad_if_timeout else UNRESOLVED
    for oracle in (
        ReferenceOracle(Expected(b"", 0), timeout_s=0.2, bad_if_timeout=bad_if_timeout),
        ReferenceOracle(Expected(b"", -15), timeout_s=0.2, bad_if_timeout=bad_if_timeout),
        CommandOracle(["{exe}"], timeout_s=0.2, bad_if_timeout=bad_if_timeout),
        KernelOracle("c", timeout_s=0.2, bad_if_timeout=bad_if_timeout),
    ):
        found, told = verdict(oracle, tmp_path, "exec sleep 100")
        assert found is want and told.startswith("timeout after"), oracle


# --- the user's own command ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("body", "want", "reason"),
    [
        ("exit 0", GOOD, "exit 0"),
        ("exit 1", BAD, "exit 1"),
        ("exit 2", BAD, "exit 2"),
        ("exit 124", BAD, "exit 124"),
        ("exit 125", UNRESOLVED, "exit 125 (cannot tell)"),
        ("echo no device >&2; exit 125", UNRESOLVED, "invalid program: no device"),
        ("yes | head -c 9000000; printf '\\377'; exit 1", BAD, "exit 1"),
    ],
)
def test_command(body: str, want: Verdict, reason: str, tmp_path: Path) -> None:
    assert verdict(CommandOracle(["{exe}"]), tmp_path, body) == (want, reason)


@pytest.mark.parametrize(
    ("body", "told"),
    [
        ("exit 126", "the oracle cannot be executed: exit 126"),
        ("exec no-such-command-here", "the oracle cannot be executed: exit 127"),
        ("exit 128", "the oracle itself broke: exit 128"),
        ("exit 139", "the oracle itself broke: exit 139 (SIGSEGV)"),
        ("exit 255", "the oracle itself broke: exit 255"),
        ("kill -KILL $$", "the oracle itself broke: signal SIGKILL"),
    ],
)
@pytest.mark.parametrize("bad_if_crash", [False, True])
def test_a_check_that_does_not_work(body: str, told: str, bad_if_crash: bool, tmp_path: Path) -> None:
    oracle = CommandOracle(["{exe}"], bad_if_crash=bad_if_crash)
    if bad_if_crash and "broke" in told:
        assert verdict(oracle, tmp_path, body)[0] is BAD
        return
    with pytest.raises(OracleUnusable) as caught:
        verdict(oracle, tmp_path, "echo because >&2; " + body)
    assert told in caught.value.message and "because" in caught.value.detail and caught.value.hint


@pytest.mark.parametrize("argv", [["./no-such-check"], ["/etc/passwd"], ["/"]])
def test_a_check_that_is_not_there(argv: list[str], tmp_path: Path) -> None:
    with pytest.raises(OracleUnusable, match=r"the oracle cannot be executed") as caught:
        CommandOracle(argv).judge(tmp_path / "p", tmp_path)
    assert argv[0] in caught.value.message


def test_where_the_program_stands_in_the_command(tmp_path: Path) -> None:
    assert CommandOracle(["c", "--p={exe}", "x"]).command("/p q") == ["c", "--p=/p q", "x"]
    assert CommandOracle(["c", "x"]).command("/p q") == ["c", "x", "/p q"]
    check = script(tmp_path, 'test "$1" = "/p q" && test "$PWD" = / && test -d "$TMPDIR"')
    assert CommandOracle([str(check)], cwd=Path("/")).judge(Path("/p q"), tmp_path).verdict is GOOD


# --- a kernel's own host program ----------------------------------------------------------------


def document(**values: object) -> str:
    return json.dumps({"mismatches": 0, "elements": 4, **values})


@pytest.mark.parametrize(
    ("printed", "code", "want", "max_err"),
    [
        (document(max_err=0.25), 0, GOOD, 0.25),
        (document(max_err=3), 1, BAD, 3.0),
        (document(), 1, BAD, None),
        ('{"max_err": NaN}', 1, BAD, None),
        ('{"max_err": Infinity}', 1, BAD, None),
        ('{"max_err": 1' + "0" * 400 + "}", 1, BAD, None),
        (document(max_err=True), 1, BAD, None),
        (document(max_err="big"), 1, BAD, None),
        (document(max_err=[1]), 0, GOOD, None),
        ("", 0, UNRESOLVED, None),
        ("", 1, UNRESOLVED, None),
        ("max_err 3", 1, UNRESOLVED, None),
        ("[1, 2]", 0, UNRESOLVED, None),
        ("{} {}", 0, UNRESOLVED, None),
        ("[" * 100_000, 0, UNRESOLVED, None),
        (document() + "\nlog line", 1, UNRESOLVED, None),
        ("\udcff\udcfe", 1, UNRESOLVED, None),
        (document(x="y" * 5_000_000), 0, UNRESOLVED, None),
        (document(max_err=1), 2, UNRESOLVED, 1.0),
        ("", 125, UNRESOLVED, None),
        ("", 139, UNRESOLVED, None),
    ],
    ids=range(21),
)
def test_kernel(printed: str, code: int, want: Verdict, max_err: float | None, tmp_path: Path) -> None:
    output = tmp_path / "output"
    output.write_bytes(printed.encode("utf-8", "surrogateescape"))
    outcome = KernelOracle("c").judge(script(tmp_path, f"cat '{output}'; exit {code}"), tmp_path)
    assert outcome.verdict is want, outcome
    if want is not UNRESOLVED:
        assert outcome.max_err == max_err


@pytest.mark.parametrize(
    ("said", "code", "told"),
    [
        ({"mismatches": 3}, 0, "exit 0 all the same"),
        ({"verdict": "GOOD"}, 1, "exit 1, but its document says GOOD"),
        ({"verdict": "BAD"}, 0, "exit 0, but its document says BAD"),
        ({"seed": 4}, 1, "ran seed = 4, not 1"),
        ({"elements": 0}, 1, "compared no element"),
    ],
)
def test_a_kernel_whose_document_says_something_else(
    said: dict[str, object], code: int, told: str, tmp_path: Path
) -> None:
    body = f"echo '{document(max_err=0.5, **said)}'; exit {code}"
    outcome = KernelOracle("c").judge(script(tmp_path, body), tmp_path)
    assert outcome.verdict is UNRESOLVED and told in outcome.reason, outcome


@pytest.mark.parametrize(("bad_if_crash", "want"), [(False, UNRESOLVED), (True, BAD)])
def test_a_kernel_that_dies_by_a_signal(bad_if_crash: bool, want: Verdict, tmp_path: Path) -> None:
    oracle = KernelOracle("c", bad_if_crash=bad_if_crash)
    assert verdict(oracle, tmp_path, "kill -SEGV $$")[0] is want
    assert verdict(oracle, tmp_path, "exit 9")[0] is UNRESOLVED


def test_the_protocol_of_the_host_program(tmp_path: Path) -> None:
    oracle = KernelOracle("64x64x64", seed=7, input="zero")
    wanted = "--case 64x64x64 --seed 7 --input zero --json"
    body = f"""test "$*" = "{wanted}" || exit 9; echo '{{"mismatches": 2, "elements": 9, "max_err": 0.5}}'; exit 1"""
    assert verdict(oracle, tmp_path, body) == (BAD, "2/9 wrong, max_err 0.5")


def test_other_questions_have_other_identities() -> None:
    oracles: list[Oracle] = [
        ReferenceOracle(Expected(b"1", 0)),
        ReferenceOracle(Expected(b"2", 0)),
        ReferenceOracle(Expected(b"1", 1)),
        ReferenceOracle(Expected(b"1", 0), ["x"]),
        ReferenceOracle(Expected(b"1", 0), bad_if_timeout=True),
        CommandOracle(["a"]),
        CommandOracle(["a", "b"]),
        CommandOracle(["a b"]),
        CommandOracle(["a"], bad_if_crash=True),
        KernelOracle("a"),
        KernelOracle("a", seed=2),
        KernelOracle("a", input="zero"),
    ]
    assert len({oracle.id for oracle in oracles}) == len(oracles)
    assert CommandOracle(["a"]).id == CommandOracle(["a"]).id
