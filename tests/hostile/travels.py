"""Readers of what comes by mail or lies about: bug reports, patches, wrappers, caches; and of foreign text shown."""

from __future__ import annotations

import contextlib
import hashlib
import json
from dataclasses import replace
from functools import cache
from pathlib import Path

from .outputs import shipped_gemm
from .reader import text_of

# ---- what travels ---------------------------------------------------------------------------------


@cache
def report_archives() -> list[bytes]:
    import io
    import tarfile

    def packed(*members: tuple[str, bytes], mode: str = "w:gz") -> bytes:
        data = io.BytesIO()
        with tarfile.open(fileobj=data, mode=mode, format=tarfile.PAX_FORMAT) as tar:
            for name, content in members:
                member = tarfile.TarInfo(name)
                member.size = len(content)
                tar.addfile(member, io.BytesIO(content))
        return data.getvalue()

    long = "r/" + "n" * 150 + "/é.c"
    return [
        packed(("r/bundle.json", bundle_document()), ("r/a.c", b"int x;\n")),
        packed((long, b"x" * 600)),
        packed(("r/bundle.json", b"{}"), mode="w"),
    ]


def bundle_document() -> bytes:
    import hashlib

    from mccprobe.bisection.passes.options import BisectOptions
    from mccprobe.explain.bundle.make import SCHEMA_VERSION

    return json.dumps(
        {
            "schema_version": SCHEMA_VERSION,
            "title": "t",
            "toolchain": "clang",
            "simulated": False,
            "compiler": {"version": "clang version 14"},
            "status": "found",
            "culprit": {"title": "P"},
            "bad": {"stdout": "x"},
            "expected": {"stdout": "y"},
            "options": BisectOptions(file="a.c").to_dict(),
            "files": {"a.c": hashlib.sha256(b"int x;\n").hexdigest()},
            "failure_rate": {"low": 0.2},
        }
    ).encode()


def read_archive(data: bytes, scratch: Path) -> object:
    """As it is, and as the content of a well-formed gzip: the checksum would refuse most damage."""
    import gzip
    import shutil
    import tempfile

    from mccprobe.base.errors import MccprobeError
    from mccprobe.explain.bundle.recheck import read_report

    path, place = scratch / "r.tar.gz", scratch / "unpacked"
    place.mkdir(exist_ok=True)
    try:
        for content in (data, gzip.compress(data, 1)):
            path.write_bytes(content)
            try:
                read_report(path, place)
            except MccprobeError:
                continue
    finally:
        shutil.rmtree(place, ignore_errors=True)
    return tempfile.gettempdir()


def tar_seeds() -> list[bytes]:
    import gzip

    return [report_archives()[0], *(gzip.decompress(one) for one in report_archives()[:2]), report_archives()[2]]


def read_bundle_json(data: bytes, scratch: Path) -> object:
    from mccprobe.explain.bundle.recheck import read_report

    folder = scratch / "r"
    folder.mkdir(exist_ok=True)
    (folder / "a.c").write_bytes(b"int x;\n")
    (folder / "bundle.json").write_bytes(data)
    return read_report(folder, scratch).options.to_dict()


# ---- patches, wrappers, caches, names -------------------------------------------------------------

PATCH = b"--- a/mma.h\n+++ b/mma.h\n@@ -1,3 +1,3 @@\n one\n-two\n+TWO\n three\n\\ No newline at end of file\n"


def read_patch(data: bytes, scratch: Path) -> object:
    from mccprobe.tuning.overlay.change import apply_once, difference, parse_patch

    text = "one\ntwo\nthree"
    changed = apply_once(text, parse_patch(text_of(data), "p.diff"), "mma.h")
    return difference(text, changed, "mma.h")


def read_wrapper(data: bytes, scratch: Path) -> object:
    from mccprobe.build.wrapper.install import read_installed
    from mccprobe.targets.llvm.locate import is_our_wrapper

    path = scratch / "mcc"
    path.write_bytes(data)
    is_our_wrapper(path)
    return read_installed(path)


def wrapper_seeds() -> list[bytes]:
    from mccprobe.build.wrapper.flagset import wrapper_sets
    from mccprobe.build.wrapper.script import generate

    return [generate(Path("/opt/musa/bin/mcc"), wrapper_sets("gemm-s4000"))]


FINDINGS = {"compile": True, "run": "no GPU", "bisect": True, "resources": "x", "bundle": True, "stale": "",
            "arch": "mp_22", "notes": ["a"]}  # fmt: skip


def read_probe_cache(data: bytes, scratch: Path) -> object:
    from mccprobe.targets.llvm.findings import ProbeCache, from_document

    (scratch / "key.json").write_bytes(data)
    document = ProbeCache(scratch).load("key")
    found = from_document(document) if document is not None else None
    return None if found is None else "".join([found.stale, found.arch, *found.notes])


def read_edit_folder(data: bytes, scratch: Path) -> object:
    from mccprobe.base.errors import MccprobeError
    from mccprobe.tuning.cycle.versions import FOLDER, EditStore

    store = EditStore(replace(shipped_gemm(), path=scratch / "kernel.toml"))
    digest = hashlib.sha256(data).hexdigest()[:32]
    store.versions.mkdir(parents=True, exist_ok=True)
    store.place(digest).write_bytes(data)
    (scratch / FOLDER / "good.json").write_bytes(data)
    with contextlib.suppress(MccprobeError):
        store.state("good.json")
    return store.load(digest)


def read_depends(data: bytes, scratch: Path) -> object:
    from mccprobe.build.travel import dependency_names

    return dependency_names(text_of(data))


def write_report_text(data: bytes, scratch: Path) -> object:
    """Foreign text into a Markdown report, with private names out of it."""
    from mccprobe.inspection.lines import joined
    from mccprobe.report.fence import code, escaped, fenced
    from mccprobe.report.scrub import Scrubber, private_names

    text = data.decode("utf-8", "surrogateescape")
    names = private_names(
        homes=["/home/alice", "/root"],
        users=["alice"],
        hosts=["mt-node-17"],
        places={"WORK": "/srv/kernels"},
        environment={"SECRET_TOKEN": "s3cr3t", "LANG": "C"},
    )
    scrubbed = Scrubber(names)
    text = scrubbed.text(text)
    scrubbed.private_in(data)
    for shown in (code(text), code(text, in_table=True), escaped(text, at_start=True), fenced(text), joined([text])):
        assert "\x1b" not in shown and "\u202e" not in shown and "\x9b" not in shown
    assert "\n" not in escaped(text) and "\n" not in code(text)
    return scrubbed.removed()
