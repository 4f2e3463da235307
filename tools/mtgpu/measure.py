"""Measures the open tables of MTGPU encodings from real objects, and what they are worth on functions left out.

    MTGPU_OBJECTS=FOLDER python tools/mtgpu/measure.py            the tables into mccprobe/objects/isa/mtgpu/data
    MTGPU_OBJECTS=FOLDER python tools/mtgpu/measure.py --figures  figures of docs only, nothing is written
    MTGPU_OBJECTS=FOLDER python tools/mtgpu/measure.py --check    exit 1 if the stored tables are not these

FOLDER holds the fat binaries of a public benchmark of Moore Threads (docs name it). Same objects, same tables.
"""

from __future__ import annotations

import json
import os
import sys
from collections import Counter, defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(Path(__file__).resolve().parent)]

import checks  # noqa: E402
from hypotheses import FAMILIES, Family, Guess, Place  # noqa: E402
from objects import LOOPS, Sample, load  # noqa: E402

from mccprobe.objects.isa.flow import analyse  # noqa: E402
from mccprobe.objects.isa.mtgpu.decode import Decoded, Decoder  # noqa: E402
from mccprobe.objects.isa.mtgpu.listing import function_of  # noqa: E402
from mccprobe.objects.isa.mtgpu.table import ALL_BITS, CERTAIN, LIKELY, parse_table  # noqa: E402

DATA = ROOT / "mccprobe" / "objects" / "isa" / "mtgpu" / "data"
MIN_INSTRUCTIONS, MIN_FUNCTIONS, MIN_HOLDS = 8, 4, 8  # for `certain`: checks of the class itself; and none may fail
MIN_FIELD_HOLDS = 16
Tally = dict[tuple[str, str], Counter[tuple[str, bool]]]


def document(family: Family, samples: Sequence[Sample], sources: Sequence[str]) -> dict[str, Any]:
    """The table of a family as measured on these functions."""
    tally, seen, instructions, functions = _measure(family, samples)
    distance: Counter[bool] = Counter()
    for (_, item), found in tally.items():
        for (check, holds), times in found.items():
            if not item and check == checks._WORDS["lands"]:
                distance[holds] += times
    rules = []
    sources_of = {(sample.target, sample.name): sample.template or "constant part of a kernel" for sample in samples}
    for guess in family.guesses:
        if not instructions[guess.id] and not guess.by_note:
            continue
        one, zero = seen.get(guess.id, (0, 0))
        total = tally.get((guess.id, ""), Counter())
        holds, fails = _sums(total)
        places = [_place(place, tally.get((guess.id, place.name), Counter())) for place in guess.places]
        backed = holds + sum(place["holds"] for place in places)
        refuted = fails + sum(place["fails"] for place in places)
        enough = (
            instructions[guess.id] >= MIN_INSTRUCTIONS
            and len(functions[guess.id]) >= MIN_FUNCTIONS
            and holds >= MIN_HOLDS
            and refuted == 0
        )
        mask, value = guess.mask_value()
        texts = sorted({check for (rule, _), found in tally.items() if rule == guess.id for check, _ in found})
        rules.append(
            {
                "id": guess.id,
                "class": guess.name,
                "pipe": guess.pipe,
                "flow": guess.flow,
                "dwords": list(guess.dwords),
                "mask": f"{mask:x}",
                "value": f"{value:x}",
                "confidence": CERTAIN if enough and not guess.never_certain else LIKELY,
                "evidence": {
                    "instructions": instructions[guess.id],
                    "functions": len(functions[guess.id]),
                    "holds": backed,
                    "fails": refuted,
                    "checks": texts,
                    "kernels": sorted({sources_of[name] for name in functions[guess.id]}),
                },
                "seen_one": f"{one:x}",
                "seen_zero": f"{zero:x}",
                "widths": _widths(guess),
                "fields": [place for place in places if place["holds"] and not place["fails"]],
            }
        )
    return {
        "family": family.name,
        "targets": list(family.targets),
        "sources": list(sources),
        "defaults": [{"nibble": f"{n:x}", "dword": d, "value": f"{v:x}"} for n, d, v in family.defaults],
        "distance": {
            "bits": list(family.distance),
            "sign": list(family.sign),
            "holds": distance[True],
            "fails": distance[False],
        },
        "rules": rules,
    }


