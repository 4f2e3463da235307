"""The flag catalogue: names to arguments, values, sets, and the shipped data."""

from __future__ import annotations

import dataclasses
import string
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from mccprobe.base.errors import AmbiguousFlag, BadDataFile, UnknownFlag
from mccprobe.targets.flags.catalogue import Catalogue, load_catalogue, normalise_option, promise_sentences
from mccprobe.targets.flags.entries import Risk

CATALOGUE = load_catalogue()
FOR_DRIVERS = ("mllvm", "driver")
PASSABLE = [name for name, flag in CATALOGUE.flags.items() if flag.option in FOR_DRIVERS]

# bare text -> arguments of the driver
GOLDEN = {
    "internal-regs-ra": ("-mllvm", "--mtgpu-enable-internal-regs-ra"),
    "mtgpu-enable-internal-regs-ra": ("-mllvm", "--mtgpu-enable-internal-regs-ra"),
    "internal-regs-ra=1": ("-mllvm", "--mtgpu-enable-internal-regs-ra=1"),
    "Internal-Regs-RA": ("-mllvm", "--mtgpu-enable-internal-regs-ra"),
    "postra-sched": ("-mllvm", "--mtgpu-enable-postra-sched"),
    "postra-sched=0": ("-mllvm", "--mtgpu-enable-postra-sched=0"),
    "max-ilp-scheduling-strategy": ("-mllvm", "--mtgpu-enable-max-ilp-scheduling-strategy"),
    "FenceSetting=relaxed": ("-mllvm", "--FenceSetting=relaxed"),
    "fencesetting=graph_color": ("-mllvm", "--FenceSetting=graph_color"),
    "load-store-opt": ("-mllvm", "-mtgpu-load-store-opt"),
    "tiny-offset-hint": ("-mllvm", "-mtgpu-tiny-offset-hint"),
    "if-convert=1": ("-mllvm", "-mtgpu-if-convert=1"),
    "maxregcnt=140": ("-mllvm", "-mtgpu-maxregcnt=140"),
    "opt-level=2": ("-mllvm", "-mtgpu-opt-level=2"),
    "user-fop=false": ("-mllvm", "--internal-opt-user-fop=false"),
    "num-dwords-of-load-in-mutation=64": ("-mllvm", "--num-dwords-of-load-in-mutation=64"),
    "misched=converge": ("-mllvm", "-misched=converge"),  # exact, although enable-misched ends in it
    "enable-misched=false": ("-mllvm", "-enable-misched=false"),
    "newgvn": ("-mllvm", "-enable-newgvn"),
    "loopinterchange": ("-mllvm", "-enable-loopinterchange"),
    "pre-RA-sched=linearize": ("-mllvm", "-pre-RA-sched=linearize"),
    "Od3": ("-Od3",),
    "flush-denormals-to-zero": ("-fmusa-flush-denormals-to-zero",),
    "x=musa": ("-x", "musa"),
    "###": ("-###",),
}

# text with a dash -> arguments, option key, value
VERBATIM = {
    "-enable-newgvn": (("-mllvm", "-enable-newgvn"), "enable-newgvn", None),
    "--enable-newgvn": (("-mllvm", "--enable-newgvn"), "enable-newgvn", None),
    "-mllvm -enable-newgvn": (("-mllvm", "-enable-newgvn"), "enable-newgvn", None),
    "-mllvm  --FenceSetting=mixed": (("-mllvm", "--FenceSetting=mixed"), "FenceSetting", "mixed"),
    "-mllvm=-x=1": (("-mllvm", "-x=1"), "x", "1"),
    "-FenceSetting=weak": (("-mllvm", "-FenceSetting=weak"), "FenceSetting", "weak"),
    "-fast-isel": (("-mllvm", "-fast-isel"), "fast-isel", None),
    "-fixup-byte-word-insts=0": (("-mllvm", "-fixup-byte-word-insts=0"), "fixup-byte-word-insts", "0"),
    "-force-vector-width=4": (("-mllvm", "-force-vector-width=4"), "force-vector-width", "4"),
    "-global-isel": (("-mllvm", "-global-isel"), "global-isel", None),
    "-machine-sink-split=false": (("-mllvm", "-machine-sink-split=false"), "machine-sink-split", "false"),
    "-mtgpu-if-convert": (("-mllvm", "-mtgpu-if-convert"), "mtgpu-if-convert", None),
    "-mtgpu": (("-mtgpu",), "mtgpu", None),
    "-O2": (("-O2",), "O2", None),
    "-Od3": (("-Od3",), "Od3", None),
    "-ffast-math": (("-ffast-math",), "ffast-math", None),
    "-fno-inline": (("-fno-inline",), "fno-inline", None),
    "-fsanitize=address": (("-fsanitize=address",), "fsanitize", "address"),
    "-march=native": (("-march=native",), "march", "native"),
    "-DPAD=8": (("-DPAD=8",), "DPAD", "8"),
    "--offload-arch=mp_31": (("--offload-arch=mp_31",), "offload-arch", "mp_31"),
    "-Xclang -disable-llvm-passes": (("-Xclang", "-disable-llvm-passes"), "disable-llvm-passes", None),
}


