"""Adapters that a session switches on by itself."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

from tracefork_core import record
from tracefork_core.seams import framework_instruments


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[EntryPoint]]:
    """Entry points of adapters, as if they were installed."""
    points: list[EntryPoint] = []
    monkeypatch.setattr(framework_instruments, "entry_points", lambda group: points)
    monkeypatch.syspath_prepend(tmp_path)
    framework_instruments.of_adapters.cache_clear()
    yield points
    framework_instruments.of_adapters.cache_clear()
    for name in ("made_up", "made_up_adapter"):
        sys.modules.pop(name, None)


def test_an_adapter_changes_its_framework_while_a_session_is_open(
    tape: Path, tmp_path: Path, installed: list[EntryPoint]
) -> None:
    """Once the framework is imported; what has to be there before that is, and all is put back."""
    (tmp_path / "made_up.py").write_text("state = ['imported']\n")
    (tmp_path / "made_up_adapter.py").write_text(
        "from tracefork_core.adapters import Instrument\n"
        "told = []\n"
        "def apply(module):\n"
        "    module.state.append('changed')\n"
        "    return lambda: module.state.append('as it was')\n"
        "def prepare():\n"
        "    told.append('before')\n"
        "    return lambda: told.append('after')\n"
        "INSTRUMENT = Instrument('made_up', apply, prepare)\n"
    )
    group = framework_instruments.GROUP
    installed.append(EntryPoint("made-up", "made_up_adapter:INSTRUMENT", group))
    with record(tape):
        assert sys.modules["made_up_adapter"].told == ["before"]
        import made_up  # type: ignore[import-not-found]

        assert made_up.state == ["imported", "changed"]
    assert made_up.state == ["imported", "changed", "as it was"]
    assert sys.modules["made_up_adapter"].told == ["before", "after"]


def test_a_broken_adapter_stops_no_recording(tape: Path, installed: list[EntryPoint]) -> None:
    """It is left out, and said."""
    installed.append(
        EntryPoint("made-up", "nowhere_to_be_found:INSTRUMENT", framework_instruments.GROUP)
    )
    with pytest.warns(UserWarning, match=r"adapter for made-up is left out.*doctor"), record(tape):
        pass