def _widths(guess: Guess) -> list[list[int]]:
    return [[bit, size] for bit, size in guess.widths]


def _sums(found: Counter[tuple[str, bool]]) -> tuple[int, int]:
    return (
        sum(times for (_, holds), times in found.items() if holds),
        sum(times for (_, holds), times in found.items() if not holds),
    )


def _place(place: Place, found: Counter[tuple[str, bool]]) -> dict[str, Any]:
    holds, fails = _sums(found)
    return {
        **_field(place),
        "confidence": CERTAIN if holds >= MIN_FIELD_HOLDS else LIKELY,
        "holds": holds,
        "fails": fails,
    }


def _field(place: Place) -> dict[str, Any]:
    return {
        "name": place.name,
        "role": place.role,
        "bits": [list(bits) if isinstance(bits, tuple) else [bits] for bits in place.bits],
        "bank": list(place.bank),
        "banks": place.banks,
        "extra": list(place.extra),
        "wide": list(place.wide),
        "offset": place.offset,
        "span": place.span,
    }


def _untested(family: Family) -> Decoder:
    """A decoder of the guesses as they stand, for which nothing is unseen."""
    every = f"{ALL_BITS:x}"
    rules = [_rule(guess, every) for guess in family.guesses]
    return Decoder(
        parse_table(
            {
                "family": family.name,
                "targets": family.targets,
                "sources": [],
                "rules": rules,
                "defaults": [{"nibble": f"{n:x}", "dword": d, "value": f"{v:x}"} for n, d, v in family.defaults],
                "distance": {"bits": family.distance, "sign": family.sign, "holds": 0, "fails": 0},
            }
        )
    )


def _rule(guess: Guess, every: str) -> dict[str, Any]:
    mask, value = guess.mask_value()
    return {
        "id": guess.id,
        "class": guess.name,
        "pipe": guess.pipe,
        "flow": guess.flow,
        "dwords": guess.dwords,
        "mask": f"{mask:x}",
        "value": f"{value:x}",
        "confidence": CERTAIN,
        "seen_one": every,
        "seen_zero": every,
        "evidence": {"instructions": 0, "functions": 0, "holds": 0, "fails": 0, "checks": [], "kernels": []},
        "fields": [{**_field(place), "confidence": CERTAIN, "holds": 0, "fails": 0} for place in guess.places],
        "widths": _widths(guess),
    }


def _measure(
    family: Family, samples: Sequence[Sample]
) -> tuple[Tally, dict[str, tuple[int, int]], Counter[str], dict[str, set[tuple[str, str]]]]:
    decoder = _untested(family)
    guesses = {guess.id: guess for guess in family.guesses}
    tally: Tally = defaultdict(Counter)
    seen: dict[str, tuple[int, int]] = {}
    instructions: Counter[str] = Counter()
    functions: dict[str, set[tuple[str, str]]] = defaultdict(set)
    for sample in samples:
        decoded = decoder.decode(sample.code)
        targets = {one.target for one in decoded if one.target is not None}
        for verdict in (*checks.operands(sample, decoded), *checks.counts(sample, decoded)):
            tally[verdict.rule, verdict.field][verdict.check, verdict.holds] += 1
        for place, one in enumerate(decoded):
            rule = one.meaning.rule
            if rule is None:
                continue
            number = decoder.number(one.piece.dwords)
            ones, zeros = seen.get(rule.id, (0, 0))
            seen[rule.id] = ones | number, zeros | (~number & ALL_BITS)
            instructions[rule.id] += 1
            functions[rule.id].add((sample.target, sample.name))
            for verdict in checks.of_guess(guesses[rule.id], place, sample, decoded, number, targets):
                tally[verdict.rule, verdict.field][verdict.check, verdict.holds] += 1
    return tally, seen, instructions, functions


