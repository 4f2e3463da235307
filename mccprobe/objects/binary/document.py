"""One metadata document, MessagePack or YAML, to Python maps, lists and scalars, bounded.

Both carriers hold the same document (LLVM writes its MessagePack metadata as YAML into assembly), so
both end in `plain`: what comes out can be written as JSON, has string keys, and is no larger or
deeper than real metadata could be. Raises BadMetadata for everything else.

Traps handled here:
- `!str no` in YAML is the string "no" (a kernel may be called no, on, y, nan or 12); untagged
  scalars follow LLVM's rule (llvm/lib/BinaryFormat/MsgPackDocumentYAML.cpp, DocNode::fromString),
  not YAML 1.1's dates and base-60 numbers.
- msgpack reserves memory for the announced length of each list before it reads it: nested lists
  that announce 2^32 items each would take gigabytes. Lists over QUICK_ITEMS are read only after a
  scan that touches nothing but the bytes themselves.
- YAML aliases can make a small text a huge document: shared parts count each time.
"""

from __future__ import annotations

import functools
import math
import re
from typing import Any

import msgpack

from mccprobe.base.errors import BadMetadata

MAX_DEPTH = 64  # real documents have 5 levels
QUICK_ITEMS = 4096  # msgpack reserves 8 bytes an item and level, at most 1,024 levels: 32 MiB
_SCALARS = frozenset({str, int, bool, type(None)})


def read_messagepack(data: bytes, origin: str = "") -> Any:
    """The document of a note's descriptor."""
    try:
        try:
            value = _unpack(data, QUICK_ITEMS)
        except ValueError:
            _scan(data, origin)
            value = _unpack(data, len(data))
    except BadMetadata:
        raise
    except (ValueError, TypeError, OverflowError, RecursionError, MemoryError) as error:
        reason = str(error) or type(error).__name__
        raise BadMetadata(origin, f"the descriptor is no MessagePack document: {reason}") from error
    return plain(value, origin, max_nodes=len(data) + 1)


def _unpack(data: bytes, items: int) -> Any:
    return msgpack.unpackb(
        data,
        raw=False,
        strict_map_key=False,
        unicode_errors="surrogateescape",
        max_array_len=items,
        max_map_len=items,
    )


# Bytes after the first one, or the size of the length field, by first byte (msgpack.org/spec).
_FIXED = {0xC0: 0, 0xC2: 0, 0xC3: 0, 0xCA: 4, 0xCB: 8, 0xCC: 1, 0xCD: 2, 0xCE: 4, 0xCF: 8}
_FIXED |= {0xD0: 1, 0xD1: 2, 0xD2: 4, 0xD3: 8, 0xD4: 2, 0xD5: 3, 0xD6: 5, 0xD7: 9, 0xD8: 17}
_SIZED = {0xC4: (1, 0), 0xC5: (2, 0), 0xC6: (4, 0), 0xC7: (1, 1), 0xC8: (2, 1), 0xC9: (4, 1)}
_SIZED |= {0xD9: (1, 0), 0xDA: (2, 0), 0xDB: (4, 0)}
_MANY = {0xDC: (2, 1), 0xDD: (4, 1), 0xDE: (2, 2), 0xDF: (4, 2)}  # list, list, map, map: items a count


def _scan(data: bytes, origin: str) -> None:
    """Check that every announced item is there, without making any. Raises BadMetadata."""
    at, end = 0, len(data)
    open_items = [1]  # of each level: how many items are still to come
    while open_items:
        if open_items[-1] == 0:
            open_items.pop()
            continue
        open_items[-1] -= 1
        if at >= end:
            raise BadMetadata(origin, "the descriptor ends inside of its MessagePack document", offset=at)
        first = data[at]
        start, at = at, at + 1
        items = 0
        if first in _FIXED:
            at += _FIXED[first]
        elif 0xA0 <= first <= 0xBF:
            at += first & 0x1F
        elif 0x80 <= first <= 0x8F:
            items = 2 * (first & 0xF)
        elif 0x90 <= first <= 0x9F:
            items = first & 0xF
        elif first in _SIZED:
            width, more = _SIZED[first]
            at += width + more + int.from_bytes(data[at : at + width], "big")
        elif first in _MANY:
            width, each = _MANY[first]
            items = each * int.from_bytes(data[at : at + width], "big")
            at += width
        elif first == 0xC1:
            raise BadMetadata(origin, "byte c1 has no meaning in MessagePack", offset=start)
        if at > end or items > end - at:
            raise BadMetadata(
                origin, f"a MessagePack value runs past the end of the descriptor ({end} bytes)", offset=start
            )
        if items:
            open_items.append(items)
            if len(open_items) > MAX_DEPTH:
                raise BadMetadata(origin, f"MessagePack nested deeper than {MAX_DEPTH} levels", offset=start)


