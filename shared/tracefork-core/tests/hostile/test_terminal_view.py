"""The terminal view of a hostile tape ends with one clear error, or shows it and answers keys.

`TRACEFORK_FUZZ=1` opens each tape; without it, a few of them.
"""

from __future__ import annotations

import os
import random
from pathlib import Path

import pytest

from tracefork_core.cli.tui.first_frame import painted
from tracefork_core.errors import TraceforkError

from ..cli.terminal_view import HEIGHT, WIDTH, viewed
from ..cli.test_terminal import is_plain
from .hostile_tapes import TAPES

SAMPLE, SEED = 4, 21
NAMES = sorted(TAPES)
if "TRACEFORK_FUZZ" not in os.environ:
    NAMES = random.Random(SEED).sample(NAMES, SAMPLE)


@pytest.mark.parametrize("name", NAMES)
async def test_a_hostile_tape_is_shown_or_refused(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first frame leaves out what it cannot read. No page ends the view."""
    tape = tmp_path / "run.tape"
    for variable, value in (TAPES[name](tape) or {}).items():
        monkeypatch.setenv(variable, value)
    lines = painted(tape, "run.tape", WIDTH, HEIGHT)
    assert all(is_plain(line) and len(line) <= WIDTH for line in lines)
    try:
        async with viewed(tape) as view:
            for key in "jdewbhGJ?":
                await view.press(key)
                await view.rest()
                assert all(map(is_plain, view.lines))
            await view.until("── keys")
    except TraceforkError as error:
        assert str(error).startswith("tracefork: ")  # noqa: PT017 - most are shown