# --- figures ---------------------------------------------------------------------------------------


def figures(decoder: Decoder, samples: Sequence[Sample]) -> dict[str, Any]:
    """What a table says of these functions."""
    total: Counter[str] = Counter()
    for sample in samples:
        decoded = decoder.decode(sample.code)
        _instructions(total, decoded)
        _registers(total, sample, decoded)
        for verdict in checks.defined(decoded):
            total["reads of a register"] += 1
            total["reads of a register written before"] += verdict.holds
        if sample.expected is not None:
            total["kernels"] += 1
            total["kernels as their source"] += not checks.missing(sample, decoded)
            loops = len(analyse(function_of(sample.name, 0, decoded), "mtgpu").loops)
            wanted = LOOPS.get(sample.template, 0)
            total["loops as the source"] += loops >= wanted if wanted else loops == 0
    return dict(total)


def _instructions(total: Counter[str], decoded: Sequence[Decoded]) -> None:
    for one in decoded:
        total["instructions"] += 1
        total[one.meaning.confidence or "unknown"] += 1
        flow = one.meaning.rule.flow if one.meaning.rule is not None else ""
        if flow in ("branch", "jump"):
            total["branches"] += 1
            total["branches with a target"] += one.target is not None


def _registers(total: Counter[str], sample: Sample, decoded: Sequence[Decoded]) -> None:
    if sample.registers is None:
        return
    count = sample.registers["temp"] or 0
    indices = [
        operand.first + operand.span - 1
        for one in decoded
        for operand in one.meaning.operands
        if operand.bank == "R" and operand.first is not None
    ]
    total["registers"] += len(indices)
    total["registers at or above the count"] += sum(index >= count for index in indices)
    total["functions with a register count"] += count > 0
    total["largest register found"] += count > 0 and max(indices, default=-1) == count - 1


def left_out(family: Family, samples: Sequence[Sample], sources: Sequence[str]) -> dict[str, Any]:
    """Each template decoded by the table measured on the others."""
    total: Counter[str] = Counter()
    for template in sorted({sample.template for sample in samples if sample.template}):
        rest = [sample for sample in samples if sample.template != template]
        table = parse_table(document(family, rest, sources))
        total.update(figures(Decoder(table), [sample for sample in samples if sample.template == template]))
    return dict(total)


def main(arguments: Sequence[str]) -> int:
    folder = os.environ.get("MTGPU_OBJECTS", "")
    if not folder:
        print("MTGPU_OBJECTS names no folder of objects", file=sys.stderr)
        return 2
    samples, sources = load(Path(folder))
    stale = []
    for family in FAMILIES:
        chosen = [sample for sample in samples if sample.target in family.targets]
        table = document(family, chosen, sources)
        text = json.dumps(table, indent=1, sort_keys=True) + "\n"
        path = DATA / f"{family.name}.json"
        if "--check" in arguments:
            stale += [] if path.is_file() and path.read_text(encoding="utf-8") == text else [path.name]
            continue
        if "--figures" not in arguments:
            path.write_text(text, encoding="utf-8")
        print(family.name)
        for rule in table["rules"]:
            evidence = rule["evidence"]
            print(
                f"  {rule['id']:<20}{rule['confidence']:<9}"
                + " ".join(f"{k} {evidence[k]}" for k in ("instructions", "functions", "holds", "fails"))
            )
            wanted = next(guess for guess in family.guesses if guess.id == rule["id"]).places
            dropped = {place.name for place in wanted} - {item["name"] for item in rule["fields"]}
            if dropped:
                print(f"      operands not kept: {', '.join(sorted(dropped))}")
        for target in family.targets:
            found = figures(Decoder(parse_table(table)), [one for one in chosen if one.target == target])
            print(f"  {target}: {found}")
        print(f"  each template by the others: {left_out(family, chosen, sources)}")
    if stale:
        print(f"not as measured: {', '.join(stale)}", file=sys.stderr)
    return 1 if stale else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
