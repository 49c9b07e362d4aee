"""`tracefork ci normalize`: write each tape as text, for reviews and for git.

The text of a run has neither clock nor ids nor the order in which lanes took turns, and each
message once. So a tape that was recorded again, and says the same, has the same text.
"""

from __future__ import annotations

import difflib
from dataclasses import dataclass
from pathlib import Path

from tracefork_core.comparing.text_form import text_form
from tracefork_core.errors import UnwritableError
from tracefork_core.tape import Tape

SUFFIX = ".txt"


@dataclass(frozen=True, slots=True)
class TextFile:
    """The text of a tape: the file, and how it differs from the text that was there."""

    file: Path
    size: int
    changed: list[str]
    is_new: bool = False


def write(tape: Path, *, only_check: bool = False) -> TextFile:
    """Write the text of a tape beside it, unless `only_check`.

    Raises:
        TapeError: the tape is corrupt, or sealed and its key is not here.
        UnwritableError: the file cannot be written.
    """
    with Tape.open(tape) as opened:
        lines = list(text_form(opened))
    file = tape.with_suffix(SUFFIX)
    text = "\n".join([*lines, ""])
    before = file.read_text("utf-8") if file.is_file() else ""
    names = f"a/{file.name}", f"b/{file.name}"
    changed = list(difflib.unified_diff(before.splitlines(), lines, *names, lineterm=""))
    if changed and not only_check:
        try:
            file.write_text(text, "utf-8")
        except OSError as error:
            raise UnwritableError(f"tracefork: cannot write {file}: {error.strerror}.") from error
    return TextFile(file, len(text.encode()), changed, is_new=not before)
