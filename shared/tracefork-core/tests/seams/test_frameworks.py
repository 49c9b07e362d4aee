"""A session switches on the instruments of installed adapters by itself."""

from __future__ import annotations

import importlib.metadata
import sys
from collections.abc import Iterator
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

from tracefork_core import record
from tracefork_core.seams import GROUP, of_adapters


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[EntryPoint]]:
    """Return the list of the entry points that adapters seem to have installed."""
    points: list[EntryPoint] = []
    monkeypatch.setattr(importlib.metadata, "entry_points", lambda group: points)
    monkeypatch.syspath_prepend(tmp_path)
    of_adapters.cache_clear()
    yield points
    of_adapters.cache_clear()
    for name in ("made_up", "made_up_adapter"):
        sys.modules.pop(name, None)


def test_an_adapter_changes_its_framework_while_a_session_is_open(
    tape: Path, tmp_path: Path, installed: list[EntryPoint]
) -> None:
    """`prepare` runs before the framework is imported; at the end both are undone."""
    (tmp_path / "made_up.py").write_text("state = ['imported']\n")
    (tmp_path / "made_up_adapter.py").write_text(
        "from tracefork_core.adapters import Instrument\n"
        "prepared = []\n"
        "def apply(module):\n"
        "    module.state.append('changed')\n"
        "    return lambda: module.state.append('as it was')\n"
        "def prepare():\n"
        "    prepared.append('before')\n"
        "    return lambda: prepared.append('after')\n"
        "INSTRUMENT = Instrument('made_up', apply, prepare)\n"
    )
    installed.append(EntryPoint("made-up", "made_up_adapter:INSTRUMENT", GROUP))
    with record(tape):
        assert sys.modules["made_up_adapter"].prepared == ["before"]
        import made_up  # type: ignore[import-not-found]

        assert made_up.state == ["imported", "changed"]
    assert made_up.state == ["imported", "changed", "as it was"]
    assert sys.modules["made_up_adapter"].prepared == ["before", "after"]


def test_a_broken_adapter_does_not_stop_a_recording(
    tape: Path, installed: list[EntryPoint]
) -> None:
    """A session leaves it out and warns with its name."""
    installed.append(EntryPoint("made-up", "nowhere_to_be_found:INSTRUMENT", GROUP))
    with pytest.warns(UserWarning, match="made-up"), record(tape):
        pass
