"""A header-heavy translation unit: memory of mccprobe and its own share of the time.

The unit has over 100,000 pass executions at -O2 (`<regex>`, `<map>`); each compile prints 17 MB of log.
"""

from __future__ import annotations

import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from measure import machine, median, report

from mccprobe.build.job import OUTPUT, CompileJob, compile_once
from mccprobe.targets.clang.toolchain import clang_toolchain

SOURCE = """#include <map>
#include <regex>
#include <string>
#include <iostream>
int main() {
  std::map<std::string, int> seen;
  std::string text = "the pass, the function, the pass";
  std::regex word("[a-z]+");
  for (auto at = std::sregex_iterator(text.begin(), text.end(), word); at != std::sregex_iterator(); ++at)
    ++seen[at->str()];
  for (auto &entry : seen) std::cout << entry.first << ' ' << entry.second << '\\n';
}
"""


def main() -> int:
    print(f"large_unit: {machine()}")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "objects").mkdir()
        (folder / "trials").mkdir()
        source = folder / "unit.cpp"
        source.write_text(SOURCE)
        driver = clang_toolchain("clang-14", [str(source)]).driver
        argv = (*driver, "-O2", "-mllvm", "-opt-bisect-limit=-1", "-c", str(source), "-o", OUTPUT)
        job = CompileJob(
            argv=argv,
            env={"PATH": "/usr/bin:/bin", "TMPDIR": str(folder)},
            objects=folder / "objects",
            trials=folder / "trials",
            timeout_s=600,
        )

        def bare() -> float:
            # the compiler with its log thrown away: what it costs without anybody reading
            start = time.perf_counter()
            command = [argument.replace(OUTPUT, str(folder / "bare.o")) for argument in argv]
            subprocess.run(command, stderr=subprocess.DEVNULL, check=True, env=dict(job.env))
            return time.perf_counter() - start

        def own() -> float:
            before = resource.getrusage(resource.RUSAGE_SELF)
            outcome = compile_once(job)
            after = resource.getrusage(resource.RUSAGE_SELF)
            assert outcome.object and outcome.log.total > 100_000, outcome
            return (after.ru_utime - before.ru_utime) + (after.ru_stime - before.ru_stime)

        compiler = median(bare)
        mine = median(own)
        total = compile_once(job).log.total
        print(f"  compile {compiler:.2f} s, {total} executions, own work {mine * 1000:.0f} ms of CPU")
        good = report("own work / compiler time", mine / compiler, 0.10)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    good &= report("peak memory of mccprobe", peak, 200, " MiB")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
