"""A vendor is known in its folder of `mccprobe/targets/` alone: no other module decides by a vendor's name or kind.

Help texts and messages may name vendors; decisions take what `mccprobe.targets.registry` and the toolchain tell.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from mccprobe.targets import registry

PACKAGE = Path(__file__).resolve().parents[2] / "mccprobe"
FOLDERS = {path.parent.name for path in (PACKAGE / "targets").glob("*/target.py")}
NAMES = {target.name for target in registry.SHIPPED} | FOLDERS | {"nvcc"}
KINDS = ("mtgpu", "amdgpu", "ptxas")  # of code and of object formats
CLASSES = ("Toolchain", "Driver")  # how the vendors' classes end
# instruction sets are still told apart by name in here: patterns, rules and listings of each
ISA_NAMES = (
    "objects/", "inspection/disasm.py", "inspection/instructions.py", "inspection/resources.py",
    "report/disasm_text.py",
)  # fmt: skip
ISAS = {"nvidia"}  # a folder's name, and an instruction set's


def _texts(node: ast.expr) -> Iterator[str]:
    """Strings that an expression is or holds."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        yield node.value
    elif isinstance(node, ast.Tuple | ast.List | ast.Set):
        for element in node.elts:
            yield from _texts(element)
    elif isinstance(node, ast.Dict):
        for key in node.keys:
            if key is not None:
                yield from _texts(key)


def _decided(node: ast.AST) -> Iterator[str]:
    """Strings by which this node decides."""
    if isinstance(node, ast.Compare):
        for operand in (node.left, *node.comparators):
            yield from _texts(operand)
    elif isinstance(node, ast.MatchValue):
        yield from _texts(node.value)
    elif isinstance(node, ast.Call):
        name = node.func.attr if isinstance(node.func, ast.Attribute) else ""
        if name in ("startswith", "endswith", "get", "pop"):
            for argument in node.args[:1]:
                yield from _texts(argument)
        if isinstance(node.func, ast.Name) and node.func.id in ("frozenset", "set", "tuple"):
            for argument in node.args:
                yield from _list_of_names(argument)
    elif isinstance(node, ast.Tuple | ast.List | ast.Set | ast.Dict):
        yield from _list_of_names(node)


def _list_of_names(node: ast.expr) -> Iterator[str]:
    """A list of several vendors is a second registry."""
    found = [text for text in _texts(node) if text in NAMES]
    if len(found) > 1:
        yield from found


def vendor_names(tree: ast.AST, *, isas: bool = False) -> list[str]:
    """Where a module decides by a vendor: line and what it compares. isas: it may decide by instruction sets."""
    found = []
    known = NAMES - ISAS if isas else NAMES
    for node in ast.walk(tree):
        for text in _decided(node):
            if text in known or (not isas and text.partition("-")[0] in KINDS):
                found.append(f"{getattr(node, 'lineno', 0)}: {text!r}")
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "isinstance":
            asked = ast.unparse(node.args[1])
            if asked.endswith(CLASSES):
                found.append(f"{node.lineno}: isinstance of {asked}")
    return found


def test_no_module_decides_by_a_vendors_name() -> None:
    found = []
    for path in sorted(PACKAGE.rglob("*.py")):
        name = path.relative_to(PACKAGE).as_posix()
        if not name.startswith("targets/"):
            tree = ast.parse(path.read_text("utf-8"))
            found += [f"{name}:{one}" for one in vendor_names(tree, isas=name.startswith(ISA_NAMES))]
    assert not found, "put what differs into the target (mccprobe/targets/protocol.py) and ask it"


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ('if toolchain.name == "mcc": pass', True),
        ('if toolchain.name in ("mcc", "cuda"): pass', True),
        ('NAMES = ("auto", "mcc", "sim")', True),
        ('NAMES = frozenset({"mcc", "sim"})', True),
        ('costs = {"mcc": 1, "sim": 2}', True),
        ('match name:\n    case "clang": pass', True),
        ('if isa.startswith("mtgpu"): pass', True),
        ("if isinstance(toolchain, SimToolchain): pass", True),
        ('raise ToolchainError("no mcc here", hint="--toolchain sim")', False),
        ("if registry.target(name).device: pass", False),
        ('COMPILERS = ("cc", "gcc", "clang")', False),
    ],
)
def test_the_rule_itself(text: str, fault: bool) -> None:
    assert bool(vendor_names(ast.parse(text))) is fault
