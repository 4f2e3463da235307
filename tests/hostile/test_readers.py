"""The bounded share of the campaign: each reader on damaged copies of whole inputs, and on inputs that grow.

`make fuzz` is the long run of the same readers, with a hundred thousand inputs each.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from .growth import PIECES, grown
from .limits import Fault, ask
from .mutate import EDITS, KINDS, damaged
from .reader import Reader
from .readers import rows

EXAMPLES = 40
ROWS = {reader.name: reader for reader in rows()}
TEXTS = [name for name, reader in ROWS.items() if reader.kind != "binary"]


@pytest.fixture(scope="module")
def scratch(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("scratch")


def require(reader: Reader, data: bytes, scratch: Path) -> str:
    try:
        return ask(reader, data, scratch)
    except Fault as fault:
        pytest.fail(f"{reader.name}: {fault}\n{data[:2000]!r}", pytrace=False)


@pytest.mark.parametrize("name", ROWS)
def test_whole_inputs_are_read(name: str, scratch: Path) -> None:
    """Else the edits damage what is refused as it stands, and test nothing."""
    ends = [require(ROWS[name], data, scratch) for data in ROWS[name].seeds()]
    assert "record" in ends or name in ("edit-folder", "flag-text"), ends


@pytest.mark.parametrize("name", ROWS)
def test_damaged_inputs(name: str, scratch: Path) -> None:
    reader, seeds = ROWS[name], ROWS[name].seeds()
    edits = st.tuples(st.sampled_from(sorted(set(KINDS[reader.kind]))), st.floats(0, 1), st.integers(0, 2**32 - 1))

    @settings(max_examples=EXAMPLES, deadline=None, database=None, suppress_health_check=list(HealthCheck))
    @given(st.sampled_from(range(len(seeds))), st.lists(edits, min_size=1, max_size=4))
    def run(seed: int, changes: list[tuple[str, float, int]]) -> None:
        require(reader, damaged(seeds[seed], changes, seeds), scratch)

    run()


@pytest.mark.parametrize("name", TEXTS)
def test_growing_inputs(name: str, scratch: Path) -> None:
    """One line, and each time another third of the pieces: the campaign has all of them."""
    reader = ROWS[name]
    start = sorted(TEXTS).index(name) % 3
    for data in grown(reader.seeds()[0], reader.kind, lines=1, pieces=PIECES[start::3]):
        require(reader, data, scratch)


def test_every_edit_is_used() -> None:
    assert {edit for names in KINDS.values() for edit in names} == set(EDITS)
