"""The house rules as tests: which module may import which, what may stand where (ARCHITECTURE.md).

Everything is discovered from the tree; a new package that is not in the import order fails.
"""

from __future__ import annotations

import ast
import functools
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "mccprobe"

# Data flows one way: a module imports from rooms above it in this list, and from its own room. `report.text`
# and `report.pages` are rooms of their own: they show what the rooms above them found.
ROOMS = (
    "base",
    "objects",
    "targets",
    "oracle",
    "build",
    "inspection",
    "search",
    "report",
    "bisection",
    "journal",
    "explain",
    "tuning",
    "doctor",
    "report.text",
    "report.pages",
    "cli",
    "__main__",
)
VOCABULARY = frozenset({"mccprobe", "mccprobe.oracle.verdict"})  # for everybody: the version, the verdicts
# Inside mccprobe/ but not part of the library: they ship as files of the stand-in SDK.
DATA_FOLDERS = tuple(f"targets/{name}" for name in (
    "sim/include", "sim/runtime", "sim/plugin", "sim/driver", "amdgcn/include", "nvidia/include",
    "mcc/data", "clang/data", "amdgcn/data", "llvm/data",
))  # fmt: skip

MAX_MODULE_LINES = 500  # beyond it a module has more than one subject
# extra -> the modules that import it
OPTIONAL_IMPORTS = {
    "frames": ("objects/model/frames.py", "journal/frames.py"),
    "fast": ("objects/isa/bulk.py", "report/json_stream.py"),
    "cluster": ("build/dask_executor.py",),
    "search": ("tuning/flag_search/tpe.py",),
    "plots": ("tuning/flag_search/plot.py",),
    "pages": ("report/pages/canvas.py", "report/pages/render_html.py"),
}
DISTRIBUTIONS = {"elftools": "pyelftools", "yaml": "pyyaml"}  # import name -> package name, where they differ


ALLOWED = {room: frozenset(ROOMS[:place]) for place, room in enumerate(ROOMS)}


