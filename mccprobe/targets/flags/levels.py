"""Optimisation levels of a clang driver: the one definition of what is a level and what it means.

`-Od0` to `-Od9` are mcc's levels of the device code generator. They are given together with a host level, so the
two kinds never replace each other.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

HOST_LEVEL = r"-O(?:[0-9]|s|z|g|fast)?"
DEVICE_LEVEL = r"-Od[0-9]"
_HOST = re.compile(HOST_LEVEL)
_DEVICE = re.compile(DEVICE_LEVEL)
# clang/lib/Frontend/CompilerInvocation.cpp, getOptimizationLevel: -O is -O1 for the driver and -O2 for cc1, -Og is
# -O1, -Os and -Oz are -O2, everything above 3 is -O3
_CODE_GENERATOR = {"0": "0", "1": "1", "": "2", "2": "2", "s": "2", "z": "2", "g": "1"}


def is_level(argument: str) -> bool:
    """True for -O, -O0 to -O9, -Os, -Oz, -Og and -Ofast; not for mcc's -Od3."""
    return _HOST.fullmatch(argument) is not None


def is_device_level(argument: str) -> bool:
    """True for mcc's -Od0 to -Od9."""
    return _DEVICE.fullmatch(argument) is not None


def is_any_level(argument: str) -> bool:
    """True for a level of either kind."""
    return is_level(argument) or is_device_level(argument)


def levels_in(arguments: Iterable[str]) -> list[str]:
    """The host levels among these arguments, in their order; the last one counts."""
    return [argument for argument in arguments if is_level(argument)]


def replaces(flag: str, argument: str) -> bool:
    """True when both are levels of one kind, so that the flag takes the argument's place."""
    return (is_level(flag) and is_level(argument)) or (is_device_level(flag) and is_device_level(argument))


def code_generator_level(cc1: Iterable[str]) -> str:
    """ "0" to "3": the level at which a cc1 with these arguments generates code."""
    levels = levels_in(cc1)
    return _CODE_GENERATOR.get(levels[-1].removeprefix("-O"), "3") if levels else "0"
