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
# (llvm/docs/LangRef.rst, "Parameter Attributes" and "Function Attributes").
_ATTRIBUTE_WORDS = (
    "alignstack allocalign allocptr alwaysinline argmemonly builtin byref byval cold convergent dereferenceable "
    "dereferenceable_or_null dead_on_unwind disable_sanitizer_instrumentation dso_local elementtype hot immarg "
    "inaccessiblemem_or_argmemonly inaccessiblememonly inalloca inlinehint inreg initializes jumptable local_unnamed_addr "
    "minsize mustprogress naked nest noalias nobuiltin nocallback nocapture nocf_check noduplicate nofree noimplicitfloat "
    "noinline nomerge nonlazybind nonnull noprofile norecurse noredzone noreturn nosync noundef nounwind null_pointer_is_valid "
    "optforfuzzing optnone optsize range readnone readonly returned returns_twice safestack sanitize_address sanitize_memory "
    "sanitize_thread shadowcallstack signext speculatable speculative_load_hardening sret ssp sspreq sspstrong strictfp "
    "swiftasync swifterror swiftself unnamed_addr uwtable vscale_range willreturn writable writeonly zeroext"
).split()
_ATTRIBUTE = re.compile(
    r"\b(?:" + "|".join(_ATTRIBUTE_WORDS) + r")\b(?:\([^()]*\))?|\bmemory\([^()]*\)|\bcaptures\([^()]*\)|#\d+"
)
_METADATA = re.compile(r",?\s*![A-Za-z_.]+(?:\.[A-Za-z_.]+)* ![0-9]+|,?\s*!dbg ![0-9]+|,?\s*!\d+")
_PARAMETER_ALIGN = re.compile(r"(?<=[(,]) ?align \d+(?= )")
_COMPARED_LINES = 400
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
        line = raw.split(" ; preds =")[0].rstrip()
        stripped = line.strip()
        if not stripped or stripped.startswith((";", "!", "attributes #", "source_filename", "target ")):
            continue
        if stripped.startswith("declare "):
            continue  # a declaration without a call is no instruction; with one, the call line shows it
        line = _METADATA.sub("", line)
        line = _ATTRIBUTE.sub(" ", line)
        if stripped.startswith(("define ", "%", "tail ", "call ", "musttail ", "notail ", "invoke ")):
            line = re.sub(r"\balign \d+ (?=[%@])", "", line)
        lines.append(_SPACE.sub(" ", line).replace(" ,", ",").replace(" )", ")").replace("( ", "(").strip())
    return lines


def compare_ir(before: str, after: str) -> IrChange:
    """Classify what lies between two texts of one module."""
    if instruction_lines(before) != instruction_lines(after):
        return IrChange.INSTRUCTIONS
    strip = re.compile(r"^(?:; ModuleID|source_filename).*$", re.MULTILINE)
    return IrChange.NOTHING if strip.sub("", before) == strip.sub("", after) else IrChange.ATTRIBUTES


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
