"""Compare error messages with golden files, word by word.

`TRACEFORK_GOLDEN=write` rewrites the files: check the differences before you commit them.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

import tracefork_core as tracefork

Mistake = Callable[[Path], object]
"""Makes one mistake in a folder of its own."""


def refused(mistake: Mistake, folder: Path) -> str:
    """Make a mistake that must be refused, and return its name and the error message."""
    here = folder / mistake.__name__
    here.mkdir()
    with pytest.raises(tracefork.TraceforkError) as raised:
        mistake(here)
    message = str(raised.value).replace(str(here), "HERE")
    return f"{mistake.__name__}\n{type(raised.value).__name__}: {message}\n"


def hold_to(path: Path, messages: str) -> None:
    """Compare messages with a golden file, or write it."""
    if os.environ.get("TRACEFORK_GOLDEN") == "write":
        path.write_text(messages, encoding="utf-8")
    assert path.exists(), f"{path} is missing; TRACEFORK_GOLDEN=write writes it"
    assert messages == path.read_text(encoding="utf-8"), f"{path} differs from:\n{messages}"
