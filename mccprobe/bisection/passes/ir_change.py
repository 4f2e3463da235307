"""Did an IR pass change instructions, or only attributes and metadata? Compares IR texts.

A pass that only deduces attributes (`norecurse`, `nocapture`) changes no instruction by itself: a
later step that believes them, or that is enabled by them, makes the difference. So it is exposed,
never found.
"""

from __future__ import annotations

import difflib
import re
from enum import StrEnum

# Words of the IR language that are attributes of functions, parameters and calls
# (llvm/docs/LangRef.rst 13 to 19, "Parameter Attributes" and "Function Attributes").
_ATTRIBUTE_WORDS = (
    "alignstack", "allocalign", "allockind", "allocptr", "allocsize", "alwaysinline", "argmemonly",
    "builtin", "byref", "byval", "captures", "cold", "convergent", "coro_elide_safe",
    "coro_only_destroy_when_complete", "dead_on_unwind", "dereferenceable", "dereferenceable_or_null",
    "disable_sanitizer_instrumentation", "dso_local", "elementtype", "fn_ret_thunk_extern", "hot",
    "hybrid_patchable", "immarg", "inaccessiblemem_or_argmemonly", "inaccessiblememonly", "inalloca",
    "initializes", "inlinehint", "inreg", "jumptable", "local_unnamed_addr", "memory", "minsize",
    "mustprogress", "naked", "nest", "noalias", "nobuiltin", "nocallback", "nocapture", "nocf_check",
    "nodivergencesource", "noduplicate", "noext", "nofpclass", "nofree", "noimplicitfloat", "noinline",
    "nomerge", "nonlazybind", "nonnull", "noprofile", "norecurse", "noredzone", "noreturn",
    "nosanitize_bounds", "nosanitize_coverage", "nosync", "noundef", "nounwind", "null_pointer_is_valid",
    "optdebug", "optforfuzzing", "optnone", "optsize", "preallocated", "presplitcoroutine", "range",
    "readnone", "readonly", "returned", "returns_twice", "safestack", "sanitize_address",
    "sanitize_hwaddress", "sanitize_memory", "sanitize_memtag", "sanitize_numerical_stability",
    "sanitize_realtime", "sanitize_thread", "shadowcallstack", "signext", "skipprofile", "speculatable",
    "speculative_load_hardening", "sret", "ssp", "sspreq", "sspstrong", "strictfp", "swiftasync",
    "swifterror", "swiftself", "unnamed_addr", "uwtable", "vscale_range", "willreturn", "writable",
    "writeonly", "zeroext",
)  # fmt: skip
_IN_PARENTHESES = r"\((?:[^()]|\((?:[^()]|\([^()]*\))*\))*\)"
# not inside a name: %hot, @cold, %struct.range and the label `range:` are names
_ATTRIBUTE = re.compile(
    rf"(?<![%@$!\w.\-])(?:{'|'.join(_ATTRIBUTE_WORDS)})(?![\w.\-:])(?:{_IN_PARENTHESES})?|(?<![\w%@])#\d+"
)
# from the first of several blanks on, so that a line of blanks costs what it is long
_METADATA = re.compile(r"(?:,|(?<!\s))\s*(?:![A-Za-z_][\w.]* ![0-9]+|!\d+)")
_ALIGN = re.compile(r"(?<![%@$\w.\-])align(?: \d+| ?\(\d+\))(?= )")
# lines on which `align` belongs to a parameter or a result; on a load or a store it is the instruction's own
_SIGNATURE = re.compile(r"(?:define |(?:%\S+ = )?(?:(?:tail|musttail|notail) )?(?:call|invoke|callbr) )")
_QUOTED_OR_COMMENT = re.compile(r'("[^"]*")|;.*$')
_METADATA_CALLS = ("@llvm.dbg.", "@llvm.experimental.noalias.scope.decl(")
_COMPARED_LINES = 400
_DEFINED = re.compile(r'define [^@]*@(?:"([^"]+)"|([-\w$.]+))\(')
_ACCESS = re.compile(r"(?:^|= )\s*(?:load|store|atomicrmw|cmpxchg) ")
_ACCESS_ALIGN = re.compile(r", align \d+(?=$|,| )")
_TAIL_MARKER = re.compile(r"(?<![%@\w.])(?:tail|notail) call ")
_SPACE = re.compile(r"\s+")


