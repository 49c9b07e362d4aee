"""Recognise the format of a file, and import it.

The formats are asked in this order; the first that recognises a document reads it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tracefork_core.errors import UsageError
from tracefork_core.interop.importing import document, vcr
from tracefork_core.interop.importing.foreign_run import ForeignRun
from tracefork_core.interop.importing.recording import write
from tracefork_core.tape import Receipt


@dataclass(frozen=True, slots=True)
class Format:
    """A format that is imported: its name, what recognises its documents, and what reads one."""

    name: str
    recognises: Callable[[Any], bool]
    read: Callable[[Any], ForeignRun]


FORMATS = (Format(vcr.NAME, vcr.is_cassette, vcr.read_cassette),)


def import_file(source: Path, target: Path) -> tuple[Receipt, ForeignRun]:
    """Import a file onto a new tape; return the receipt of the tape, and the run.

    Raises:
        UsageError: the file cannot be read, or is in none of the formats; the tape exists.
    """
    content = _content(source)
    run = read(source, content)
    return write(run, source, content, target), run


def read(source: Path, content: bytes) -> ForeignRun:
    """Return the run in a file.

    Raises:
        UsageError: the file is in none of the formats, or holds no call.
    """
    held = document.load(source, content)
    for each in FORMATS:
        if each.recognises(held):
            run = each.read(held)
            if not run.exchanges and not run.steps:
                raise UsageError(f"tracefork: {source} is a {each.name} without any call.")
            return run
    known = ", ".join(each.name for each in FORMATS)
    raise UsageError(f"tracefork: {source} is in no format that import knows. It knows: {known}.")


def _content(source: Path) -> bytes:
    try:
        if source.stat().st_size > document.LARGEST:
            raise UsageError(
                f"tracefork: {source} has more than {document.LARGEST:,} bytes, which is the most "
                "that import reads."
            )
        return source.read_bytes()
    except OSError as error:
        raise UsageError(f"tracefork: cannot read {source}: {error.strerror}.") from error
