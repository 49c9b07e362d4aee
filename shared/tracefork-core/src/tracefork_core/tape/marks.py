"""Mark a tape: a label in a small file beside it, which says that its owner wants to keep it.

A mark can be set long after the tape was closed, and does not change a byte of it.
"""

from __future__ import annotations

import re
from pathlib import Path

from tracefork_core.errors import UsageError
from tracefork_core.tape.schema import MARK, beside

_LABEL = re.compile(r"[A-Za-z0-9][A-Za-z0-9 _.-]{0,39}")


def check_label(label: object) -> None:
    """Check a label that a tape is to be marked with.

    Raises:
        UsageError: it is empty, too long, or has other characters.
    """
    if not isinstance(label, str) or not _LABEL.fullmatch(label):
        raise UsageError(
            "tracefork: a mark is a word or two of letters, digits, spaces and _.- with at most "
            f"40 characters, like failed (got {label!r})."
        )


def mark(tape: Path, label: str) -> bool:
    """Mark a tape, and return whether it is still there.

    Raises:
        OSError: the mark cannot be written.
    """
    file = beside(tape, MARK)
    file.write_text(label + "\n", encoding="utf-8")
    if tape.exists():
        return True
    file.unlink(missing_ok=True)
    return False


def label_of(tape: Path) -> str | None:
    """Return the label of a tape, None if it has none."""
    try:
        with beside(tape, MARK).open(encoding="utf-8", errors="replace") as file:
            return file.readline(200).strip()
    except OSError:
        return None
