"""Keep the ids of messages stable that a process passes to several runs.

`add_messages` writes an id into a message object that has none. So a question that a module or a
notebook keeps has no id in the first run of a process, and has the id of the first run in all later
runs. A replay would then draw one id less than its recording, and each later message would get the
id of another one. A tool's answer could get the id of the question, for example, and LangGraph
would replace the question with it.

So a session with a tape gets a message with or without an id, as the recorded run got it. A
recording gets the message unchanged.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from tracefork_core import Tape, UsageError
from tracefork_core.adapters import Patches, session_here
from tracefork_langgraph import ADAPTER

if TYPE_CHECKING:
    from langchain_core.messages import BaseMessage


@dataclass(slots=True)
class _Known:
    """A message: whether it had an id when first seen, and when it reached the run of each tape."""

    message: weakref.ref[BaseMessage]
    was_bare: bool
    given: str | None = None
    bare_on: dict[Path, bool] = field(default_factory=dict)
    session: weakref.ref[object] | None = None


_known: dict[int, _Known] = {}
"""By the identity of a message, while it exists: equal messages are separate entries."""


def _of_messages(patches: Patches, module: ModuleType) -> None:
    """Replace the function that `add_messages` calls: graph schemas hold `add_messages` itself."""
    from langchain_core.messages import BaseMessage

    function = module.add_messages
    cells = dict(zip(function.__code__.co_freevars, function.__closure__ or (), strict=True))
    cell = cells.get("func")
    if cell is None:
        return  # Another LangGraph version: leave messages unchanged.
    original = cell.cell_contents

    def merged(left: Any, right: Any, **options: Any) -> Any:
        several = right if isinstance(right, list) else [right]
        arrived = list(_arrived(one for one in several if isinstance(one, BaseMessage)))
        result = original(left, right, **options)
        for known, message in arrived:
            known.given = message.id
        return result

    cell.cell_contents = merged

    patches.at_undo(lambda: setattr(cell, "cell_contents", original))


def _arrived(messages: Iterable[BaseMessage]) -> Iterator[tuple[_Known, BaseMessage]]:
    """Set the ids of messages as this session's tape had them; yield messages without an id."""
    try:
        session = session_here()
    except UsageError:
        return  # Two sessions and no context: an exchange here raises this too.
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
    if came_bare and message.id == known.given:  # Keep an id that the program set itself.
        message.id = None
    known.bare_on |= dict.fromkeys(tapes, message.id is None)


GIVEN = ADAPTER.instrument("langgraph.graph.message", _of_messages)
"""Every session switches it on when that module is imported."""
