"""Private names out of what leaves the machine: homes, users, hosts, places, values of the environment.

Pure: the caller says what is private (`private_names` collects it from what it is given). Every removal
is counted, so that the list can be shown before anything is written. Text is rewritten; what is no text
(bitcode, objects) is only searched, for a changed byte would change what it says.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from mccprobe.base.console import number_of

SECRET_NAMES = re.compile(r"TOKEN|SECRET|PASS|CREDENTIAL|AUTH|(?:^|_)KEY|PRIVATE|COOKIE", re.IGNORECASE)
# variables whose values say nothing of a person; what they may hold of a home or a user is found by that name
PUBLIC_VARIABLES = re.compile(
    r"^(?:LANG|LANGUAGE|LC_.*|TERM|COLORTERM|SHELL|EDITOR|PAGER|PATH|LS_COLORS|SHLVL|TZ|_|PWD|OLDPWD|DEBIAN_FRONTEND|"
    r"PYTHON.*|CI|CC|CXX|MAKE.*|MFLAGS|ASAN_OPTIONS|PYTEST.*|LESS.*|NO_COLOR)$"
)
LEAST_VALUE = 8  # characters: shorter values of variables without a secret's name stand in any text by chance
LEAST_SECRET = 4  # of a value whose variable is named like a secret
LEAST_NAME = 4  # of a user's or host's name, to be replaced where it stands alone
# names of accounts and machines that tell nobody apart and are words of programs
COMMON_NAMES = frozenset(
    ("root", "user", "users", "test", "admin", "main", "build", "builder", "runner", "ubuntu", "debian", "guest",
     "nobody", "localhost", "host", "local", "home", "work", "docker", "default", "daemon", "system", "server",
     "client", "data")
)  # fmt: skip
_ANY_HOME = re.compile(r"/(?:home|Users)/[^/\s\"'`:;,()\[\]<>|\\]+")
_SYSTEM_PATH = re.compile(r"/(?:usr|bin|sbin|lib\w*|etc|opt|proc|sys|dev|var|run|tmp)(?:/|$)")


@dataclass(frozen=True)
class Private:
    """One private name. kind: "home", "user", "host", "place" or "environment"; stands_in: what is left of it."""

    kind: str
    text: str
    stands_in: str

    def pattern(self) -> re.Pattern[str]:
        """Where it counts as this name and not as a part of another word."""
        quoted = re.escape(self.text)
        if self.text.startswith("/"):
            # a home of one part is none at the end of another path (`tests/x`), but is one behind `-I`
            before = r"(?:(?<![\w.~)-])|(?<=-[ILBTx]))" if self.text.count("/") == 1 else ""
            return re.compile(before + quoted + r"(?![\w-]|\.\w)")
        flags = re.IGNORECASE if self.kind == "host" else 0
        return re.compile(rf"(?<![A-Za-z0-9_]){quoted}(?![A-Za-z0-9_])", flags)


@dataclass(frozen=True)
class Removed:
    """What was taken out: shown to the user, never written into the report itself."""

    kind: str
    text: str
    stands_in: str
    times: int

    def describe(self) -> str:
        return f"{self.kind}: {self.text} -> {self.stands_in} ({number_of(self.times, 'time')})"


def private_names(
    *,
    homes: Iterable[str],
    users: Iterable[str],
    hosts: Iterable[str],
    places: Mapping[str, str],
    environment: Mapping[str, str],
) -> tuple[Private, ...]:
    """Everything that is to be removed, the longest first. places: stand-in -> folder.

    A short or common user or host name is a word of programs: it is removed as part of a home's path alone.
    """
    found = [Private("home", home.rstrip("/"), "~") for home in homes if len(home.rstrip("/")) > 1]
    found += [Private("place", folder.rstrip("/"), name) for name, folder in places.items() if len(folder) > 1]
    for kind, names in (("user", users), ("host", hosts)):
        for name in names:
            if len(name) >= LEAST_NAME and name.lower() not in COMMON_NAMES:
                found.append(Private(kind, name, kind.upper()))
    known = {item.text for item in found}
    for name, value in environment.items():
        secret = bool(SECRET_NAMES.search(name)) and len(value) >= LEAST_SECRET
        personal = (
            len(value) >= LEAST_VALUE
            and not PUBLIC_VARIABLES.match(name)
            and not _SYSTEM_PATH.match(value)
            and not value.replace(".", "").isdigit()
        )
        if (secret or personal) and value not in known and value.strip() and value.lower() not in COMMON_NAMES:
            known.add(value)
            found.append(Private("environment", value, f"ENV_{name}"))
    found += [
        Private(item.kind, escaped, item.stands_in)
        for item in found
        if (escaped := json.dumps(item.text)[1:-1]) != item.text
    ]
    return tuple(sorted(set(found), key=lambda item: (-len(item.text), item.text, item.kind)))


_BLANK = "x"  # overwrites a byte of a private name in debug information


@dataclass
class Scrubber:
    """Takes private names out of text and remembers what it took. Without names it changes nothing."""

    names: Sequence[Private] = ()
    other_homes: bool = True
    counts: Counter[tuple[str, str, str]] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        self._patterns = [(item, item.pattern()) for item in self.names]

    def text(self, text: str) -> str:
        """The text without private names."""
        for item, pattern in self._patterns:
            text, times = pattern.subn(item.stands_in, text)
            if times:
                self.counts[item.kind, item.text, item.stands_in] += times
        if self.other_homes:
            for found in _ANY_HOME.findall(text):
                self.counts["home", found, "~"] += 1
            text = _ANY_HOME.sub("~", text)
        return text

    def value(self, value: Any) -> Any:
        """The same for every string, also keys, of plain data."""
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, dict):
            return {self.text(str(key)): self.value(item) for key, item in value.items()}
        if isinstance(value, list | tuple):
            return [self.value(item) for item in value]
        return value

    def private_in(self, data: bytes) -> list[Private]:
        """The names that stand in these bytes: what is no text is left out with them, not rewritten."""
        text = data.decode("utf-8", "surrogateescape")
        found = [item for item, pattern in self._patterns if pattern.search(text)]
        if self.other_homes:
            found += [Private("home", home, "~") for home in dict.fromkeys(_ANY_HOME.findall(text))]
        return found

    def blanked(self, data: bytes) -> bytes:
        """The bytes with every private name overwritten; none moves, so that offsets into them stay right."""
        text = data.decode("utf-8", "surrogateescape")
        for item, pattern in self._patterns:
            text, times = pattern.subn(_blank, text)
            if times:
                self.counts[item.kind, item.text, _BLANK] += times
        if self.other_homes:
            for found in _ANY_HOME.findall(text):
                self.counts["home", found, _BLANK] += 1
            text = _ANY_HOME.sub(_blank, text)
        return text.encode("utf-8", "surrogateescape")

    def removed(self) -> list[Removed]:
        """Everything taken out so far."""
        return [Removed(*key, times) for key, times in sorted(self.counts.items())]


def _blank(found: re.Match[str]) -> str:
    """As many bytes; a string's end (NUL) stays."""
    parts = found[0].split("\0")
    return "\0".join(_BLANK * len(part.encode("utf-8", "surrogateescape")) for part in parts)