class IrChange(StrEnum):
    """What one pass execution did to the module's text."""

    INSTRUCTIONS = "instructions"
    ATTRIBUTES = "attributes or metadata only"
    NOTHING = "nothing"


def instruction_lines(text: str) -> list[str]:
    """The module's instructions, globals and signatures with attributes, metadata and comments taken out."""
    lines = []
    for raw in text.splitlines():
        line = _QUOTED_OR_COMMENT.sub(lambda found: found.group(1) or "", raw).strip()
        if not line or line.startswith(("!", "#dbg_", "attributes #", "source_filename", "target ")):
            continue
        if line.startswith("declare "):
            continue  # a declaration without a call is no instruction; with one, the call line shows it
        if any(name in line for name in _METADATA_CALLS):
            continue  # tells about variables and scopes, computes nothing
        # what stands in quotes is a name or data
        parts = line.split('"')
        signature = _SIGNATURE.match(line) is not None
        parts[::2] = [_without_attributes(part, signature=signature) for part in parts[::2]]
        lines.append('"'.join(parts).strip())
    return lines


def _without_attributes(text: str, *, signature: bool) -> str:
    text = _ATTRIBUTE.sub(" ", _METADATA.sub("", text))
    # what a pass deduced of a call or an access: believed by later steps, computing nothing
    if signature:
        text = _TAIL_MARKER.sub("call ", _ALIGN.sub(" ", text))
    elif _ACCESS.search(text):
        text = _ACCESS_ALIGN.sub("", text)
    return _SPACE.sub(" ", text).replace(" ,", ",").replace(" )", ")").replace("( ", "(")


def compare_ir(before: str, after: str) -> IrChange:
    """Classify what lies between two texts of one module."""
    if instruction_lines(before) != instruction_lines(after):
        return IrChange.INSTRUCTIONS
    strip = re.compile(r"^(?:; ModuleID|source_filename).*$", re.MULTILINE)
    return IrChange.NOTHING if strip.sub("", before) == strip.sub("", after) else IrChange.ATTRIBUTES


def changed_functions(before: str, after: str) -> list[str]:
    """Symbols of the functions whose instructions differ; also those that came or went."""
    one, other = _functions(before), _functions(after)
    return [name for name in dict.fromkeys((*one, *other)) if one.get(name) != other.get(name)]


def _functions(text: str) -> dict[str, list[str]]:
    """The instructions of each defined function, under its symbol."""
    found: dict[str, list[str]] = {}
    name: str | None = None
    body: list[str] = []
    for raw in text.splitlines():
        if name is None:
            start = _DEFINED.match(raw)
            if start:
                name, body = (start.group(1) or start.group(2)), [raw]
        else:
            body.append(raw)
            if raw == "}":
                found[name] = instruction_lines("\n".join(body))
                name = None
    return found


def changed_lines(before: str, after: str, *, most: int = 12) -> list[str]:
    """The first changed instruction lines, as `-old` and `+new`."""
    a, b = instruction_lines(before), instruction_lines(after)
    start = 0
    while start < min(len(a), len(b)) and a[start] == b[start]:
        start += 1
    end = 0
    while end < min(len(a), len(b)) - start and a[-1 - end] == b[-1 - end]:
        end += 1
    a = a[start : len(a) - end][:_COMPARED_LINES]  # the first differences are enough for people
    b = b[start : len(b) - end][:_COMPARED_LINES]
    matcher = difflib.SequenceMatcher(None, a, b, autojunk=False)
    shown: list[str] = []
    for tag, i1, i2, j1, j2 in matcher.get_opcodes():
        if tag == "equal":
            continue
        shown += [f"- {line}" for line in a[i1:i2]] + [f"+ {line}" for line in b[j1:j2]]
        if len(shown) >= most:
            return [*shown[:most], "..."]
    return shown
