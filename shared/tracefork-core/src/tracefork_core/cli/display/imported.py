"""Say where an imported tape comes from, and how much of the run it holds."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from tracefork_core.cli.display.text import printable

if TYPE_CHECKING:
    from tracefork_core.tape.imported import Imported


ENDS = {"ok": "ended well", "unknown": "how it ended is not known"}
"""How runs end that did not fail, in words."""


def imported_words(imported: Imported) -> str:
    """Return "imported from old.yaml (VCR cassette): replayable (bodies proven)"."""
    from tracefork_core.tape.imported import GRADES

    source = f"imported from {imported.file} ({imported.format})"
    return printable(f"{source}: {GRADES[imported.grade]}")


def blamed_words(imported: Imported) -> str | None:
    """Return "people blamed exchange 3 (Planner): it gave up", if the file says so."""
    blamed = imported.blamed
    if blamed is None:
        return None
    agent = f" ({blamed.agent})" if blamed.agent else ""
    reason = f": {blamed.reason}" if blamed.reason else ""
    return printable(f"people blamed exchange {blamed.exchange}{agent}{reason}")


def imported_document(imported: Imported | None) -> dict[str, object] | None:
    """Return where a tape comes from as JSON-able values; None of a recorded tape."""
    if imported is None:
        return None
    return {
        "format": imported.format,
        "file": imported.file,
        "sha256": imported.sha256,
        "grade": imported.grade,
        "missing": imported.missing,
        "lower": imported.lower,
        "not_proven": imported.not_proven,
        "blamed": msgspec.to_builtins(imported.blamed),
    }
