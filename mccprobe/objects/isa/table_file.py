"""Encoding tables as JSON files: written compactly, read with every value checked and bounded.

Only masks, values, mnemonics and counts are stored: no code, no listing text. reading(writing(t)) is
equivalent to t. Format: reports/isa-table.schema.json.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any, NoReturn

from mccprobe.base.errors import BadDataFile, InputError
from mccprobe.base.files import replace_file
from mccprobe.base.paths import is_file, read_file, read_text
from mccprobe.objects.isa.encoding import FORMAT, FORMAT_VERSION, EncodingTable, Field, Guard, HeldOut, Row, Source

MAX_FILE_BYTES = 64 << 20  # a table after two probing rounds has 2 MB
MAX_ROWS = 200_000
MAX_WORD_BYTES = 64  # of a whole word; a Hexagon packet has 16, a VLIW word of C6000 32
MAX_TEXT = 400  # characters of a name or operand kind
MAX_FORM = 40
MAX_REFUSED_BITS = 12

_PARTS = {
    "format", "format_version", "tool_version", "target", "unit", "word", "slots", "tool", "assumptions", "sources",
    "probes", "held_out", "refused_rows", "forms", "mnemonics", "rows", "fields", "guards", "invisible", "conflicts",
}  # fmt: skip


def table_document(table: EncodingTable, tool_version: str) -> dict[str, Any]:
    """The JSON document. Mnemonics and forms are listed once; rows name them by number."""
    mnemonics = sorted({row.mnemonic for row in table.rows} | set(table.pipes))
    forms = sorted({row.form for row in table.rows if row.form is not None})
    name_of = {name: number for number, name in enumerate(mnemonics)}
    form_of: dict[tuple[str, ...] | None, int | None] = {form: number for number, form in enumerate(forms)}
    form_of[None] = None
    return {
        "format": FORMAT,
        "format_version": FORMAT_VERSION,
        "tool_version": tool_version,
        "target": table.target,
        "unit": table.unit,
        "word": table.word,
        "slots": table.slots,
        "tool": table.tool,
        "assumptions": list(table.assumptions),
        "sources": [asdict(source) for source in table.sources],
        "probes": dict(table.probes),
        "held_out": asdict(table.held_out) if table.held_out else None,
        "refused_rows": table.refused_rows,
        "mnemonics": [[name, table.pipes.get(name)] for name in mnemonics],
        "forms": [list(form) for form in forms],
        "rows": [
            {
                "mnemonic": name_of[row.mnemonic],
                "form": form_of[row.form],
                "size": row.size,
                "slot": row.slot,
                "part": row.part,
                "samples": row.samples,
                "probed": row.probed,
                "confidence": row.confidence.name.lower(),
                "value": f"{row.value:x}",
                "strict": f"{row.strict:x}",
                "relaxed": f"{row.relaxed:x}",
                "guards": list(row.guards),
            }
            for row in table.rows
        ],
        "fields": [asdict(field) for field in table.fields],
        "guards": [
            {"size": guard.size, "low": guard.low, "width": guard.width, "refused": list(guard.refused)}
            for guard in table.guards
        ],
        "invisible": {str(size): f"{mask:x}" for size, mask in table.invisible.items()},
        "conflicts": [
            {"size": size, "word": f"{word:x}", "mnemonics": list(names)} for size, word, names in table.conflicts
        ],
    }


def write_table(path: Path, table: EncodingTable, tool_version: str) -> None:
    """Write the table, one row a line. Never over a file that is no table. Raises InputError."""
    document = table_document(table, tool_version)
    rows = document.pop("rows")
    text = json.dumps(document, separators=(",", ":"), ensure_ascii=True)
    body = ",\n".join(json.dumps(row, separators=(",", ":")) for row in rows)
    try:
        if is_file(path) and path.stat().st_size and f'"{FORMAT}"'.encode() not in read_file(path)[:200]:
            raise InputError(f"{path}: exists and is no encoding table", hint="give another -o")
        replace_file(path, f'{text[:-1]},"rows":[\n{body}\n]}}\n'.encode("ascii"))
    except OSError as error:
        raise InputError(
            f"{path}: cannot be written: {error.strerror or error}", hint="free space or name another file"
        ) from error


def read_table(path: Path) -> EncodingTable:
    """Read and check a table. Raises BadDataFile that names the place, InputError if it cannot be read."""
    try:
        if path.stat().st_size > MAX_FILE_BYTES:
            raise BadDataFile(f"{path}: {path.stat().st_size} bytes, an encoding table has at most {MAX_FILE_BYTES}")
        text = read_text(path, most=MAX_FILE_BYTES)
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror or error}") from error
    except UnicodeDecodeError as error:
        raise BadDataFile(f"{path}: no JSON text: byte 0x{error.start:x} is no UTF-8") from error
    try:
        document = json.loads(text, parse_constant=_no_constant)
    except (ValueError, RecursionError) as error:
        raise BadDataFile(f"{path}: no JSON: {error}") from error
    return _Reader(str(path)).table(document)


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON number")


class _Reader:
    """Checks while it reads; every complaint names the file and the key."""

    def __init__(self, name: str) -> None:
        self.name = name

    def bad(self, where: str, what: str) -> NoReturn:
        raise BadDataFile(f"{self.name}: {where}: {what}")

    def integer(self, owner: Mapping[str, Any], key: str, low: int, high: int, where: str = "") -> int:
        value = owner.get(key)
        if type(value) is not int or not low <= value <= high:
            self.bad(f"{where}{key}", f"{value!r:.60} is no whole number from {low} to {high}")
        return value

    def text(self, value: Any, where: str) -> str:
        if not isinstance(value, str) or len(value) > MAX_TEXT:
            self.bad(where, f"no text of at most {MAX_TEXT} characters")
        return value

    def items(self, owner: Mapping[str, Any], key: str, limit: int = MAX_ROWS, where: str = "") -> list[Any]:
        value = owner.get(key)
        if not isinstance(value, list) or len(value) > limit:
            self.bad(f"{where}{key}", f"no list of at most {limit} entries")
        return value

    def mapping(self, value: Any, where: str) -> dict[str, Any]:
        if not isinstance(value, dict):
            self.bad(where, "no object")
        return value

    def number(self, value: Any, size: int, where: str) -> int:
        """A hexadecimal number that fits into `size` bytes."""
        if not isinstance(value, str) or not 0 < len(value) <= 2 * size or not set(value) <= set("0123456789abcdef"):
            self.bad(where, f"no hexadecimal number of at most {size} bytes")
        return int(value, 16)

    def table(self, document: Any) -> EncodingTable:
        top = self.mapping(document, "document")
        if top.get("format") != FORMAT:
            self.bad("format", f"{top.get('format')!r:.60} is not {FORMAT}")
        if top.get("format_version") != FORMAT_VERSION:
            self.bad("format_version", f"{top.get('format_version')!r:.60}; this mccprobe reads {FORMAT_VERSION}")
        unknown = sorted(set(top) - _PARTS)
        if unknown:
            self.bad(f"{unknown[0]:.60}", "unknown key")
        names, pipes = self.mnemonics(top)
        forms = [
            tuple(self.text(kind, f"forms[{number}]") for kind in self.form(form, number))
            for number, form in enumerate(self.items(top, "forms"))
        ]
        guards = tuple(self.guard(entry, f"guards[{n}].") for n, entry in enumerate(self.items(top, "guards")))
        rows = tuple(
            self.row(entry, f"rows[{n}].", names, forms, guards) for n, entry in enumerate(self.items(top, "rows"))
        )
        word = self.integer(top, "word", 1, MAX_WORD_BYTES)
        unit = self.integer(top, "unit", 1, word)
        slots = self.integer(top, "slots", 1, MAX_WORD_BYTES)
        if slots > 1 and slots * unit != word:
            self.bad("slots", f"{slots} slots of {unit} bytes are no word of {word}")
        if any(not -1 <= row.slot < slots for row in rows):
            self.bad("rows", "a row stands in a slot that a word does not have")
        held_out = top.get("held_out")
        return EncodingTable(
            self.text(top.get("target"), "target"),
            unit,
            word,
            slots,
            self.text(top.get("tool"), "tool"),
            rows,
            pipes,
            tuple(self.source(entry, n) for n, entry in enumerate(self.items(top, "sources"))),
            tuple(self.field(entry, n) for n, entry in enumerate(self.items(top, "fields"))),
            guards,
            self.invisible(top),
            tuple(self.conflict(entry, n) for n, entry in enumerate(self.items(top, "conflicts"))),
            self.counts(top.get("probes"), "probes"),
            None if held_out is None else self.held_out(held_out),
            self.integer(top, "refused_rows", 0, MAX_ROWS),
            tuple(self.text(text, "assumptions") for text in self.items(top, "assumptions", 100)),
        )

    def mnemonics(self, top: Mapping[str, Any]) -> tuple[list[str], dict[str, str]]:
        names: list[str] = []
        pipes: dict[str, str] = {}
        for number, entry in enumerate(self.items(top, "mnemonics")):
            where = f"mnemonics[{number}]"
            if not isinstance(entry, list) or len(entry) != 2:
                self.bad(where, "no [mnemonic, pipe]")
            names.append(self.text(entry[0], where))
            if not names[-1]:
                self.bad(where, "an empty mnemonic")
            if entry[1] is not None:
                pipes[names[-1]] = self.text(entry[1], where)
        if len(set(names)) != len(names):
            self.bad("mnemonics", "one stands there twice")
        return names, pipes

    def form(self, form: Any, number: int) -> Sequence[Any]:
        if not isinstance(form, list) or len(form) > MAX_FORM:
            self.bad(f"forms[{number}]", f"no list of at most {MAX_FORM} operand kinds")
        return form

    def guard(self, entry: Any, where: str) -> Guard:
        guard = self.mapping(entry, where)
        size = self.integer(guard, "size", 1, MAX_WORD_BYTES, where)
        width = self.integer(guard, "width", 1, MAX_REFUSED_BITS, where)
        low = self.integer(guard, "low", 0, 8 * size - width, where)
        refused = self.items(guard, "refused", 1 << width, where)
        if any(type(value) is not int or not 0 <= value < 1 << width for value in refused):
            self.bad(f"{where}refused", f"a value that is none of {width} bits")
        return Guard(size, low, width, tuple(refused))

    def row(
        self, entry: Any, where: str, names: list[str], forms: list[tuple[str, ...]], guards: tuple[Guard, ...]
    ) -> Row:
        row = self.mapping(entry, where)
        size = self.integer(row, "size", 1, MAX_WORD_BYTES, where)
        masks = ("value", "strict", "relaxed")
        value, strict, relaxed = (self.number(row.get(key), size, where + key) for key in masks)
        if value & ~strict or relaxed & ~strict:
            self.bad(where + "strict", "does not cover value and relaxed")
        if not relaxed:
            self.bad(where + "relaxed", "a row that accepts every word")
        samples = self.integer(row, "samples", 1, 1 << 40, where)
        form = None if row.get("form") is None else forms[self.integer(row, "form", 0, len(forms) - 1, where)]
        numbers = self.items(row, "guards", 100, where)
        if any(type(number) is not int or not 0 <= number < len(guards) for number in numbers):
            self.bad(f"{where}guards", "a guard that is not there")
        return Row(
            names[self.integer(row, "mnemonic", 0, len(names) - 1, where)],
            form,
            size,
            self.integer(row, "slot", -1, MAX_WORD_BYTES, where),
            self.integer(row, "part", 0, 1 << 16, where),
            samples,
            self.integer(row, "probed", 0, samples, where),
            value,
            strict,
            relaxed,
            tuple(numbers),
        )

    def source(self, entry: Any, number: int) -> Source:
        where = f"sources[{number}]."
        source = self.mapping(entry, where)
        name, digest, kind = (self.text(source.get(key), where + key) for key in ("name", "sha256", "format"))
        return Source(name, digest, kind, self.integer(source, "instructions", 0, 1 << 40, where))

    def field(self, entry: Any, number: int) -> Field:
        where = f"fields[{number}]."
        field = self.mapping(entry, where)
        size = self.integer(field, "size", 1, MAX_WORD_BYTES, where)
        return Field(
            size,
            self.text(field.get("kind"), where + "kind"),
            self.integer(field, "ordinal", 0, 100, where),
            self.integer(field, "low", 0, 8 * size - 1, where),
            self.integer(field, "width", 1, 8 * size, where),
            self.integer(field, "votes", 0, 1 << 40, where),
        )

    def invisible(self, top: Mapping[str, Any]) -> dict[int, int]:
        masks = {}
        for key, value in self.mapping(top.get("invisible"), "invisible").items():
            if not key.isascii() or not key.isdigit() or len(key) > 2 or not 1 <= int(key) <= MAX_WORD_BYTES:
                self.bad("invisible", f"{key!r:.60} is no size")
            masks[int(key)] = self.number(value, int(key), f"invisible.{key}")
        return masks

    def conflict(self, entry: Any, number: int) -> tuple[int, int, tuple[str, ...]]:
        where = f"conflicts[{number}]."
        conflict = self.mapping(entry, where)
        size = self.integer(conflict, "size", 1, MAX_WORD_BYTES, where)
        names = tuple(self.text(name, where + "mnemonics") for name in self.items(conflict, "mnemonics", 1000, where))
        return size, self.number(conflict.get("word"), size, where + "word"), names

    def counts(self, value: Any, where: str) -> dict[str, int]:
        counts = self.mapping(value, where)
        if len(counts) > 20:
            self.bad(where, "more than 20 entries")
        return {self.text(key, where): self.integer(counts, key, 0, 1 << 40, f"{where}.") for key in counts}

    def held_out(self, value: Any) -> HeldOut:
        entry = self.mapping(value, "held_out")
        return HeldOut(*(self.integer(entry, part.name, 0, 1 << 40, "held_out.") for part in fields(HeldOut)))