def plain(value: Any, origin: str = "", *, max_nodes: int = 1 << 32) -> Any:
    """The value with string keys, and bytes, extensions and odd floats as text.

    max_nodes: values in it, at most; no carrier needs less than a byte for one.

    Maps and lists are changed in place where they must be. Raises BadMetadata for a document that is
    too deep or too large, aliases counted as often as they occur.
    """
    holder = [value]
    level: list[dict[str, Any] | list[Any]] = [holder]
    depth, nodes = 0, 0
    while level:
        depth += 1
        if depth > MAX_DEPTH:
            raise BadMetadata(origin, f"the metadata is nested deeper than {MAX_DEPTH} levels")
        below: list[dict[str, Any] | list[Any]] = []
        for container in level:
            nodes += len(container)
            if nodes > max_nodes:
                raise BadMetadata(origin, "the metadata refers to its own parts many times")
            if isinstance(container, list):
                for index, item in enumerate(container):
                    kind = type(item)
                    if kind is dict or kind is list:
                        below.append(item)
                    elif kind not in _SCALARS:
                        container[index] = _scalar(item)
            else:
                odd = False
                for key, item in container.items():
                    kind = type(item)
                    if kind is dict or kind is list:
                        below.append(item)
                    elif kind not in _SCALARS:
                        odd = True
                    if type(key) is not str:
                        odd = True
                if odd:
                    kept = {_key(key): _scalar(item) for key, item in container.items()}
                    container.clear()
                    container.update(kept)
        level = below
    return holder[0]


def _key(key: Any) -> str:
    return key if isinstance(key, str) else str(_scalar(key))


def _scalar(item: Any) -> Any:
    if isinstance(item, str | bool | int | dict | list) or item is None:
        return item
    if isinstance(item, float):
        return item if math.isfinite(item) else str(item)
    if isinstance(item, bytes):
        return "0x" + item.hex()
    if isinstance(item, msgpack.ExtType):
        return f"extension {item.code}: 0x{item.data.hex()}"
    return str(item)


# --- YAML -------------------------------------------------------------------------------------

_TRUE = frozenset("true True TRUE y Y yes Yes YES on On ON".split())
_FALSE = frozenset("false False FALSE n N no No NO off Off OFF".split())  # llvm/Support/YAMLTraits.cpp, parseBool
_INTEGER = re.compile(r"[-+]?(?:0x[0-9a-fA-F]{1,16}|0b[01]{1,64}|0o?[0-7]{1,22}|[0-9]{1,20})$")
_FLOAT = re.compile(r"[-+]?(?:[0-9]+\.[0-9]*|\.[0-9]+|[0-9]+(?=[eE]))(?:[eE][-+]?[0-9]{1,3})?$")
_NULL = frozenset(("", "~", "null"))


def scalar_of(text: str) -> Any:
    """What an untagged plain scalar is, by LLVM's rule: integer, then boolean, then float, then text."""
    if _INTEGER.match(text):
        digits = text.lstrip("+-").lower()
        base = (
            16 if digits[:2] == "0x" else 2 if digits[:2] == "0b" else 8 if len(digits) > 1 and digits[0] == "0" else 10
        )
        try:
            number = int(digits, base)
        except ValueError:  # 09: a leading zero makes it octal
            return text
        return -number if text[0] == "-" else number
    if text in _TRUE or text in _FALSE:
        return text in _TRUE
    if text in _NULL:
        return None
    return float(text) if len(text) < 64 and _FLOAT.match(text) else text


@functools.cache
def _loader() -> Any:
    import yaml

    base: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

    class Loader(base):  # type: ignore[misc]
        yaml_implicit_resolvers: dict[str, Any] = {}  # noqa: RUF012 (PyYAML's own way): no implicit types

    def tagged(kind: str) -> Any:
        def construct(loader: Any, node: Any) -> Any:
            if not isinstance(node, yaml.ScalarNode):
                raise yaml.constructor.ConstructorError(None, None, f"{node.tag} is no scalar", node.start_mark)
            text = str(node.value)
            return text if kind == "str" or (kind == "" and node.style in ("'", '"')) else scalar_of(text)

        return construct

    for tag in ("str", "int", "bool", "float", "nil"):
        Loader.add_constructor(f"!{tag}", tagged("str" if tag == "str" else "any"))
    Loader.add_constructor("tag:yaml.org,2002:str", tagged(""))
    return Loader


def read_yaml(text: str, origin: str = "") -> Any:
    """The document between the metadata directives of an assembly text."""
    import yaml

    try:
        value = yaml.load(text, Loader=_loader())  # a SafeLoader
    except (yaml.YAMLError, ValueError, TypeError, RecursionError, OverflowError) as error:
        mark = getattr(error, "problem_mark", None)
        where = f", line {mark.line + 1} of the document" if mark is not None else ""
        problem = str(getattr(error, "problem", None) or error).partition("\n")[0]
        raise BadMetadata(origin, f"the metadata is no YAML document: {problem}{where}") from error
    return plain(value, origin, max_nodes=len(text) + 1)