@pytest.mark.parametrize("text", GOLDEN)
def test_bare_names(text: str) -> None:
    found = CATALOGUE.resolve(text)
    assert found.argv == GOLDEN[text]
    assert not found.verbatim
    assert found.flag is not None and found.flag.name == found.option_key
    assert found.text == text


@pytest.mark.parametrize("text", VERBATIM)
def test_texts_with_a_dash_are_taken_as_they_stand(text: str) -> None:
    found = CATALOGUE.resolve(text)
    assert (found.argv, found.option_key, found.value) == VERBATIM[text]
    assert found.verbatim
    entry = CATALOGUE.find(found.option_key)
    assert found.flag is (entry if entry and entry.option in FOR_DRIVERS else None)  # -march is also llc's


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("internal-reg-ra", "mtgpu-enable-internal-regs-ra"),  # nearest by its ending
        ("fence", "FenceSetting"),  # names that hold the text
        ("FenceSetting=relax", "did you mean relaxed?"),
        ("FenceSetting", "needs a value (strict, mixed, relaxed, graph_color)"),
        ("FenceSetting=", "needs a value"),
        ("FenceSetting=Relaxed", "takes one of"),
        ("maxregcnt=many", "takes an integer"),
        ("internal-regs-ra=yes", "takes true or false"),
        ("regsra", "unknown flag: regsra"),
        ("", "a flag without a name"),
        ("=1", "a flag without a name"),
        ("-", "not a flag: -"),
        ("--=1", "not a flag"),
        ("-mllvm", "not a flag: -mllvm"),
        ("-mllvm ", "not a flag: -mllvm"),
        ("nul\0", "not a flag"),
        ("x" * 5000, "not a flag: xxx"),
    ],
)
def test_mistakes_are_told(text: str, said: str) -> None:
    with pytest.raises(UnknownFlag) as error:
        CATALOGUE.resolve(text)
    assert said in f"{error.value.message} {error.value.hint}"
    assert len(error.value.message) < 300 and "\n" not in error.value.message


def test_short_names_that_fit_several_list_them() -> None:
    with pytest.raises(AmbiguousFlag) as error:
        CATALOGUE.resolve("cluster-mutation")
    assert error.value.candidates == ("mtgpu-load-cluster-mutation", "mtgpu-store-cluster-mutation")


def test_suffixes_match_at_dashes_only() -> None:
    with pytest.raises(UnknownFlag):
        CATALOGUE.resolve("egs-ra")


def test_the_articles_set_keeps_its_spelling() -> None:
    flags = CATALOGUE.resolve_set("gemm-s4000")
    assert [" ".join(flag.argv) for flag in flags] == [
        "-mllvm --mtgpu-enable-postra-sched",
        "-mllvm --mtgpu-enable-max-ilp-scheduling-strategy",
        "-mllvm --FenceSetting=mixed",
        "-mllvm -mtgpu-load-store-opt",
        "-mllvm -mtgpu-load-cluster-mutation",
        "-mllvm -mtgpu-memory-sched-mutation",
        "-mllvm -mtgpu-tiny-offset-hint",
    ]
    with pytest.raises(UnknownFlag, match="unknown flag set: gemm"):
        CATALOGUE.resolve_set("gemm")


