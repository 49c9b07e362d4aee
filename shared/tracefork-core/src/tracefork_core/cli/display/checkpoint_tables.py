"""`tracefork show --checkpoints`: the states that a framework saved, and one of them whole."""

from __future__ import annotations

import json
import re
import shlex
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tracefork_core.checkpoints.contract import Checkpoints
from tracefork_core.checkpoints.store import checkpoint_file
from tracefork_core.cli.display import figures, screen
from tracefork_core.cli.display.text import printable, readable
from tracefork_core.errors import TapeError, UsageError
from tracefork_core.tape import Tape
from tracefork_core.tape.checkpoint import Checkpoint, Value, plain
from tracefork_core.tape.schema import holds_threads

if TYPE_CHECKING:
    from rich.console import Console

_SHOWN = 8
"""The last characters of an id tell checkpoints apart; the first ones are the time."""

_ID = re.compile(r"\b([0-9a-f]{4})[0-9a-f]{4}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b")
"""An id of a task: its first characters tell two runs of a node apart."""

_LARGEST = 16 * 1024 * 1024
"""Bytes of the largest value that is shown: what it decodes to is many times as large."""

Asked = dict[tuple[str, str], list[int]]
"""The exchanges that ran from each checkpoint, by thread and id."""
Body = Callable[[str, Value], bytes]


def document(found: Iterable[Checkpoint], asked: Asked) -> list[dict[str, object]]:
    """Return checkpoints as JSON-able values."""
    return [
        {
            "thread": one.thread,
            "ns": one.ns,
            "id": one.id,
            "parent": one.parent,
            "made": _moment(one).isoformat(),
            "metadata": one.metadata,
            "values": sorted(one.values),
            "exchanges": asked.get((one.thread, one.id), []),
        }
        for one in found
    ]


def of(path: Path) -> tuple[Checkpoints, Asked]:
    """Return the checkpoints of a tape or of a file of threads, and what was asked from each."""
    asked: Asked = defaultdict(list)
    if not holds_threads(path):
        with Tape.open(path) as tape:
            for exchange in tape.exchanges:
                if exchange.checkpoint is not None:
                    asked[exchange.checkpoint].append(exchange.n)
    return checkpoint_file(path), asked


def print_checkpoints(
    console: Console, found: Sequence[Checkpoint], asked: Asked, shown: str
) -> None:
    """Print checkpoints as a table, in the order they were made."""
    threads = figures.several(len({one.thread for one in found}), "thread")
    console.print(f"{printable(shown)} · {figures.several(len(found), 'checkpoint')} · {threads}")
    if not found:
        return
    table = screen.grid("thread", "~ns", ">step", "source", "checkpoint", "after", "made", "asked")
    for one in found:
        table.add_row(
            printable(one.thread),
            printable(_ID.sub(r"\1", one.ns)) or "—",
            printable(str(one.metadata.get("step", "—"))),
            printable(str(one.metadata.get("source", "—"))),
            printable(one.id[-_SHOWN:]),
            printable(one.parent[-_SHOWN:]) if one.parent else "—",
            f"{_moment(one):%H:%M:%S.%f}"[:-3],
            _numbers(asked.get((one.thread, one.id), [])),
        )
    console.print(table)
    last = shlex.quote(found[-1].id[-_SHOWN:])
    hint = f"next: tracefork show {shlex.quote(shown)} --checkpoint {last}"
    console.print(printable(hint), style=screen.DIM, soft_wrap=True)


def state(one: Checkpoint, body: Body) -> dict[str, Any]:
    """Return the values of a checkpoint as JSON-able values, without creating objects."""
    return {name: _value(one.thread, value, body) for name, value in sorted(one.values.items())}


def print_state(console: Console, one: Checkpoint, body: Body) -> None:
    """Print one checkpoint whole."""
    console.print(
        f"thread {printable(one.thread)} · checkpoint {printable(one.id)} · "
        f"{figures.several(len(one.values), 'value')} · {_moment(one):%Y-%m-%d %H:%M:%S} UTC"
    )
    for name, value in state(one, body).items():
        shown = json.dumps(value, indent=2, ensure_ascii=False)
        console.print(f"{printable(name)}:", style=screen.DIM)
        console.print(readable(shown.encode(), lines=True), soft_wrap=True)


def chosen(found: list[Checkpoint], wanted: str) -> Checkpoint:
    """Return the checkpoint with an id, or with the end of one.

    Raises:
        UsageError: no checkpoint matches, or several do.
    """
    fitting = [one for one in found if wanted and one.id.endswith(wanted)]
    if len(fitting) == 1:
        return fitting[0]
    several = "no checkpoint" if not fitting else f"{len(fitting)} checkpoints"
    raise UsageError(
        f"tracefork: there is {several} whose id ends with {wanted!r}. "
        "tracefork show --checkpoints lists them."
    )


def _value(thread: str, value: Value, body: Body) -> object:
    data = body(thread, value)
    if len(data) > _LARGEST:
        return f"{len(data)} bytes"
    if value.tag == "msgpack":
        try:
            return plain(data)
        except TapeError:
            return f"{len(data)} bytes of invalid MessagePack"
    return None if value.tag == "null" else f"{len(data)} bytes ({value.tag})"


def _moment(one: Checkpoint) -> datetime:
    return datetime.fromtimestamp(one.made / 1e9, UTC)


def _numbers(numbers: list[int]) -> str:
    """Return ranges of numbers: 3 4 5 7 is "3-5, 7"."""
    runs: list[list[int]] = []
    for n in sorted(numbers):
        if runs and runs[-1][1] == n - 1:
            runs[-1][1] = n
        else:
            runs.append([n, n])
    return ", ".join(str(a) if a == b else f"{a}-{b}" for a, b in runs) or "—"
