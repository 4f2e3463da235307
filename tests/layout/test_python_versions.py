"""Nothing of the standard library is used that a supported Python lacks: 3.11.0 is the oldest, Debian 12 has 3.11.2.

mypy checks the package against 3.11 and vermin (`make lint`) all modules' functions, but both count minor versions, and
vermin does not know the type of an object. So methods, keywords and what came with a later 3.11 are listed here: what
`inspect` finds in 3.11.7, 3.12.1 and 3.13.0 and not in 3.11.2, as far as the name alone identifies it.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PLACES = ("mccprobe", "tests", "tools", "benchmarks", "docs", "kernels", "wrappers")

# attributes and imported names
NAMES = {
    "3.11.4": "data_filter tar_filter fully_trusted_filter extraction_filter FilterError AbsolutePathError"
    " OutsideDestinationError SpecialFileError AbsoluteLinkError LinkOutsideDestinationError",
    "3.11.9": "SetReparseDeferralEnabled GetReparseDeferralEnabled",
    "3.11.10": "HeaderWriteError verify_generated_headers supports_strict_parsing",
    "3.11.13": "ALLOW_MISSING LinkFallbackError",
    "3.12": "addDuration batched binomialvariate eager_task_factory create_eager_task_factory getHandlerByName"
    " getHandlerNames get_original_bases getasyncgenlocals getasyncgenstate isdevdrive is_junction isjunction"
    " markcoroutinefunction override setprofile_all_threads settrace_all_threads splitroot sumprod TypeAliasType"
    " unshare setns with_segments is_client_error is_server_error is_success getunicodeinternedsize",
    "3.13": "full_match from_uri process_cpu_count kde kde_random PythonFinalizationError QueueShutDown PatternError"
    " TypeIs ReadOnly NoDefault get_protocol_members is_protocol guess_file_type isreserved z85encode z85decode"
    " timerfd_create EnumDict PythonFinalizationError get_verified_chain",
    "3.14": "InterpreterPoolExecutor templatelib annotationlib copy_into move_into reload_environ",
}
# callable(keyword)
KEYWORDS = {
    "3.11.4": "extract(filter) extractall(filter) unpack_archive(filter)",
    "3.11.10": "getaddresses(strict) parseaddr(strict)",
    "3.12": "NamedTemporaryFile(delete_on_close) TemporaryDirectory(delete) exists(follow_symlinks)"
    " glob(case_sensitive) rglob(case_sensitive) match(case_sensitive) relative_to(walk_up) rmtree(onexc)"
    " nextafter(steps) make_dataclass(module) dataclass_transform(frozen_default) correlation(method) Task(eager_start)"
    " shutdown_default_executor(timeout) TestProgram(durations)",
    "3.13": "glob(recurse_symlinks) rglob(recurse_symlinks) read_text(newline) owner(follow_symlinks)"
    " group(follow_symlinks) is_file(follow_symlinks) is_dir(follow_symlinks) add_argument(deprecated)"
    " add_parser(deprecated) iterdump(filter) exec(globals) shutdown(immediate)"
    " TypeVar(default) ParamSpec(default) translate(include_hidden)",
    "3.14": "map(buffersize) Thread(context) zip(strict_length)",
}
# modules that 3.12 (the first line) and 3.13 (PEP 594) no longer have
GONE = set(
    "asynchat asyncore distutils imp smtpd"
    " aifc audioop cgi cgitb chunk crypt imghdr lib2to3 mailcap msilib nis nntplib ossaudiodev pipes sndhdr spwd sunau"
    " telnetlib uu xdrlib".split()
)
WORD = re.compile(r"\w+")
SINCE = {word: version for table in (NAMES, KEYWORDS) for version, words in table.items() for word in words.split()}
NEEDED = [frozenset(WORD.findall(use)) for use in SINCE]


def _uses(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Line and word, as in the tables, of what may be a use of a newer Python."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute):
            yield node.lineno, node.attr
        elif isinstance(node, ast.Import | ast.ImportFrom):
            module = (node.module or "") if isinstance(node, ast.ImportFrom) and not node.level else ""
            names = [alias.name for alias in node.names]
            for name in [module, *names] if isinstance(node, ast.ImportFrom) else names:
                top = name.partition(".")[0]
                yield node.lineno, f"import {top}" if isinstance(node, ast.Import) or name == module else top
        elif isinstance(node, ast.Call):
            called = ast.unparse(node.func).rpartition(".")[2] if node.keywords else ""
            yield from ((node.lineno, f"{called}({keyword.arg})") for keyword in node.keywords)


def complaints(text: str, place: str) -> list[str]:
    """What `text` uses that a Python from 3.11.0 to 3.13 lacks."""
    found: list[str] = []
    words = set(WORD.findall(text))
    if words.isdisjoint(GONE) and not any(words.issuperset(needed) for needed in NEEDED):
        return found  # most files; parsing takes longer
    for line, word in _uses(ast.parse(text)):
        if word in SINCE:
            found.append(f"{place}:{line}: {word} came with Python {SINCE[word]}")
        if word.removeprefix("import ") in GONE and word.startswith("import "):
            found.append(f"{place}:{line}: {word}: the module was removed by Python 3.13")
    return found


def _python_files() -> Iterator[tuple[str, str]]:
    for place in PLACES:
        for path in sorted((ROOT / place).rglob("*")):
            if "__pycache__" in path.parts or not path.is_file() or path.suffix not in {".py", ""}:
                continue
            data = path.read_bytes()
            if path.suffix == ".py" or (data.startswith(b"#!") and b"python" in data.split(b"\n", 1)[0]):
                yield path.relative_to(ROOT).as_posix(), data.decode()


def test_nothing_newer_than_the_oldest_supported_python() -> None:
    files = dict(_python_files())
    assert any("." not in Path(name).name for name in files), "the fakes, which have no suffix, were not found"
    assert len(files) > 500
    assert not [line for name, text in files.items() for line in complaints(text, name)]


@pytest.mark.parametrize(
    ("text", "version"),
    [
        ("def f(tar, member): tar.extract(member, '.', filter='data')", "3.11.4"),
        ("import tarfile\ntarfile.open('x').extractall(filter=tarfile.data_filter)", "3.11.4"),
        ("from itertools import batched", "3.12"),
        ("from pathlib import Path\nPath().full_match('*')", "3.13"),
        ("def f(path): return path.exists(follow_symlinks=False)", "3.12"),
        ("import shutil\nshutil.rmtree('x', onexc=print)", "3.12"),
        ("import distutils.util", "removed"),
        ("from cgi import escape", "removed"),
    ],
)
def test_the_check_finds(text: str, version: str) -> None:
    assert any(version in line for line in complaints(text, "x"))


def test_the_check_leaves_the_rest_alone() -> None:
    text = "import os, io\nfrom .pipes import x\nfrom re import match\nopen('f').read()\nsorted([], key=len)\nx.imp\n"
    assert not complaints(text, "x")
