"""What a mistake says, to the letter: compared with a golden file, or written into one.

`TRACEFORK_GOLDEN=write` writes the files anew: look at what changed before it is kept.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

import tracefork_core as tracefork

Mistake = Callable[[Path], object]
"""Makes one mistake, in a folder of its own."""


def refused(mistake: Mistake, folder: Path) -> str:
    """Make a mistake, which has to be refused, and return its name and what was said of it."""
    here = folder / mistake.__name__
    here.mkdir()
    with pytest.raises(tracefork.TraceforkError) as raised:
        mistake(here)
    said = str(raised.value).replace(str(here), "HERE")
    return f"{mistake.__name__}\n{type(raised.value).__name__}: {said}\n"


def hold_to(path: Path, said: str) -> None:
    """Compare what was said with a golden file, or write it."""
    if os.environ.get("TRACEFORK_GOLDEN") == "write":
        path.write_text(said, encoding="utf-8")
    assert path.exists(), f"no {path}: TRACEFORK_GOLDEN=write writes it"
    assert said == path.read_text(encoding="utf-8"), f"{path} has other words:\n{said}"
