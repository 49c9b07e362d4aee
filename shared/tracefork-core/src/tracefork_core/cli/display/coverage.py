"""Coverage: how much of what left the process while recording crossed a seam."""

from __future__ import annotations

from tracefork_core.cli.display import figures
from tracefork_core.cli.display.text import printable
from tracefork_core.tape import Receipt


def coverage_words(receipt: Receipt) -> str:
    """Say how many connections crossed a seam, and which did not."""
    connections = figures.several(receipt.connections, "connection")
    words = f"coverage {receipt.crossed} of {connections} crossed a seam"
    if receipt.strays:
        words += f", not: {_names(receipt.strays)}"
    if receipt.subprocesses:
        words += f"; {subprocess_words(receipt.subprocesses)}"
    return words


def subprocess_words(programs: list[str]) -> str:
    """Say which programs were started that tracefork does not see into."""
    started = figures.several(len(programs), "subprocess", "subprocesses")
    return f"{started}: {_names(programs)}"


def unseen_words(modules: list[str]) -> str:
    """Say whose sockets nothing sees, as far as that is known of what is loaded."""
    return f"! not watched: sockets of {_names(modules)}, which are opened in native code"


def coverage_document(receipt: Receipt) -> dict[str, object]:
    """Return the coverage of a recording as JSON-able values."""
    return {
        "connections": receipt.connections,
        "crossed": receipt.crossed,
        "strays": receipt.strays,
        "subprocesses": receipt.subprocesses,
    }


def _names(found: list[str]) -> str:
    counted = {name: found.count(name) for name in dict.fromkeys(found)}
    names = [printable(name) + (f" x{n}" if n > 1 else "") for name, n in counted.items()]
    return ", ".join([*names[:4], *([f"{len(names) - 4} more"] if len(names) > 4 else [])])
