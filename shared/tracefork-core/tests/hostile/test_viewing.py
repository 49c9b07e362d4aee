"""`tracefork view` reads hostile tapes of a folder within bounds, and goes on."""

from __future__ import annotations

from pathlib import Path

import pytest

from tracefork_core.cli.view.folder import Folder
from tracefork_core.cli.view.growing import Growing, Seen

from .hostile_tapes import TAPES, ordinary

LOOKS = 200
"""A tape is read in pieces: none of them needs more."""


@pytest.mark.parametrize("name", sorted(TAPES))
def test_a_hostile_tape_is_shown_or_refused(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An ordinary tape beside it is listed and read as ever."""
    for variable, value in (TAPES[name](tmp_path / "bad.tape") or {}).items():
        monkeypatch.setenv(variable, value)
    ordinary(tmp_path / "good.tape")
    folder = Folder(tmp_path)
    looks = sum(1 for _ in range(LOOKS) if folder.look())
    entries = folder.entries()
    assert looks < LOOKS
    assert (entries["good.tape"].state, entries["good.tape"].problem) == ("complete", None)
    assert entries["bad.tape"].state
    good, bad = Growing(tmp_path / "good.tape"), Growing(tmp_path / "bad.tape")
    assert sum(1 for _ in range(LOOKS) if bad.look()) < LOOKS
    growth = bad.since(Seen())
    assert growth is not None
    assert growth.problem or growth.run is not None
    good.look()
    shown = good.since(Seen())
    assert shown is not None
    assert (shown.problem, shown.left) == (None, 0)
    bad.close()
    good.close()
