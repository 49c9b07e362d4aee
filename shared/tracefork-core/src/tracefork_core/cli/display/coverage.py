"""Coverage: how many of the connections made while recording were captured."""

from __future__ import annotations

from tracefork_core.cli.display import figures
from tracefork_core.cli.display.text import printable
from tracefork_core.tape import Receipt


def coverage_words(receipt: Receipt) -> str:
    """Return how many connections were captured, and which were not.

    Where exchanges crossed a seam and no connection was seen, native code made their connections.
    """
    connections = figures.several(receipt.connections, "connection")
    words = f"captured {receipt.crossed} of {connections}"
    if receipt.exchanges and not receipt.connections:
        words = f"captured {figures.several(receipt.exchanges, 'exchange')}, no connection seen"
    if receipt.strays:
        words += f"; not captured: {_names(receipt.strays)}"
    if receipt.subprocesses:
        words += f"; {subprocess_words(receipt.subprocesses)}"
    if receipt.left_alone:
        words += f"; {left_alone_words(receipt.left_alone)}"
    return words


def subprocess_words(programs: list[str]) -> str:
    """Return which programs were started that tracefork cannot see into."""
    started = figures.several(len(programs), "subprocess", "subprocesses")
    return f"{started}: {_names(programs)}"


def left_alone_words(count: int) -> str:
    """Return how many requests passed by that belong to other work of the process."""
    return f"{figures.several(count, 'request')} of other work in this process left alone"


def unseen_words(modules: list[str]) -> str:
    """Return which loaded modules open sockets in native code, unseen by tracefork."""
    return f"! not watched: sockets in native code ({_names(modules)})"


def coverage_document(receipt: Receipt) -> dict[str, object]:
    """Return the coverage of a recording as JSON-able values."""
    return {
        "connections": receipt.connections,
        "crossed": receipt.crossed,
        "strays": receipt.strays,
        "subprocesses": receipt.subprocesses,
        "left_alone": receipt.left_alone,
    }


def _names(found: list[str]) -> str:
    counted = {name: found.count(name) for name in dict.fromkeys(found)}
    names = [printable(name) + (f" x{n}" if n > 1 else "") for name, n in counted.items()]
    return ", ".join([*names[:4], *([f"{len(names) - 4} more"] if len(names) > 4 else [])])
