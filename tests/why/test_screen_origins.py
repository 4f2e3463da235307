"""MSan in a program with the C++ library: what only the program could have written counts, the library's does not."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from mccprobe.base.process import RunSpec, run
from mccprobe.explain.screen.origins import Origin, Program, origin_of, place_of
from mccprobe.explain.screen.weigh import weighed
from mccprobe.report.why_record import ScreenCheck, ScreenOutcome

pytestmark = pytest.mark.toolchain("clang-14")

# (declares the object and reads it, name of the local or "" for memory, True if only the program could write it)
OBJECTS = {
    "a local": ("int x; if (n > 5) x = 3; return x == 5;", "x", True),
    "an array": ("int x[4]; x[n & 1] = 1; return x[3] == 5;", "x", True),
    "a member": ("P x(n); return x.sum() == 5;", "x", True),
    "given to own functions": ("int x[4]; half(x); return total(x, 4) == 5;", "x", True),
    "given to the C library": ('char x[8]; memcpy(x, "abc", 3); return strlen(x) == 3;', "x", True),
    "through a pointer": ("int x, *p = &x; if (n > 5) *p = 1; return *p == 5;", "x", True),
    "new": ("int *p = new int[4]; p[0] = 1; n = p[3] == 7; delete[] p; return n;", "", True),
    "malloc": ("int *p = (int *)malloc(16); half(p); n = p[3] == 7; free(p); return n;", "", True),
    "read by a stream": ("int x; in() >> x; return x == 5;", "x", False),
    "written elsewhere": ("int x; elsewhere(&x); return x == 5;", "x", False),
    "kept by a global": ("int x; kept = &x; elsewhere(0); return x == 5;", "x", False),
    "called through a pointer": ("int x; hook(&x); return x == 5;", "x", False),
    "given on by an own function": ("int x; passed(&x); return x == 5;", "x", False),
    "as an integer": ("int x; number((unsigned long)&x); return x == 5;", "x", False),
    "a string": ('std::string x = "abc"; x += "def"; return x.size() == 7;', "x", False),
    "a vector's memory": ("std::vector<int> x; x.reserve(4); elsewhere(x.data()); return x.data()[2];", "", False),
}
HEAD = """
#include <cstdlib>
#include <cstring>
#include <istream>
#include <string>
#include <vector>
std::istream &in();
void elsewhere(int *);
void number(unsigned long);
extern int *kept;
extern void (*hook)(int *);
static void passed(int *p) { elsewhere(p); }
struct P { int a, b; P(int x) { a = x; } int sum() const { return a + b; } };
static int total(const int *v, int n) { int s = 0; for (int i = 0; i < n; i++) s += v[i]; return s; }
static void half(int *v) { v[0] = 1; v[1] = 2; }
"""


@pytest.fixture(scope="module", params=[14, 16])
def program(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Program:
    """All of them in one module, one function each."""
    folder = tmp_path_factory.mktemp("origins")
    bodies = "\n".join(f"int f{number}(int n) {{ {text} }}" for number, (text, _, _) in enumerate(OBJECTS.values()))
    (folder / "objects.cc").write_text(HEAD + bodies)
    argv = [
        f"clang++-{request.param}",
        "-w",
        "-O0",
        "-g1",
        "-fno-discard-value-names",
        "-fsanitize=memory",
        "-Xclang",
        "-disable-llvm-passes",
        "-S",
        "-emit-llvm",
        "-o",
        "-",
        str(folder / "objects.cc"),
    ]
    result = run(RunSpec(argv, capture_bytes=1 << 26))
    if not result.ok:
        pytest.skip(f"{argv[0]} does not work here: {result.stderr_text[:200]}")
    return Program([result.stdout_text])


@pytest.mark.parametrize("what", OBJECTS)
def test_an_object_is_the_programs_own_if_its_address_stays_there(program: Program, what: str) -> None:
    text, variable, own = OBJECTS[what]
    number = list(OBJECTS).index(what)
    line = HEAD.count("\n") + 1 + number
    offsets = [text.find(word) for word in ("new", "malloc")]
    column = len(f"int f{number}(int n) {{ ") + max(offsets) + 1
    assert program.is_its_own(Origin(variable, f"f{number}(int)", "objects.cc", line, column)) is own


STACK = """==1==WARNING: MemorySanitizer: use-of-uninitialized-value
    #0 0x5555 in pick(int) /a/b2.cc:4:81
    #1 0x5556 in main /a/b2.cc:9:11
  Uninitialized value was created by an allocation of 'got' in the stack frame of function '_Z4picki'
    #0 0x5557 in pick(int) /a/b2.cc:3
