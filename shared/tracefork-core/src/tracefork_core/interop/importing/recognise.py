"""Recognise the format of a file, and import it.

The formats are asked in this order; the first that recognises a document reads it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tracefork_core.errors import UsageError
from tracefork_core.interop.importing import (
    adk_conformance,
    claude_code,
    document,
    har,
    langfuse,
    langsmith,
    otlp,
    transcripts,
    vcr,
    websocket,
)
from tracefork_core.interop.importing.foreign_run import ForeignRun
from tracefork_core.interop.importing.recording import write
from tracefork_core.interop.importing.trace_run import run_of
from tracefork_core.interop.span import Span
from tracefork_core.tape import Receipt


@dataclass(frozen=True, slots=True)
class Format:
    """A format that is imported: its name, what recognises its documents, and what reads one."""

    name: str
    recognises: Callable[[Any], bool]
    read: Callable[[Any], ForeignRun]


def _trace(
    name: str, recognises: Callable[[Any], bool], read: Callable[[Any], list[Span]]
) -> Format:
    """Return a format of traces, whose files are read as spans."""
    return Format(
        name,
        recognises,
        lambda document: run_of(name, read(document), transcripts.blamed_in(document)),
    )


FORMATS = (
    Format(websocket.REALTIME, websocket.is_realtime, websocket.read_realtime),
    Format(vcr.NAME, vcr.is_cassette, vcr.read_cassette),
    Format(har.NAME, har.is_har, har.read_har),
    Format(
        adk_conformance.NAME,
        adk_conformance.is_adk_recording,
        adk_conformance.read_adk_recording,
    ),
    _trace("OTLP trace", otlp.is_otlp, otlp.read_otlp),
    _trace("list of OpenTelemetry spans", otlp.is_sdk, otlp.read_sdk),
    _trace("Langfuse trace", langfuse.is_langfuse, langfuse.read_langfuse),
    _trace("LangSmith run", langsmith.is_langsmith, langsmith.read_langsmith),
    _trace("ATIF trajectory", transcripts.is_atif, transcripts.read_atif),
    _trace("Who&When log", transcripts.is_who_and_when, transcripts.read_who_and_when),
    _trace("Claude Code session", claude_code.is_claude_code, claude_code.read_claude_code),
    _trace("Langfuse ChatML file", langfuse.is_chatml, langfuse.read_chatml),
)


KNOWN = " It knows: "


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
    raise UsageError(f"tracefork: {source} is in no format that import knows.{KNOWN}{known}.")


def _content(source: Path) -> bytes:
    try:
        if source.stat().st_size > document.LARGEST:
            raise UsageError(
                f"tracefork: {source} has more than {document.LARGEST:,} bytes, which is the most "
                "that import reads."
            )
        return source.read_bytes()
    except FileNotFoundError as error:
        raise UsageError(f"tracefork: there is no file or folder {source} to import.") from error
    except OSError as error:
        raise UsageError(f"tracefork: cannot read {source}: {error.strerror}.") from error
