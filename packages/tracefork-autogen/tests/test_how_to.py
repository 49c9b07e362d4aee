"""The guide works as written."""

from __future__ import annotations

from pathlib import Path

import pytest
from docs.pages import follow


@pytest.mark.many_processes
def test_the_guide_works_as_written(tmp_path: Path) -> None:
    """The graph is recorded, shown, replayed and forked, each in its own process.

    The four analysts ask and answer in an order of their own.
    """
    varies = r"\d+(?=main\.)|(?<=editor,after)[a-z,]+"
    typed = follow("docs/how-to/debug-an-autogen-team.md", tmp_path, varies=varies)
    shown = next(printed for command, printed in typed if " show " in command)
    assert "desk ▸ east ▸ find_sales" in shown