"""
HEAP = """==1==WARNING: MemorySanitizer: use-of-uninitialized-value
    #0 0x5555 in main /a/b2.cc:8:45
  Uninitialized value was created by a heap allocation
    #0 0x5556 in operator new[](unsigned long) (program+0xaa7b9) (BuildId: 01)
    #1 0x5557 in main /a/b2.cc:8:22
"""
LIBRARY = """==1==WARNING: MemorySanitizer: use-of-uninitialized-value
    #0 0x5555 in __interceptor_memcmp (program+0x5bf3e) (BuildId: da)
    #1 0x7fff in std::ctype<char>::_M_widen_init() const (/lib/libstdc++.so.6+0xcf7c9) (BuildId: 28)
  Uninitialized value was created by a heap allocation
    #0 0x5556 in malloc (program+0xaa7b9) (BuildId: 01)
    #1 0x7fff in operator new(unsigned long) (/lib/libstdc++.so.6+0xcf7c9) (BuildId: 28)
"""


def test_reports_are_read() -> None:
    assert origin_of(STACK) == Origin("got", "pick(int)", "/a/b2.cc", 3, 0)
    assert origin_of(HEAP) == Origin("", "main", "/a/b2.cc", 8, 22)
    assert origin_of(LIBRARY) is None and origin_of(STACK.partition("  Uninit")[0]) is None
    assert place_of(STACK) == "at /a/b2.cc:4, of 'got'"
    assert place_of(HEAP) == "at /a/b2.cc:8" and place_of(LIBRARY) == ""


WARNED = "b2.cc:{}:65: warning: variable '{}' is used uninitialized whenever 'if' condition is false [-W{}]"


@pytest.mark.parametrize(
    ("report", "line", "variable", "kind", "finding"),
    [
        (STACK, 7, "got", "sometimes-uninitialized", True),  # the variable
        (STACK.replace("'got'", "'got12'"), 7, "got", "conditional-uninitialized", True),
        (STACK, 7, "got", "return-stack-address", True),
        (STACK, 4, "other", "sometimes-uninitialized", False),  # another variable of the line
        (HEAP, 8, "p", "sometimes-uninitialized", True),  # the line
        (HEAP, 9, "p", "sometimes-uninitialized", False),
        (LIBRARY, 8, "p", "sometimes-uninitialized", False),
        (STACK, 4, "got", "format", False),  # a warning of another kind
    ],
)
def test_two_hints_on_one_place_are_a_finding(report: str, line: int, variable: str, kind: str, finding: bool) -> None:
    hints = [
        ScreenCheck("MSan", "program", ScreenOutcome.HINT, f"a library may have written it\n{report}"),
        ScreenCheck("warnings", "program", ScreenOutcome.HINT, WARNED.format(line, variable, kind)),
    ]
    weighted = weighed(hints, None)  # type: ignore[arg-type]
    assert weighted[0].outcome is (ScreenOutcome.FINDING if finding else ScreenOutcome.HINT)
    assert weighted[1] == hints[1]


STREAMS = """
#include <iostream>
#include <sstream>
#include <string>
__attribute__((noinline)) static int pick(int k) { int got VALUE; if (k > 5) got = 1; return got; }
int main(int argc, char **argv) {
  int x;
  std::istringstream in("5");
  in >> x;
  std::ostringstream o;
  o << "long enough to be on the heap, " << argc << x;
  std::string s = o.str();
  if (s == "q") return 3;
  int y = pick(argc);
  std::cout << (y == 3 ? "a" : "b") << s << "\\n";
}
"""


def test_streams_of_a_right_program_are_not_blamed_and_a_local_without_a_value_is(
    tmp_path: Path, screened_by_msan: Callable[[str], ScreenCheck]
) -> None:
    """The library's reports come first in both; only the second program has one of its own."""
    right = screened_by_msan(STREAMS.replace("VALUE", "= 0"))
    assert right.outcome is ScreenOutcome.HINT, right.text
    wrong = screened_by_msan(STREAMS.replace("VALUE", ""))
    assert wrong.outcome is ScreenOutcome.FINDING and "the local 'got' without a value" in wrong.text
