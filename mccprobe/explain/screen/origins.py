"""Where MSan's uninitialised value comes from, and whether code that MSan does not see may have written there.

MSan does not see what a library writes that was built without it: `std::cin >> x` leaves x uninitialised for it. So a
report counts where its origin is an object of the program's own (on its stack, or from its own call of an allocation
function) whose address never leaves the program. That is read in the IR of the front end: the address is followed
through locals, arithmetic and calls of functions that the program defines.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from mccprobe.explain.screen.runs import ORIGIN
from mccprobe.targets.llvm.locate import demangle

_NAME = r'%(?:[\w.$-]+|"[^"\n]+")'
_NAMES = re.compile(_NAME)
_RESULT = re.compile(rf"^[ \t]+({_NAME}) = (.*)$")
_DEFINE = re.compile(r'^define [^\n]*?@([\w.$-]+|"[^"\n]+")\((.*)$', re.MULTILINE)
_LOCATION = re.compile(r"^(!\d+) = (?:distinct )?!DILocation\(line: (\d+), column: (\d+)", re.MULTILINE)
_CALLEE = re.compile(r'@([\w.$-]+|"[^"\n]+")\(')
_STORE = re.compile(r"^[ \t]+store (?:atomic |volatile )*")
_LOAD = re.compile(r"^load (?:atomic |volatile )*")
_DERIVES = re.compile(r"^(?:bitcast|getelementptr|addrspacecast|phi|select|freeze) ?")
_HARMLESS = re.compile(r"^(?:icmp|load|atomicrmw|cmpxchg|va_arg) ")
_STACK = re.compile(r"created by an allocation of '([^']+)' in the stack frame")
_FRAME = re.compile(r"^\s*#\d+ 0x[0-9a-f]+ in (.+?) (\S+?):(\d+)(?::(\d+))?\s*$")
_ANY_FRAME = re.compile(r"^\s*#\d+ 0x[0-9a-f]+ ")
_ALLOCATES = re.compile(r"@(?:malloc|calloc|realloc|aligned_alloc|memalign|_Zn[aw][\w]*)\(")
# of the C library: MSan intercepts them and knows what they write, or they write nothing through a pointer
_KNOWN = frozenset(
    "abort access atof atoi atol atoll bcmp bsearch calloc exit fclose fdopen feof ferror fflush fgets fopen fprintf "
    "fputc fputs fread free fscanf fwrite getcwd getenv gettimeofday localtime_r longjmp memchr memcmp memcpy memmove "
    "memset perror pipe printf pthread_create pthread_join putchar puts qsort read readlink realloc recv scanf send "
    "snprintf sprintf sscanf stat strcasecmp strcat strchr strcmp strcpy strcspn strdup strlen strncasecmp strncat "
    "strncmp strncpy strrchr strspn strstr strtod strtol strtoll strtoul strtoull time vfprintf vprintf vsnprintf "
    "vsprintf write _exit __assert_fail _ZdlPv _ZdaPv _ZdlPvm _ZdaPvm".split()
)
_MOST_STEPS = 4000  # uses looked at for one object; more counts as "leaves the program"


@dataclass(frozen=True)
class Origin:
    """Where the value was created. variable: of the stack, "" for an allocation; the rest is the program's frame."""

    variable: str
    function: str
    file: str
    line: int
    column: int


def origin_of(report: str) -> Origin | None:
    """The origin that one report names, None where it names none in the program's own code."""
    lines = report.splitlines()
    start = next((index for index, line in enumerate(lines) if ORIGIN in line), None)
    if start is None:
        return None
    frames = []
    for line in lines[start + 1 :]:
        if not _ANY_FRAME.match(line):
            break
        frames.append(line)
    stack = _STACK.search(lines[start])
    # of an allocation the first frame is the allocation function itself, the second its caller
    wanted = 0 if stack else 1
    found = _FRAME.match(frames[wanted]) if len(frames) > wanted else None
    if found is None:
        return None
    name, file, line, column = found.groups()
    return Origin(stack[1] if stack else "", name, file, int(line), int(column or 0))


def place_of(report: str) -> str:
    """The program's own line at the top of one report, "at FILE:LINE, of 'x'"; "" where other code is at the top."""
    frame = next((line for line in report.splitlines() if _ANY_FRAME.match(line)), "")
    top = _FRAME.match(frame)
    if top is None:
        return ""
    origin = origin_of(report)
    return f"at {top[2]}:{top[3]}" + (f", of '{origin.variable}'" if origin and origin.variable else "")


