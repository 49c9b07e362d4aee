"""The ids that LangGraph gives to messages which a process keeps and gives to its graphs again.

`add_messages` writes them into the messages themselves. So the question of a module, or of a
notebook, comes without one to the first run of a process, and with that of the first to all later
ones. A replay would draw one id less than its recording, and all later messages would have those of
others: the answer of a tool that of the question, say, in whose place LangGraph then puts it.

So under a tape a message comes as it came when that was recorded. A recording has it as it is.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from tracefork_core import Tape, UsageError
from tracefork_core.adapters import Instrument, session_here

if TYPE_CHECKING:
    from langchain_core.messages import BaseMessage


@dataclass(slots=True)
class _Known:
    """A message: whether it came without an id at first, and to the run of each tape."""

    message: weakref.ref[BaseMessage]
    was_bare: bool
    given: str | None = None
    bare_on: dict[Path, bool] = field(default_factory=dict)
    session: weakref.ref[object] | None = None


_known: dict[int, _Known] = {}
"""By the identity of the message, as long as there is one: equal ones are not the same."""


def _of_messages(module: ModuleType) -> Callable[[], None]:
    """Stand in for what `add_messages` calls, for that itself is in the schemas of graphs."""
    from langchain_core.messages import BaseMessage

    function = module.add_messages
    cells = dict(zip(function.__code__.co_freevars, function.__closure__ or (), strict=True))
    cell = cells.get("func")
    if cell is None:
        return lambda: None  # Another LangGraph: messages come as they are.
    original = cell.cell_contents

    def merged(left: Any, right: Any, **options: Any) -> Any:
        several = right if isinstance(right, list) else [right]
        came = list(_arrived(one for one in several if isinstance(one, BaseMessage)))
        result = original(left, right, **options)
        for known, message in came:
            known.given = message.id
        return result

    cell.cell_contents = merged

    def undo() -> None:
        cell.cell_contents = original

    return undo


def _arrived(messages: Iterable[BaseMessage]) -> Iterator[tuple[_Known, BaseMessage]]:
    """Let messages come to this session as they came to its tape; yield those without an id."""
    try:
        session = session_here()
    except UsageError:
        return  # Two sessions and no context: an exchange here will say so.
    if session is None:
        return
    for message in messages:
        known = _known_as(message)
        if known.session is None or known.session() is not session:
            known.session = weakref.ref(session)
            _come(message, known, session.source, session.tapes)
        if message.id is None:
            yield known, message


def _known_as(message: BaseMessage) -> _Known:
    key = id(message)
    if key not in _known:
        gone = weakref.ref(message, lambda _: _known.pop(key, None))
        _known[key] = _Known(gone, was_bare=message.id is None)
    return _known[key]


def _come(
    message: BaseMessage, known: _Known, source: Tape | None, tapes: tuple[Path, ...]
) -> None:
    came_bare = source is not None and known.bare_on.get(source.path, known.was_bare)
    if came_bare and message.id == known.given:  # Or somebody has given it one since.
        message.id = None
    known.bare_on |= dict.fromkeys(tapes, message.id is None)


GIVEN = Instrument("langgraph.graph.message", _of_messages)
"""Switched on by every session, once that module is imported."""
