"""A bug report in the making: which files of the user's go in, and how each loses its private names."""

from __future__ import annotations

import os
import platform
import pwd
import socket
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from mccprobe.base.errors import BadElf, BadReport
from mccprobe.base.files import TEMPORARY
from mccprobe.explain.bundle.run import FinishedRun
from mccprobe.explain.bundle.sources import Layout, needed_files
from mccprobe.objects.binary.elf import SHF_ALLOC, is_elf, parse_elf
from mccprobe.report.scrub import Private, Scrubber, private_names
from mccprobe.targets.llvm.command import is_source, language, split_arguments
from mccprobe.targets.llvm.inherited import VARIABLES, added_arguments, header_folders
from mccprobe.targets.protocol import Toolchain

_DEBUG = (".debug_", ".zdebug_")
_TEXT_PROBE = 1 << 16  # bytes in which a NUL makes a file no text


@dataclass
class Making:
    """A bundle in the making.

    staging: what becomes the folder. files: names with the keys of their sentences in the report.
    left_out: files that are no text and hold a private name.
    """

    run: FinishedRun
    staging: Path
    scrubber: Scrubber
    layout: Layout
    toolchain: Toolchain | None
    left_out: list[str] = field(default_factory=list)
    files: list[tuple[str, str]] = field(default_factory=list)

    def add(self, name: str, data: bytes, key: str = "") -> bool:
        """Put a file in, scrubbed if it is text; False if it is no text and holds a private name.

        In the debug information of an object (-g names folders) private names are overwritten.
        """
        if is_text(data):
            data = self.scrubber.text(data.decode("utf-8", "surrogateescape")).encode("utf-8", "surrogateescape")
        elif self.scrubber.private_in(data):
            data = blank_debug_information(data, self.scrubber)
            if self.scrubber.private_in(data):
                self.left_out.append(name)
                return False
        path = self.staging / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
        if key:
            self.files.append((name, key))
        return True


def blank_debug_information(data: bytes, scrubber: Scrubber) -> bytes:
    """An ELF object with private names overwritten in sections that no program loads; other bytes as they are."""
    try:
        sections = parse_elf(data).sections if is_elf(data) else ()
    except BadElf:
        return data
    for section in sections:
        if section.name.startswith(_DEBUG) and not section.flags & SHF_ALLOC and section.size:
            end = section.offset + section.size
            data = data[: section.offset] + scrubber.blanked(data[section.offset : end]) + data[end:]
    return data


def machine_names(finished: FinishedRun, cache: Path) -> tuple[Private, ...]:
    """The private names of this machine, this user and this run."""
    return names_here(
        {
            "RUN": finished.root,
            "CACHE": cache.absolute(),
            "WORKDIR": finished.where.absolute(),
            "SOURCES": finished.source.parent,
        }
    )


def names_here(places: Mapping[str, Path]) -> tuple[Private, ...]:
    """The private names of this machine and this user. places: stand-in -> a folder that is private as well."""
    account = _account()
    named = [os.environ.get(name, "") for name in ("USER", "LOGNAME", "USERNAME", "SUDO_USER")]
    hosts = [socket.gethostname(), platform.node(), os.environ.get("HOSTNAME", "")]
    # not gettempdir: that is a folder of this process alone, below the one that may tell a name
    temporary = next((os.environ[name] for name in TEMPORARY if os.environ.get(name)), "/tmp")
    places = {**places, "TMP": Path(temporary), "HERE": Path.cwd()}
    # a folder that every machine has is no secret, and programs name it
    places = {name: path for name, path in places.items() if str(path) not in ("/tmp", "/var/tmp")}
    return private_names(
        homes=[os.environ.get("HOME", ""), *((account.pw_dir,) if account else ())],
        users=[*((account.pw_name,) if account else ()), *named],
        hosts=[name for host in hosts for name in (host, host.partition(".")[0])],
        places={name: str(path) for name, path in places.items() if len(path.parts) > 1},
        # what compiles take from it is no secret: without it the report is of another build
        environment={name: value for name, value in os.environ.items() if name not in VARIABLES},
    )


def _account() -> pwd.struct_passwd | None:
    """The user's entry in the password database; a container's numeric user has none."""
    try:
        return pwd.getpwuid(os.getuid())
    except KeyError:
        return None


def is_text(data: bytes) -> bool:
    return b"\0" not in data[:_TEXT_PROBE] and data[:4] != b"BC\xc0\xde"


def search_once_more(making: Making) -> None:
    """No private name is left in any file. Raises BadReport: nothing is written then."""
    for path in sorted(making.staging.rglob("*")):
        name = str(path.relative_to(making.staging))
        left = making.scrubber.private_in(os.fsencode(name) + b"\n" + (path.read_bytes() if path.is_file() else b""))
        if left:
            raise BadReport(
                f"{name}: still holds {left[0].kind} {left[0].text} after scrubbing",
                hint="rename the file, or --no-scrub",
            )


def user_files(finished: FinishedRun) -> list[Path]:
    """Sources with their headers, other inputs, the kernel's description, files of the user's check."""
    forced = language(split_arguments(finished.request["args"]))
    sources = [finished.source, *(path for path in finished.inputs if is_source(path.name, forced))]
    added = added_arguments(finished.inherited)
    args = (*finished.bad_args, *(finished.request.get("reference_args") or ()), *added)
    files = needed_files(sources, args, finished.where, header_folders(finished.inherited, finished.where))
    more = [path for path in finished.inputs if path.is_file()]
    description = finished.source.parent / "kernel.toml"
    if finished.request["oracle"][0] == "kernel" and description.is_file():
        more.append(description)
    more += [finished.stdin] if finished.stdin is not None and finished.stdin.is_file() else []
    more += [finished.where / name for name in finished.request["oracle"][1] if (finished.where / name).is_file()]
    normal = [Path(os.path.normpath(path.absolute())) for path in more]
    own = [path for path in normal if not str(path).startswith("/usr/")]
    configuration = finished.configuration
    own += [configuration] if configuration is not None and configuration.is_file() else []
    return list(dict.fromkeys([*files, *own]))


def add_sources(making: Making) -> tuple[int, int] | None:
    """Copy the user's files. Returns the lines of the reduced and of the untouched source, if there is one."""
    reduced = making.run.reduced()
    source = Path(os.path.normpath(making.run.source))
    for path, name in making.layout.names.items():
        taken = reduced if reduced is not None and path == source else path
        making.add(name, taken.read_bytes())
        if os.access(path, os.X_OK) and (making.staging / name).is_file():
            (making.staging / name).chmod(0o755)
    making.files.append(("source/", "source"))
    if reduced is None:
        return None
    lines = [len(path.read_bytes().splitlines()) for path in (reduced, source)]
    return lines[0], lines[1]
