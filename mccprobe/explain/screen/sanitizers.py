"""Host part and kernel under UBSan, ASan, MSan and TSan, each proved on a planted fault of its own first.

With `sim` the kernel is x86-64 code too, so UBSan and ASan reach it: their runtime must be a shared object (device
code finds names in other objects only), and of the emulator's dlopen the flag RTLD_DEEPBIND is taken away, which
sanitizers refuse. Its shared memory is not poisoned then: that would write over the red zones between variables.
MSan does not work there (what the emulator's own runtime writes would count as uninitialised), and TSan sees the
host part alone (lanes are no threads).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from mccprobe.base.process import RunSpec, run
from mccprobe.explain.deadline import Deadline
from mccprobe.explain.screen.build import Built, Extra, PlainBuilder
from mccprobe.explain.screen.ir_asan import with_address_checks
from mccprobe.explain.screen.origins import Program, origin_of, place_of
from mccprobe.explain.screen.runs import MOST_REPORTS, ScreenRuns
from mccprobe.explain.screen.trap import TRAP_OPTIONS, trap_extra
from mccprobe.oracle.verdict import Verdict
from mccprobe.report.why_record import ScreenCheck, ScreenOutcome
from mccprobe.targets import registry
from mccprobe.targets.llvm.command import is_cxx
from mccprobe.targets.llvm.locate import QUERY_TIMEOUT_S, installed_clangs

FURTHER_TIMEOUT_S = 30.0  # of a run that does not end at a report; what it has written until then is read
# names and lines as MSan's own report has them: before any pass, also of MSan
_NAMED_IR = ("-g1", "-fno-discard-value-names", "-Xclang", "-disable-llvm-passes")
CONTROL_TIMEOUT_S = 30.0  # of a program of a few instructions
SLOWDOWN = 20.0  # TSan at -O0 beside an optimised build (clang's manual: 5 to 15 times at equal optimisation)


@dataclass(frozen=True)
class Sanitizer:
    """One of compiler-rt's. options: NAME=VALUES of its environment variable. control: C with a fault that it shows.

    newer: flags that not every compiler has.
    """

    name: str
    shows: str
    flags: tuple[str, ...]
    options: str
    control: str
    runtime: str = ""  # shared object of the runtime, "" where clang 14 has none
    newer: tuple[str, ...] = ()


UBSAN = Sanitizer(
    "UBSan", "undefined behaviour", ("-fsanitize=undefined",), "UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1",
    "int main(int count, char **names) { volatile int most = 2147483647; most = most + count; return !names; }\n",
    "libclang_rt.ubsan_standalone-x86_64.so",
)  # fmt: skip
ASAN = Sanitizer(
    "ASan", "accesses out of bounds or after the end of an object", ("-fsanitize=address",),
    "ASAN_OPTIONS=detect_leaks=0:detect_stack_use_after_return=1:strict_init_order=1",
    "int main(int count, char **names) { volatile char all[4]; all[count + 3] = 1; return !names; }\n",
    "libclang_rt.asan-x86_64.so",
)  # fmt: skip
MSAN = Sanitizer(
    "MSan", "decisions on uninitialised memory", ("-fsanitize=memory", "-fsanitize-memory-track-origins"),
    "MSAN_OPTIONS=halt_on_error=1",
    "int main(void) { volatile int unset[1]; return unset[0] ? 1 : 0; }\n",
    # what is passed or returned without a value, printed for one; clang 16 looks at it by itself, clang 13 never
    newer=("-fsanitize-memory-param-retval",),
)  # fmt: skip
TSAN = Sanitizer(
    "TSan", "data races", ("-fsanitize=thread",), "TSAN_OPTIONS=halt_on_error=1",
    "#include <pthread.h>\nstatic int shared;\nstatic void *add(void *x) { shared++; return x; }\n"
    "int main(void) { pthread_t one; pthread_create(&one, 0, add, 0); shared++; return pthread_join(one, 0); }\n",
)  # fmt: skip
SANITIZERS = (UBSAN, ASAN, MSAN, TSAN)
# both in one build and one run, for the cheap part; UBSan's own report does not end the program, ASan's does
BOTH = Sanitizer(
    "ASan and UBSan", "undefined behaviour and no access out of bounds or after the end of an object",
    ("-fsanitize=address,undefined",), f"{ASAN.options}:halt_on_error=1",
    "int main(int count, char **names) { volatile char all[4]; all[count + 3] = 1; return !names; }\n",
    ASAN.runtime,
)  # fmt: skip

_SHIM = """#include <dlfcn.h>
void *__real_dlopen(const char *name, int flags);
void *__wrap_dlopen(const char *name, int flags) { return __real_dlopen(name, flags & ~RTLD_DEEPBIND); }
"""


class SanitizerChecks:
    """Builds and runs under sanitizers. One row a sanitizer, and one more for a kernel that it does not reach."""

    def __init__(
        self,
        builder: PlainBuilder,
        runs: ScreenRuns,
        deadline: Deadline,
        module: Callable[[], str | None] = lambda: None,
    ) -> None:
        self.builder = builder
        self.module = module  # the program as IR text, where it is IR
        self.runs = runs
        self.deadline = deadline
        recorded = builder.workspace.unit.recorded
        self.offload = recorded.offload
        self.emulated = registry.target(recorded.toolchain.name).emulated

    def rows(self) -> list[tuple[str, str, Callable[[], ScreenCheck]]]:
        """(name, part, check) of every row."""
        return self._rows(SANITIZERS)

    def cheap_rows(self) -> list[tuple[str, str, Callable[[], ScreenCheck]]]:
        """The same of as few builds as show most."""
        return self._rows((ASAN if self.builder.from_ir else BOTH, MSAN))

    def _rows(self, sanitizers: Sequence[Sanitizer]) -> list[tuple[str, str, Callable[[], ScreenCheck]]]:
        found: list[tuple[str, str, Callable[[], ScreenCheck]]] = []
        for sanitizer in sanitizers:
            why_not = self._why_not(sanitizer)
            if why_not:
                part = "host" if self.offload else "program"
                found.append((sanitizer.name, part, _not_run(sanitizer, part, why_not)))
            elif not self.offload or self._reaches_kernel(sanitizer):
                found.append((sanitizer.name, "program", self._check(sanitizer, "program")))
                continue
            else:
                found.append((sanitizer.name, "host", self._check(sanitizer, "host")))
            if self.offload:
                found.append((sanitizer.name, "kernel", _not_run(sanitizer, "kernel", self._why_not_kernel(sanitizer))))
        return found

    def extra(self, sanitizer: Sanitizer) -> Extra:
        """What its build takes. Raises nothing: a build that fails says why."""
        flags = ("-g1", "-fno-omit-frame-pointer", *self._flags(sanitizer))
        if not self.offload:
            return Extra(sanitizer.name, flags, sanitizer.flags)
        shim: tuple[str, ...] = ()
        link = sanitizer.flags
        if self.emulated and sanitizer is not UBSAN:
            shim, link = (str(self._shim()),), (*link, "-Wl,--wrap=dlopen")
        if not self._reaches_kernel(sanitizer):
            host_only = tuple(part for flag in flags for part in ("-Xarch_host", flag))
            return Extra(sanitizer.name, host_only, link, shim)
        folder = self._runtime_folder(sanitizer)
        return Extra(sanitizer.name, flags, (*link, "-shared-libsan", f"-Wl,-rpath,{folder}"), shim)

    def _reaches_kernel(self, sanitizer: Sanitizer) -> bool:
        return self.emulated and bool(sanitizer.runtime)

    def _why_not(self, sanitizer: Sanitizer) -> str:
        if self.builder.from_ir and sanitizer is not ASAN:
            return "the source is LLVM IR or assembly, which no front end instruments"
        if self.emulated and sanitizer is MSAN:
            return "the emulator's runtime is not instrumented: what it writes would count as uninitialised"
        return ""

    def _why_not_kernel(self, sanitizer: Sanitizer) -> str:
        if not self.emulated:
            return "no sanitizer runs on the device"
        if sanitizer is MSAN:
            return "the emulator's runtime is not instrumented; poisoned memory and stack stand in for it"
        return "lanes of the emulator are no threads"

    def _runtime_folder(self, sanitizer: Sanitizer) -> str:
        argv = [*self.builder.driver, f"-print-file-name={sanitizer.runtime}"]
        return str(Path(run(RunSpec(argv, timeout_s=QUERY_TIMEOUT_S)).stdout_text.strip()).parent)

    def _shim(self) -> Path:
        return self.builder.run.write_text("unit/screen-dlopen.c", _SHIM)

    def _check(self, sanitizer: Sanitizer, part: str) -> Callable[[], ScreenCheck]:
        def run_it() -> ScreenCheck:
            if not self._lacks_runtime(sanitizer):
                return self._own(sanitizer, part)
            check = None
            for other in self._others():
                check = other._own(sanitizer, part)
                if check.outcome is not ScreenOutcome.NOT_RUN:
                    whose = Path(other.builder.driver[0]).name
                    text = f"{check.text}\n(built with {whose}: this compiler has no runtime of it)"
                    return replace(check, text=text)
            if sanitizer in (UBSAN, BOTH):
                return self._trapping(part)
            return check or self._own(sanitizer, part)

        return run_it

    def asan_of(self, module: str) -> ScreenCheck:
        """ASan on this IR in place of the source."""
        return self._own(ASAN, "program", with_address_checks(module))

    def _own(self, sanitizer: Sanitizer, part: str, text: str | None = None) -> ScreenCheck:
        extra = self.extra(sanitizer)
        if self.builder.from_ir and text is None:
            module = self.module()
            if module is None:
                return _not_run(sanitizer, part, "the source cannot be read as LLVM IR")()
            text = with_address_checks(module)
        if text is None:
            self.builder.start(extra)
        broken = self._control_fails(sanitizer)
        if broken:
            return _not_run(sanitizer, part, broken)()
        return self._judge(sanitizer, part, self.builder.build(extra, text))

    def _lacks_runtime(self, sanitizer: Sanitizer) -> bool:
        """True where a stock clang was installed without the sanitizer's runtime."""
        return registry.target(self.builder.workspace.unit.recorded.toolchain.name).stock and (
            self._control(sanitizer, self._flags(sanitizer)).digest is None
        )

    def _others(self) -> Iterator[SanitizerChecks]:
        """The same checks built by the other installed clangs, the newest first: they speak of the same source."""
        own = self.builder.workspace.request.toolchain.identify().resolved
        for path in reversed(installed_clangs().values()):
            if path.resolve() != own:
                driver = (str(path), *self.builder.driver[1:])
                builder = PlainBuilder(self.builder.workspace, driver)
                yield SanitizerChecks(builder, self.runs, self.deadline, self.module)

    def _trapping(self, part: str) -> ScreenCheck:
        """UBSan without a runtime."""
        extra = trap_extra(self.builder.run)
        name = UBSAN.name
        self.builder.start(extra)
        control = self.builder.compile_alone(self._control_source(UBSAN), replace(extra, name=f"{name} trap"))
        if control.digest is None:
            return ScreenCheck(name, part, ScreenOutcome.NOT_RUN, f"this compiler cannot build it: {control.reason}")
        proof = self.runs.reported(
            control.digest, f"control {extra.name}", TRAP_OPTIONS, CONTROL_TIMEOUT_S, alone=True, env={}
        )
        if proof.verdict is not Verdict.BAD:
            why = f"it does not report a planted fault here: {proof.reason}"
            return ScreenCheck(name, part, ScreenOutcome.NOT_RUN, why)
        built = self.builder.build(extra)
        if built.digest is None:
            why = f"the program does not build with it: {built.reason}"
            return ScreenCheck(name, part, ScreenOutcome.NOT_RUN, why, built.command)
        outcome = self.runs.reported(built.digest, extra.name, TRAP_OPTIONS, self._timeout_s(), env={})
        if outcome.verdict is Verdict.UNRESOLVED:
            return ScreenCheck(name, part, ScreenOutcome.NOT_RUN, outcome.reason, built.command)
        bad = outcome.verdict is Verdict.BAD
        text = outcome.reason if bad else f"no {UBSAN.shows} (traps: this compiler has no runtime of UBSan)"
        return ScreenCheck(name, part, ScreenOutcome.FINDING if bad else ScreenOutcome.CLEAN, text, built.command)

    def _timeout_s(self) -> float:
        return min(SLOWDOWN * self.builder.workspace.oracle.timeout_s, max(1.0, self.deadline.left_s))

    def _judge(self, sanitizer: Sanitizer, part: str, built: Built) -> ScreenCheck:
        if built.digest is None:
            return _not_run(sanitizer, part, f"the program does not build with it: {built.reason}", built.command)()
        options, env = sanitizer.options, {}
        if self.emulated:
            options = options.replace("detect_stack_use_after_return=1", "detect_stack_use_after_return=0")
            env = {"MCCSIM_POISON": "0"} if sanitizer in (ASAN, BOTH) else {}
        outcome = self.runs.reported(built.digest, sanitizer.name, options, self._timeout_s(), env=env)
        if outcome.verdict is Verdict.UNRESOLVED:
            return _not_run(sanitizer, part, outcome.reason, built.command)()
        if outcome.verdict is Verdict.GOOD:
            simulated = "; kernel on the emulator, SIMULATED" if part == "program" and self.emulated else ""
            text = f"no {sanitizer.shows}{simulated}"
            return ScreenCheck(sanitizer.name, part, ScreenOutcome.CLEAN, text, built.command)
        if sanitizer is MSAN and self._foreign_code():
            return self._of_own_object(part, outcome.reason, built.command)
        return ScreenCheck(sanitizer.name, part, ScreenOutcome.FINDING, outcome.reason, built.command)

    def _of_own_object(self, part: str, report: str, command: tuple[str, ...]) -> ScreenCheck:
        """A finding where one of the reports is of an object that only the program writes, else a hint.

        The first report may be of what the C++ library wrote, so the run is made again without an end at the first.
        """
        program = Program(self.builder.texts(Extra("names", (*MSAN.flags, *_NAMED_IR))))
        reports = [report]
        origin = origin_of(report)
        if origin is None or not program.is_its_own(origin):
            reports += self._further_reports()
        for one in reports:
            origin = origin_of(one)
            if origin is not None and program.is_its_own(origin):
                whose = f"the local {origin.variable!r}" if origin.variable else "memory that it allocates"
                text = f"the program reads {whose} without a value, and only its own code could have written it\n{one}"
                return ScreenCheck(MSAN.name, part, ScreenOutcome.FINDING, text, command)
        places = "".join(f"\nalso {place}" for one in reports[1:] if (place := place_of(one)))
        text = f"a library that is not instrumented may have written the value\n{report}{places}"
        return ScreenCheck(MSAN.name, part, ScreenOutcome.HINT, text, command)

    def _further_reports(self) -> list[str]:
        plain = self.extra(MSAN)
        going_on = replace(plain, name="MSan, all", compile_args=(*plain.compile_args, "-fsanitize-recover=memory"))
        built = self.builder.build(going_on)
        if built.digest is None:
            return []
        options = MSAN.options.replace("halt_on_error=1", "halt_on_error=0")
        timeout_s = min(self._timeout_s(), FURTHER_TIMEOUT_S)
        outcome = self.runs.reported(built.digest, going_on.name, options, timeout_s, env={}, most=MOST_REPORTS)
        return outcome.reason.split("\n\n") if outcome.verdict is Verdict.BAD else []

    def _foreign_code(self) -> bool:
        """True where MSan cannot know what was written: C++'s library and inputs that were compiled before."""
        libraries = [argument for argument in self.builder.link_args if argument.startswith("-l") and argument != "-lm"]
        cxx = any(is_cxx(name) for name in self.builder.sources)
        return cxx or bool(self.builder.foreign) or bool(libraries)

    def _flags(self, sanitizer: Sanitizer) -> tuple[str, ...]:
        """Those that this compiler has."""
        every = (*sanitizer.flags, *sanitizer.newer)
        return every if not sanitizer.newer or self._control(sanitizer, every).digest else sanitizer.flags

    def _control(self, sanitizer: Sanitizer, flags: tuple[str, ...]) -> Built:
        """The program with the planted fault."""
        source = self._control_source(sanitizer)
        link = ("-pthread",) if sanitizer is TSAN else ()
        return self.builder.compile_alone(source, Extra(sanitizer.name, ("-x", "c", *flags), link))

    def _control_source(self, sanitizer: Sanitizer) -> Path:
        name = f"unit/screen-{sanitizer.name}.c"
        return self.builder.run.write_text(name, sanitizer.control)

    def _control_fails(self, sanitizer: Sanitizer) -> str:
        """Why this sanitizer shows nothing here, "" if it reports its planted fault."""
        built = self._control(sanitizer, self._flags(sanitizer))
        if built.digest is None:
            return f"this compiler cannot build with it: {built.reason}"
        outcome = self.runs.reported(
            built.digest, f"control {sanitizer.name}", sanitizer.options, CONTROL_TIMEOUT_S, alone=True, env={}
        )
        if outcome.verdict is Verdict.BAD:
            return ""
        return f"it does not report a planted fault here: {outcome.reason}"


def _not_run(sanitizer: Sanitizer, part: str, why: str, command: tuple[str, ...] = ()) -> Callable[[], ScreenCheck]:
    return lambda: ScreenCheck(sanitizer.name, part, ScreenOutcome.NOT_RUN, why, command)
