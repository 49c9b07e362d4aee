"""Give a tape a second place, where branches of it can lie: a branch lies beside its parent."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from tracefork_core.errors import UnwritableError
from tracefork_core.tape.reader import Tape
from tracefork_core.tape.schema import BESIDE


def lay_beside(tape: Path, folder: Path) -> Path:
    """Put a tape, and those it cannot be read without, into another folder; return its new path.

    What is closed gets a second name there, and takes no room; what was cut off is copied.

    Raises:
        TapeError: the file is not a tape, is damaged, or cannot be copied.
    """
    with Tape.open(tape) as opened:
        names = [tape.name, *opened.needs]
    for name in names:
        for suffix in ("", *BESIDE):
            file, place = tape.with_name(name + suffix), folder / (name + suffix)
            if not file.exists():
                continue
            try:
                if _is_open(tape.with_name(name)):
                    raise OSError("two names of a tape would have two logs")
                os.link(file, place)
            except OSError:
                _copy(file, place)
    return folder / tape.name


def _copy(file: Path, place: Path) -> None:
    try:
        shutil.copy2(file, place)
    except OSError as error:
        place.unlink(missing_ok=True)
        raise UnwritableError(f"tracefork: cannot write {place}: {error.strerror}.") from error


def _is_open(tape: Path) -> bool:
    with Tape.open(tape) as opened:
        return not opened.complete