@dataclass
class _Function:
    """One definition. parameters: their names in order, "" for one without a name."""

    parameters: list[str]
    lines: list[str]
    uses: dict[str, list[str]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for line in self.lines:
            for name in dict.fromkeys(_NAMES.findall(line.partition(", !dbg")[0])):
                self.uses.setdefault(name, []).append(line)


class Program:
    """The IR of a program's sources, with names and line numbers (-fno-discard-value-names -g1)."""

    def __init__(self, modules: Iterable[str]) -> None:
        self.functions: dict[str, _Function] = {}
        self._places: dict[int, dict[str, tuple[int, int]]] = {}
        for module in modules:
            places = {match[1]: (int(match[2]), int(match[3])) for match in _LOCATION.finditer(module)}
            for name, function in _definitions(module):
                self.functions[name] = function
                self._places[id(function)] = places

    def is_its_own(self, origin: Origin) -> bool:
        """True if the object lies in the program and its address stays there."""
        roots = list(self._roots(origin))
        return bool(roots) and all(self._stays(name, value) for name, value in roots)

    def _roots(self, origin: Origin) -> Iterator[tuple[str, str]]:
        """(function, value) of what may be the object."""
        for name, function in self.functions.items():
            if origin.variable:
                variable = f"%{origin.variable}"
                made = any(line.startswith(f"  {variable} = alloca") for line in function.uses.get(variable, ()))
                if made and _same_function(name, origin.function):
                    yield name, variable
            elif _same_function(name, origin.function):
                yield from ((name, value) for value in self._allocated(function, origin))

    def _allocated(self, function: _Function, origin: Origin) -> Iterator[str]:
        places = self._places[id(function)]
        for line in function.lines:
            made = _RESULT.match(line)
            where = places.get(line.rpartition("!dbg ")[2].split(",")[0].strip()) if "!dbg " in line else None
            if made and _ALLOCATES.search(line) and where == (origin.line, origin.column):
                yield made[1]

    def _stays(self, function: str, value: str) -> bool:
        """True if no use of the pointer gives it to code outside of the program."""
        seen: set[tuple[str, str]] = set()
        waiting = [(function, value)]
        steps = 0
        while waiting:
            at = waiting.pop()
            if at in seen:
                continue
            seen.add(at)
            name, pointer = at
            for line in self.functions[name].uses.get(pointer, ()):
                steps += 1
                further = self._used(name, pointer, line) if steps < _MOST_STEPS else None
                if further is None:
                    return False
                waiting += further
        return True

    def _used(self, name: str, pointer: str, line: str) -> list[tuple[str, str]] | None:
        """The pointers that this use makes of it, None if it leaves the program."""
        made = _RESULT.match(line)
        if made and made[1] == pointer:
            return []
        what = made[2] if made else line.strip()
        stored = _stored(line)
        if stored:
            value, to = stored
            return self._held(name, to) if pointer in _NAMES.findall(value) else []
        if made and _DERIVES.match(what):
            return [(name, made[1])]
        if made and _HARMLESS.match(what):
            return []
        return self._passed(pointer, what) if _is_call(what) else None

    def _held(self, name: str, holder: str) -> list[tuple[str, str]] | None:
        """The pointer lies in a local: what is loaded from there is the pointer again. The local may not leave."""
        found = []
        for line in self.functions[name].uses.get(holder, ()):
            made = _RESULT.match(line)
            what = made[2] if made else line.strip()
            loaded = _LOAD.match(what)
            stored = _stored(line)
            if made and made[1] == holder and what.startswith("alloca "):
                continue
            if made and what.startswith("bitcast ") and self._marks_only(name, made[1]):
                continue  # of its lifetime
            if made and loaded:
                found.append((name, made[1]))
            elif not ((stored and holder not in _NAMES.findall(stored[0])) or "@llvm." in what):
                return None
        own = any(line.startswith(f"  {holder} = alloca") for line in self.functions[name].uses.get(holder, ()))
        return found if own else None

    def _marks_only(self, name: str, pointer: str) -> bool:
        uses = self.functions[name].uses.get(pointer, ())
        return all("@llvm." in line or line.startswith(f"  {pointer} = ") for line in uses)

    def _passed(self, pointer: str, call: str) -> list[tuple[str, str]] | None:
        callee = _CALLEE.search(call)
        if callee is None:
            return None
        name = callee[1]
        if name.startswith("llvm.") or name in _KNOWN:
            return []
        function = self.functions.get(name)
        if function is None:
            return None
        found = []
        for index, argument in enumerate(_arguments(call[callee.end() :])):
            if pointer in _NAMES.findall(argument):
                if index >= len(function.parameters) or "byval" in argument:
                    return None
                found.append((name, function.parameters[index]))
        return found


def _is_call(what: str) -> bool:
    return bool(re.match(r"(?:(?:tail|musttail|notail) )?(?:call|invoke) ", what))


def _same_function(symbol: str, name: str) -> bool:
    """True if MSan's name of a function, demangled or not, may be this symbol's."""
    return symbol == name or demangle(symbol).split("(")[0] == name.split("(")[0]


def _definitions(module: str) -> Iterator[tuple[str, _Function]]:
    for found in _DEFINE.finditer(module):
        end = module.find("\n}", found.end())
        parameters = [names[-1] if (names := _NAMES.findall(part)) else "" for part in _arguments(found[2])]
        yield found[1].strip('"'), _Function(parameters, module[found.end() : end].splitlines())


def _stored(line: str) -> tuple[str, str] | None:
    """Value and address of a store."""
    start = _STORE.match(line)
    parts = _arguments(line[start.end() :] + ")") if start else ()
    return (parts[0], parts[1].split()[-1]) if len(parts) > 1 else None


def _arguments(text: str) -> Sequence[str]:
    """The arguments of a call, split at the commas of their own level. text: what follows the opening bracket."""
    parts, depth, start = [], 0, 0
    for index, character in enumerate(text):
        if character in "([{<":
            depth += 1
        elif character in ")]}>" and depth:
            depth -= 1
        elif character == ")":
            parts.append(text[start:index])
            break
        elif character == "," and not depth:
            parts.append(text[start:index])
            start = index + 1
    return parts if parts != [""] else []