def _repository_files() -> list[Path]:
    """Tracked files and new ones that are not ignored; without git, what is not hidden or generated."""
    git = shutil.which("git")
    if git and (ROOT / ".git").exists():
        command = [git, "-C", str(ROOT), "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
        listed = subprocess.run(command, capture_output=True, check=True).stdout.decode().split("\0")
        paths = [ROOT / name for name in listed if name]
    else:
        generated = {"__pycache__", "mccprobe-out", "mccprobe.egg-info"}
        hidden_but_ours = {".ci", ".github", ".gitignore"}
        paths = [
            path
            for path in ROOT.rglob("*")
            if path.relative_to(ROOT).parts[0] not in ("build", "dist")
            and not any(
                part in generated or (part.startswith(".") and part not in hidden_but_ours)
                for part in path.relative_to(ROOT).parts
            )
        ]
    return sorted(path for path in paths if path.is_file())


FILES = _repository_files()


def _relative(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def _is_data(path: Path) -> bool:
    return any(path.is_relative_to(PACKAGE / folder) for folder in DATA_FOLDERS)


MODULES = [path for path in FILES if path.suffix == ".py" and path.is_relative_to(PACKAGE) and not _is_data(path)]


def _module_name(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def _part(module: str) -> str:
    """The room: `mccprobe.search.ordered` -> `search`; `mccprobe` -> `` (the version)."""
    inner = module.split(".")[1:]
    two = ".".join(inner[:2])
    return two if two in ROOMS else inner[0] if inner else ""


NAMES = frozenset(_module_name(path) for path in MODULES)


def _imports(path: Path, tree: ast.AST) -> Iterator[tuple[int, str]]:
    """(line, absolute module) of every import, at any depth: a lazy import is one as well."""
    package = _module_name(path) if path.name == "__init__.py" else _module_name(path).rpartition(".")[0]
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                above = package.split(".")[: len(package.split(".")) - node.level + 1]
                base = ".".join([*above, base] if base else above)
            for alias in node.names:
                inner = f"{base}.{alias.name}"
                yield node.lineno, inner if inner in NAMES else base


@functools.cache
def _parse(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"), filename=str(path))


@pytest.fixture(params=MODULES, ids=_relative)
def module(request: pytest.FixtureRequest) -> Path:
    path: Path = request.param
    return path


# --- imports ----------------------------------------------------------------------------------


def _import_faults(path: Path, tree: ast.AST) -> list[str]:
    own = _part(_module_name(path))
    allowed = ALLOWED.get(own, frozenset()) | {own}
    return [
        f"{_relative(path)}:{line}: {own or 'mccprobe'} may not import {name}"
        for line, name in _imports(path, tree)
        if name.split(".")[0] == "mccprobe" and name not in VOCABULARY and _part(name) not in allowed
    ]


def test_imports_point_left(module: Path) -> None:
    assert not _import_faults(module, _parse(module))


@pytest.mark.parametrize(
    ("where", "text", "fault"),
    [
        ("search/x.py", "from mccprobe.report.record import Finding", True),
        ("search/x.py", "from mccprobe.oracle.verdict import Verdict", False),
        ("objects/binary/x.py", "from mccprobe.oracle.verdict import Verdict", False),
        ("objects/binary/x.py", "from mccprobe.oracle import guard", True),
        ("objects/isa/x.py", "def lazy():\n    from mccprobe.targets.llvm import locate", True),
        ("report/x.py", "from mccprobe.objects.model.resources import Occupancy", False),
        ("report/x.py", "from mccprobe.tuning.bench.measure import Pair", True),
        ("report/pages/x.py", "from mccprobe.tuning.bench.measure import Pair", False),
        ("explain/x.py", "from mccprobe.objects.binary.elf import read_elf", False),
        ("targets/x.py", "from ..cli import main", True),
        ("targets/x.py", "from . import command", False),
        ("base/errors.py", "from mccprobe.targets.flags import catalogue", True),
        ("cli/x.py", "import mccprobe.bisection", False),
        ("cli/x.py", "from mccprobe import __version__", False),
    ],
)
def test_the_import_rule_itself(where: str, text: str, fault: bool) -> None:
    assert bool(_import_faults(PACKAGE / where, ast.parse(text))) is fault


def _arrows() -> dict[str, list[str]]:
    """Room -> the rooms that it imports from, in the order of ROOMS, as the imports are."""
    found: dict[str, set[str]] = {room: set() for room in ROOMS}
    for path in MODULES:
        own = _part(_module_name(path))
        for _, name in _imports(path, _parse(path)):
            if own and name.split(".")[0] == "mccprobe" and name not in VOCABULARY:
                found[own].add(_part(name))
    return {room: [one for one in ROOMS if one in names and one != room] for room, names in found.items()}


def test_the_arrows_of_the_page_are_the_imports() -> None:
    page = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    table = page.partition("| room | imports from |")[2].partition("\n\n")[0]
    rows = dict(re.findall(r"^\| `([\w.]+)` \| (.*) \|$", table, re.MULTILINE))
    drawn = {room: re.findall(r"`([\w.]+)`", names) for room, names in rows.items()}
    real = {room: names for room, names in _arrows().items() if room != "__main__"}
    assert drawn == real, "\n".join(
        f"| `{room}` | {', '.join(f'`{one}`' for one in names) or 'nothing'} |" for room, names in real.items()
    )


def test_every_package_has_its_place_in_the_order() -> None:
    known = {*ROOMS, ""}
    unknown = sorted({_relative(path) for path in MODULES if _part(_module_name(path)) not in known})
    assert not unknown, "give it a place in tests/layout/test_layout.py and in ARCHITECTURE.md"


def test_every_folder_of_modules_is_a_package() -> None:
    folders = {path.parent for path in MODULES}
    missing = sorted(_relative(folder) for folder in folders if folder / "__init__.py" not in MODULES)
    assert not missing, "add __init__.py, or name a folder of shipped files in DATA_FOLDERS"


def test_third_party_imports_are_declared() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    needed = {re.split(r"[^\w.-]", text)[0].lower() for text in project["dependencies"]}
    optional = {
        (re.split(r"[^\w.-]", text)[0].lower(), PACKAGE / place)
        for extra, places in OPTIONAL_IMPORTS.items()
        for place in places
        for text in project["optional-dependencies"][extra]
    }
    undeclared = []
    for path in MODULES:
        for line, name in _imports(path, _parse(path)):
            top = name.split(".")[0]
            if top != "mccprobe" and top not in sys.stdlib_module_names:
                package = DISTRIBUTIONS.get(top, top)
                if package not in needed and (package, path) not in optional:
                    undeclared.append(f"{_relative(path)}:{line}: {top}")
    assert not undeclared


# --- what may stand where -----------------------------------------------------------------------


def test_only_process_starts_processes(module: Path) -> None:
    if module == PACKAGE / "base/process.py":
        return
    starters = {"subprocess", "multiprocessing", "pty", "concurrent.futures.process"}
    tree = _parse(module)
    assert not [(line, name) for line, name in _imports(module, tree) if name in starters]
    calls = re.compile(r"^os\.(system|popen|fork|forkpty|posix_spawnp?|spawn\w+|exec\w+)$")
    used = [node for node in ast.walk(tree) if isinstance(node, ast.Attribute) and calls.match(ast.unparse(node))]
    assert not [(node.lineno, ast.unparse(node)) for node in used]


def test_no_shell() -> None:
    found = []
    for path in [file for file in FILES if file.suffix == ".py"]:
        for node in ast.walk(_parse(path)):
            if not isinstance(node, ast.Call):
                continue
            shell = any(
                word.arg == "shell" and not (isinstance(word.value, ast.Constant) and word.value.value is False)
                for word in node.keywords
            )
            if shell or ast.unparse(node.func) in {"os.system", "os.popen", "subprocess.getoutput"}:
                found.append(f"{_relative(path)}:{node.lineno}")
    assert not found, "argv lists are the rule"


def test_report_starts_nothing(module: Path) -> None:
    """It turns records into text and pages; what reads, compiles or disassembles is elsewhere."""
    if module.is_relative_to(PACKAGE / "report"):
        starting = ("mccprobe.base.process", "mccprobe.build", "mccprobe.objects.isa.disassemble")
        assert not [(line, name) for line, name in _imports(module, _parse(module)) if name.startswith(starting)]


def test_pandas_is_imported_late_and_in_one_place(module: Path) -> None:
    tree = _parse(module)
    lines = [line for line, name in _imports(module, tree) if name.split(".")[0] == "pandas"]
    if module not in (PACKAGE / "objects/model/frames.py", PACKAGE / "journal/frames.py"):
        assert not lines
        return
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
    for line in lines:
        assert any(node.lineno <= line <= (node.end_lineno or 0) for node in functions), f"line {line}"


def test_only_console_prints(module: Path) -> None:
    if module == PACKAGE / "base/console.py":
        return
    calls = [node for node in ast.walk(_parse(module)) if isinstance(node, ast.Call)]
    printing = {"print", "click.echo", "click.secho", "rich.print", "sys.stdout.write"}
    assert not [node.lineno for node in calls if ast.unparse(node.func) in printing]


def test_modules_are_short() -> None:
    long = {
        _relative(path): count
        for path in FILES
        if path.suffix == ".py" and path.is_relative_to(PACKAGE)
        if (count := len(path.read_text(encoding="utf-8").splitlines())) > MAX_MODULE_LINES
    }
    assert not long, "split by meaning"


def test_bisect_stays_the_standard_library() -> None:
    assert not list((ROOT / "bisect").rglob("*.py")), "recipes only; Python there could shadow the module"
    assert not (PACKAGE / "bisect.py").exists(), "a script run from that folder would import it"
    assert not (PACKAGE / "bisect").exists()


# --- all files ----------------------------------------------------------------------------------

# Written so that this file does not match itself.
UNFINISHED = re.compile(r"\b(?:" + "|".join(("TO" + "DO", "FIX" + "ME", "X" * 3)) + r")\b")
EXAMPLE_PEOPLE = ("user", "alice", "you")  # home directories in examples and in tests of redaction
MACHINE_PATH = re.compile(
    r"(?<![\w.$}){*>-])/(?:(?:" + "|".join(("root", "work", "workspace", "Users")) + r")/"
    r"|home/(?!(?:" + "|".join(EXAMPLE_PEOPLE) + r")\b)\w)"
)
REGISTRY = re.compile("|".join(("pypi" + r"\.org/simple", "files" + r"\.pythonhosted", "deb" + r"\.debian\.org")))


@pytest.mark.parametrize(
    ("pattern", "advice"),
    [
        (UNFINISHED, "finish it, or file an issue"),
        (MACHINE_PATH, "a path of one machine"),
        (REGISTRY, "a package index is the user's setting"),
    ],
    ids=["unfinished", "machine-path", "registry"],
)
def test_no_file_says(pattern: re.Pattern[str], advice: str) -> None:
    found = []
    for path in FILES:
        try:
            text = path.read_text(encoding="utf-8")
        except (UnicodeDecodeError, FileNotFoundError):
            continue
        found += [
            f"{_relative(path)}:{number}: {match[0]}"
            for number, line in enumerate(text.splitlines(), 1)
            if (match := pattern.search(line))
        ]
    assert not found, advice


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("cd /" + "root/x", True),
        ("see /" + "home/bob/x", True),
        ('"/' + 'work/main"', True),
        ("/home/user/gemm.mu becomes ~/gemm.mu", False),
        ("trial/" + "work/a.o and $D/" + "root/x and lib/../" + "root/", False),
    ],
)
def test_the_machine_path_rule_itself(text: str, fault: bool) -> None:
    assert bool(MACHINE_PATH.search(text)) is fault


def test_architecture_names_every_folder() -> None:
    text = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    top = {path.relative_to(ROOT).parts[0] for path in FILES if len(path.relative_to(ROOT).parts) > 1}
    parts = {_part(_module_name(path)) for path in MODULES if path.parent != PACKAGE} - {""}
    assert not sorted(name for name in top if f"`{name}/`" not in text)
    assert not sorted(name for name in parts if f"`{name}/`" not in text)


def test_licence_and_changelog_are_there() -> None:
    assert "Apache License" in (ROOT / "LICENSE").read_text(encoding="utf-8")
    assert "## [Unreleased]" in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
