"""A build as it is recorded: units with arguments and folders of their own, and a link that names its inputs."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mccprobe.build.executor import LocalExecutor
from mccprobe.build.journal import Journal
from mccprobe.build.ledger import Ledger
from mccprobe.build.program import Linker, Program, Rest
from mccprobe.build.record import Build, Link, TranslationUnit, of_command
from mccprobe.build.store import RunDirectory
from mccprobe.build.unit import RecordedSource, Unit
from mccprobe.targets.clang.toolchain import ClangToolchain

NAMES = st.lists(st.sampled_from(["a.c", "b.cpp", "lib.a", "c.o", "d.so", "e.ll"]), max_size=6)


@given(NAMES, st.lists(st.sampled_from(["-O2", "-DX=1", "-g"]), max_size=3))
def test_a_command_line_becomes_units_and_a_link_in_its_order(inputs: list[str], args: list[str]) -> None:
    build = of_command(Path("main.c"), args, inputs, ["-lm"], rest_args=["-O0"])
    assert build.units[0] == TranslationUnit("main.c", tuple(args))
    named = [one if isinstance(one, str) else build.units[one].source for one in build.link.inputs]
    assert named == ["main.c", *inputs]
    assert all(unit.args == ("-O0",) for unit in build.units[1:])
    assert build.place_of(0) == 0 and len(build.other_inputs(0)) == len(inputs)


def test_a_joined_link_has_the_options_of_the_compile_and_a_recorded_one_has_not() -> None:
    joined = Link((0,), ("-lm",))
    assert joined.options(("-O2", "-x", "c")) == ("-O2", "-lm")
    assert Link((0,), ("-lm",), joined=False).options(("-O2",)) == ("-lm",)


@pytest.mark.toolchain("clang-14")
def test_units_of_other_folders_and_arguments_are_compiled_there(tmp_path: Path, compiler: object) -> None:
    """The link's order is kept, each unit sees its own folder, and only the examined unit is replaced."""
    driver = compiler(14)  # type: ignore[operator]
    for name, text in {
        "one/value.h": "#define VALUE 1\n",
        "two/value.h": "#define VALUE 20\n",
        "one/one.c": '#include "value.h"\nint one(void) { return VALUE * SCALE; }\n',
        "two/two.c": '#include "value.h"\nint two(void) { return VALUE * SCALE; }\n',
        "main.c": "int printf(const char *, ...);\nint one(void), two(void);\n"
        'int main(void) { printf("%d %d\\n", one(), two()); return 0; }\n',
    }.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    units = (
        TranslationUnit("main.c", ("-O1",), tmp_path),
        TranslationUnit("one.c", ("-I.", "-DSCALE=3"), tmp_path / "one"),
        TranslationUnit("two.c", ("-I.", "-DSCALE=5"), tmp_path / "two", {"NOT_READ": "1"}),
    )
    build = Build(units, Link((1, 0, 2), (), tmp_path, joined=False))
    run = RunDirectory(tmp_path / "run")
    journal, executor = Journal(run.journal), LocalExecutor(2)
    try:
        ledger = Ledger(run, journal, executor)
        toolchain = ClangToolchain([driver])
        recorded = RecordedSource(toolchain, ledger, build.units[1], name="one", timeout_s=60)
        rest = Rest(toolchain, ledger, build, 1, timeout_s=60)
        linker = Linker(recorded, rest, build.link, build.place_of(1), name="bad", timeout_s=60)
        outputs = []
        for scale in ("3", "7"):
            unit = Unit(
                RecordedSource(
                    toolchain,
                    ledger,
                    build.units[1].with_args(("-I.", f"-DSCALE={scale}")),
                    name=f"one-{scale}",
                    timeout_s=60,
                ),
                f"scale-{scale}",
            )
            unit.prepare_direct()
            program = Program(unit, linker).replace(unit.base[0])
            assert isinstance(program, Path), program
            outputs.append(subprocess.run([program], capture_output=True, text=True, check=True).stdout)
        assert outputs == ["3 100\n", "7 100\n"]
        names = [Path(word).name for word in linker.job.argv if word.endswith(".o") and str(tmp_path) in word]
        assert names == ["bisected.o", "rest-0.o", "rest-1.o"]
    finally:
        executor.shutdown(cancel=True)
        journal.close()