SHIPPED_IN_PUBLIC_CODE = """mtgpu-opt-level mtgpu-if-convert mtgpu-combine-instr-with-burst
    mtgpu-combine-fop-instr mtgpu-tiny-offset-hint mtgpu-enable-const-calc
    mtgpu-alloc-shared-memory-from-zero mtgpu-load-cluster-mutation num-dwords-of-load-in-mutation
    mtgpu-store-cluster-mutation mtgpu-memory-sched-mutation mtgpu-load-store-opt mtgpu-fold-global-ldst
    mtgpu-enable-postra-sched mtgpu-enable-max-ilp-scheduling-strategy mtgpu-enchanced-minreg-schedule
    mtgpu-enable-cse mtgpu-enable-preisel-sinking mtgpu-attr-alloc-first mtgpu-internalize-symbols misched
    misched-recompute-slotindex Od3 enable-ldma-index pragma-unroll-threshold unroll-threshold
    mathx-disable-fp64 mtgpu-enable-int-hidden mtgpu-use-sl mtgpu-reorder-scheduling
    FenceSetting mtgpu-enable-internal-regs-ra internal-opt-user-fop internal-opt-user-int
    internal-opt-user-bit mtgpu-maxregcnt enable-misched opt-bisect-limit""".split()


FRONT_END = """x mtgpu offload-arch cuda-gpu-arch musa-path musa-path-ignore-env musa-device-only
    musa-device-obj-only cuda-device-only cuda-host-only fmusa-flush-denormals-to-zero fno-signed-zeros
    fno-strict-aliasing ffast-math Ofast fsigned-char fgpu-rdc rdc dc fpass-plugin fplugin save-temps fverbose-asm
    v ### O0 O1 O2 O3 S emit-llvm opaque-pointers""".split()
LLC_AND_ATTRIBUTES = "mtriple march mcpu filetype mtgpu_unroll_threshold mtgpu_tiny_offset".split()


def test_every_public_flag_is_there() -> None:
    names = [*SHIPPED_IN_PUBLIC_CODE, *FRONT_END, *LLC_AND_ATTRIBUTES]
    assert [name for name in names if CATALOGUE.find(name) is None] == []


def test_what_the_article_found_ineffective_or_unsafe_is_marked() -> None:
    told = {
        (name, risk.kind, risk.value)
        for name, flag in CATALOGUE.flags.items()
        for risk in flag.risks
        if risk.source.startswith("article")
    }
    assert told >= {
        ("FenceSetting", "unsafe", "relaxed"),
        ("FenceSetting", "ineffective", "graph_color"),
        ("mtgpu-if-convert", "ineffective", ""),
        ("mtgpu-maxregcnt", "unsafe", "160"),
        ("mtgpu-maxregcnt", "unsafe", "140"),
        ("mtgpu-maxregcnt", "ineffective", "256"),
        ("mtgpu_unroll_threshold", "ineffective", ""),
        ("mtgpu_tiny_offset", "ineffective", ""),
        ("mtgpu-enable-internal-regs-ra", "fault", ""),
        ("internal-opt-user-fop", "ineffective", "false"),
        ("enable-misched", "ineffective", "false"),
    }


def test_a_risk_of_one_value_is_not_held_against_another() -> None:
    flag = CATALOGUE.flags["FenceSetting"]
    assert [risk.kind for risk in flag.risks_of("relaxed")] == ["unsafe"]
    assert flag.risks_of("mixed") == ()
    assert CATALOGUE.flags["mtgpu-tiny-offset-hint"].risks_of("1")[0].kind == "promise"


def test_bundles_name_public_members_only() -> None:
    members = {name: flag.bundle_members for name, flag in CATALOGUE.flags.items() if flag.bundle_members}
    assert members == {
        "Od3": ("mtgpu-enable-const-calc",),
        "mtgpu-opt-level": ("mtgpu-enable-const-calc",),
        "ffast-math": (
            "fno-honor-nans",
            "fno-honor-infinities",
            "fassociative-math",
            "freciprocal-math",
            "fno-signed-zeros",
            "fapprox-func",
            "fno-math-errno",
            "fno-trapping-math",
            "ffp-contract=fast",
        ),
        "Ofast": ("ffast-math",),
    }


