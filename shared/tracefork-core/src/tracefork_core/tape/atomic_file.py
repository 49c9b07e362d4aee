"""A file that appears under its name when it is whole, and not before."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import mkdtemp

from tracefork_core.errors import UnwritableError
from tracefork_core.tape.creation import check_place, clear_way

SCRATCH = ".tracefork-"
"""What folders begin with that are gone when a command has ended, unless it was killed."""


@contextmanager
def drafted(target: Path) -> Iterator[Path]:
    """Give a path to write to; the file there takes its name when the block ends well.

    Raises:
        UsageError: there is something of that name, or no folder for it.
        UnwritableError: the folder cannot be written.
    """
    check_place(target)
    folder = Path(_made(target))
    try:
        draft = folder / target.name
        yield draft
        _give_name(draft, target)
        _clear_way(target)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _made(target: Path) -> str:
    try:
        return mkdtemp(prefix=f"{SCRATCH}draft-", dir=target.absolute().parent)
    except OSError as error:
        raise UnwritableError(
            f"tracefork: cannot write {target}: {error.strerror}. Name a place that can be written."
        ) from error


def _clear_way(target: Path) -> None:
    """Remove what is not of this file, which nobody has written to under its name."""
    try:
        clear_way(target)
    except OSError as error:
        raise UnwritableError(
            f"tracefork: {target} is written, but what a killed recording of that name left "
            f"cannot be removed: {error}. Remove it before you read {target.name}."
        ) from error


def _give_name(draft: Path, target: Path) -> None:
    """Give a file its name, unless another one has got it meanwhile."""
    try:
        os.link(draft, target)
    except FileExistsError:
        check_place(target)
        raise
    except OSError:  # The file system knows no second names.
        check_place(target)
        draft.rename(target)
