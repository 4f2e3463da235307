"""What a clang-style driver takes from its environment without being asked: told, kept, and carried by a report.

Sources: clang/tools/driver/driver.cpp (CCC_OVERRIDE_OPTIONS, which edits the command line),
clang/lib/Driver/ToolChains/Clang.cpp (the folders of headers), Driver.cpp and Gnu.cpp (COMPILER_PATH, LIBRARY_PATH),
clang/lib/Frontend (SOURCE_DATE_EPOCH: __DATE__), and binutils' ld (LD_RUN_PATH).
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from mccprobe.targets.protocol import Toolchain

OVERRIDE = "CCC_OVERRIDE_OPTIONS"
HEADERS = ("CPATH", "C_INCLUDE_PATH", "CPLUS_INCLUDE_PATH", "OBJC_INCLUDE_PATH", "OBJCPLUS_INCLUDE_PATH")
_FOLDERS = (*HEADERS, "COMPILER_PATH", "LIBRARY_PATH", "LD_RUN_PATH")
VARIABLES = (OVERRIDE, *_FOLDERS, "SOURCE_DATE_EPOCH", "CLANG_NO_DEFAULT_CONFIG")
# each compile would write or append to the user's file that they name, and its object is the same without
SIDE_OUTPUTS = ("DEPENDENCIES_OUTPUT", "SUNPRO_DEPENDENCIES", "CC_PRINT_OPTIONS", "CC_PRINT_HEADERS",
                "CC_PRINT_PROC_STAT", "CC_LOG_DIAGNOSTICS")  # fmt: skip
_MARKS = "+^"  # before an argument that an edit of CCC_OVERRIDE_OPTIONS adds


def inherited(environment: Mapping[str, str] | None = None) -> dict[str, str]:
    """Those of the variables that hold something, by name. environment: of this process where it is None."""
    given = os.environ if environment is None else environment
    return {name: given[name] for name in VARIABLES if given.get(name)}


def environment_of(toolchain: Toolchain) -> dict[str, str]:
    """What compiles of this toolchain inherit."""
    return inherited(toolchain.environment(Path("/")))


def sentences(found: Mapping[str, str], configuration: str = "") -> tuple[str, ...]:
    """What is to be told of them, one line each. configuration: a file that the compiler reads by itself."""
    spelled = {name: shlex.quote(value).replace("\n", "\\n") for name, value in found.items()}
    told = [f"every compile takes {name}={value} from the environment" for name, value in spelled.items()]
    if configuration:
        told.append(f"the compiler reads {configuration} by itself: its options are in every compile")
    return tuple(told)


def prefix(found: Mapping[str, str]) -> tuple[str, ...]:
    """What stands before a command that is to be repeated elsewhere."""
    return ("env", *(f"{name}={value}" for name, value in found.items())) if found else ()


def header_folders(found: Mapping[str, str], here: Path) -> list[Path]:
    """Folders in which every compile looks for headers; an empty part is the working directory."""
    return [here / part for name in HEADERS if name in found for part in found[name].split(os.pathsep)]


def added_arguments(found: Mapping[str, str]) -> list[str]:
    """Arguments that CCC_OVERRIDE_OPTIONS adds."""
    return [word[1:] for word in found.get(OVERRIDE, "").split() if word[0] in _MARKS]


def mapped(
    found: Mapping[str, str], place: Callable[[str], str], arguments: Callable[[Sequence[str]], Sequence[str]]
) -> dict[str, str]:
    """The same with every folder replaced by `place` of it, and arguments that are added by `arguments` of them."""
    changed = dict(found)
    for name in _FOLDERS:
        if name in found:
            changed[name] = os.pathsep.join(place(part) for part in found[name].split(os.pathsep))
    if OVERRIDE in found:
        words = [
            word[0] + "".join(arguments([word[1:]])) if word[0] in _MARKS else word for word in found[OVERRIDE].split()
        ]
        changed[OVERRIDE] = " ".join(words)
    return changed