@pytest.mark.parametrize("name", CATALOGUE.flags)
def test_entries_are_sane(name: str) -> None:
    flag = CATALOGUE.flags[name]
    value = "" if flag.type == "bool" else f"={(flag.values or ('x',))[0]}"
    if name in PASSABLE:
        assert CATALOGUE.resolve(name + value).flag is flag
    else:
        with pytest.raises(UnknownFlag, match=r"is an attribute of a kernel|is an option of llc"):
            CATALOGUE.resolve(name + value)
    assert flag.name not in (*flag.requires, *flag.exclusive_with, *flag.bundle_members)
    for other in flag.exclusive_with:
        assert name in CATALOGUE.flags[other].exclusive_with, f"{other} does not exclude {name}"
    if "article" not in flag.source:
        assert flag.confidence != "A"
    if flag.type == "bool" and name in PASSABLE:
        assert all(CATALOGUE.resolve(f"{name}={value}").value == value for value in flag.values)


def test_promises_are_marked() -> None:
    promises = {name for name, flag in CATALOGUE.flags.items() if any(r.kind == "promise" for r in flag.risks)}
    assert promises >= {
        "mtgpu-tiny-offset-hint",
        "mtgpu-alloc-shared-memory-from-zero",
        "fno-signed-zeros",
        "fmusa-flush-denormals-to-zero",
    }


# --- properties ----------------------------------------------------------------------------------

names = st.text(string.ascii_letters + string.digits + "-_.", min_size=1).filter(lambda t: t[0] not in "-_.")
values = st.none() | st.text(string.printable).map(str.strip)


@given(names, values, st.sampled_from(["", "-", "--"]))
def test_normalised_options_lose_dashes_only(name: str, value: str | None, dashes: str) -> None:
    text = dashes + name + ("" if value is None else f"={value}")
    assert normalise_option(text) == (name, value)


@given(st.text())
def test_normalising_is_idempotent(text: str) -> None:
    key, value = normalise_option(text)
    again = normalise_option(key if value is None else f"{key}={value}")
    assert again[0] == key


flag_texts = st.text() | st.builds(
    "{}{}{}{}".format,
    st.sampled_from(["", "-", "--", "-mllvm ", "-mllvm=", "-Xclang "]),
    st.sampled_from(sorted(CATALOGUE.flags)) | names,
    st.sampled_from(["", "=", "=1"]),
    st.text(max_size=5),
)


@given(flag_texts)
@example("-mllvm -")
@example("-Xclang")
def test_any_text_is_resolved_or_refused(text: str) -> None:
    try:
        found = CATALOGUE.resolve(text)
    except (UnknownFlag, AmbiguousFlag) as error:
        assert error.message and error.message.isprintable() and len(error.message) < 400
        return
    assert found.option_key and all(found.argv)
    assert len(found.argv) in (1, 2)
    apart = found.flag is not None and found.flag.separator == " " and found.value is not None
    if apart and not found.verbatim:
        assert (found.argv[0].lstrip("-"), found.argv[1]) == (found.option_key, found.value)
        return
    assert found.argv[-1].startswith("-") or found.verbatim
    assert normalise_option(found.argv[-1]) == (found.option_key, found.value)


@given(st.sampled_from(sorted(CATALOGUE.flags)), st.data())
def test_every_ending_finds_its_flag_or_is_ambiguous(name: str, data: st.DataObject) -> None:
    parts = name.split("-")
    start = data.draw(st.integers(0, len(parts) - 1))
    ending = "-".join(parts[start:])
    flag = CATALOGUE.flags[name]
    value = "" if flag.type == "bool" else f"={(flag.values or ('1',))[0]}"
    fitting = {key for key in CATALOGUE.flags if key.endswith(f"-{ending}") or key == ending}
    assert name in fitting
    try:
        found = CATALOGUE.resolve(ending + value)
    except AmbiguousFlag as error:
        assert set(error.candidates) == fitting
    except UnknownFlag:
        # another flag's exact name, with other values; or one that no driver takes
        assert (ending in CATALOGUE.flags and ending != name) or name not in PASSABLE
    else:
        assert found.option_key == (ending if ending in CATALOGUE.flags else name)


# --- files of the user ---------------------------------------------------------------------------

OWN = """
schema_version = 1
[[flag]]
name = "my-flag"
option = "mllvm"
spelling = "-my-flag"
type = "bool"
purpose = "p"
source = "s"
confidence = "S"
"""


def _load(tmp_path: Path, text: str) -> Catalogue:
    path = tmp_path / "own.toml"
    path.write_text(text)
    return load_catalogue([path])


def test_own_entries_are_added_and_replace_shipped_ones(tmp_path: Path) -> None:
    own = _load(tmp_path, OWN + OWN.replace("my-flag", "FenceSetting").replace("schema_version = 1", ""))
    assert own.resolve("my-flag").argv == ("-mllvm", "-my-flag")
    assert own.resolve("FenceSetting").argv == ("-mllvm", "-FenceSetting")
    assert CATALOGUE.find("my-flag") is None  # the shipped catalogue is untouched
    assert len(own.flags) == len(CATALOGUE.flags) + 1


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (('"bool"', '"boole"'), "flag[0].type: boole is not one of bool, driver"),
        (('"mllvm"', '"llvm"'), "flag[0].option: llvm is not one of attribute, driver, llc, mllvm"),
        (('confidence = "S"', ""), "flag[0].confidence: is missing"),
        (('confidence = "S"', 'confidense = "S"'), "flag[0].confidence: is missing"),
        (('source = "s"', 'source = "s"\nrisk = []'), "flag[0].risk: unknown key; did you mean risks?"),
        (('source = "s"', "source = 3"), "flag[0].source: expected a string, got an integer"),
        (('"-my-flag"', '"-other"'), "flag[0].spelling: -other is not my-flag with dashes in front"),
        (('"bool"', '"enum"'), "flag[0].values: is empty"),
        (('source = "s"', 'source = "s"\nrequires = ["nothing"]'), "flag[0].requires[0]: no flag nothing"),
        (('source = "s"', 'source = "s"\nvalues = [1]'), "flag[0].values[0]: expected a list of strings"),
        (
            ('source = "s"', 'source = "s"\nrisks = [{kind = "bad"}]'),
            "flag[0].risks[0].kind: bad is not one of",
        ),
        (
            ('source = "s"', 'source = "s"\nrisks = [{kind = "unsafe", value = "3", note = "n", source = "s"}]'),
            "flag[0].risks: a risk of the value 3, which is not among values",
        ),
        (('source = "s"', 'source = "s"\nseparator = ","'), "flag[0].separator: , is not one of"),
        (("[[flag]]", "[flag]"), "flag: expected [[flag]] tables, got a table"),
        (("[[flag]]", "[[flags]]"), "flags: unknown key; did you mean flag?"),
        (("= 1", "= 2"), "schema_version: is 2; this mccprobe reads 1"),
        (("schema_version = 1", ""), "schema_version: is missing"),
        (("[[flag]]", "[[flag"), "not TOML"),
        (("my-flag", "my flag"), "flag[0].name: my flag is not a flag name"),
    ],
)
def test_damaged_files_name_file_and_key(tmp_path: Path, change: tuple[str, str], said: str) -> None:
    with pytest.raises(BadDataFile) as error:
        _load(tmp_path, OWN.replace(*change))
    said = said.replace("bool, driver", "bool, enum, int, string")
    assert str(tmp_path / "own.toml") in error.value.message
    assert said in error.value.message


def test_twice_the_same_name_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadDataFile, match=r"flag\[1\]\.name: my-flag is there twice"):
        _load(tmp_path, OWN + OWN.replace("schema_version = 1", ""))


def test_sets_hold_flags_that_exist(tmp_path: Path) -> None:
    text = OWN + '[[set]]\nname = "mine"\nsummary = "s"\nsource = "s"\nflags = ["my-flag", "my-flog"]\n'
    with pytest.raises(BadDataFile, match=r"set\[0\]\.flags\[1\]: unknown flag: my-flog"):
        _load(tmp_path, text)
    assert _load(tmp_path, text.replace(', "my-flog"', "")).resolve_set("mine")[0].option_key == "my-flag"


def test_a_promise_of_one_value_is_not_told_of_another() -> None:
    risk = Risk("promise", "no aliasing", "a source", value="on")
    flag = dataclasses.replace(load_catalogue().flags["mtgpu-tiny-offset-hint"], risks=(risk,))
    (told,) = promise_sentences("x=on", flag, "on")
    assert "no aliasing" in told and "may be a broken one" in told
    assert promise_sentences("x=off", flag, "off") == [] == promise_sentences("x", None, None)
