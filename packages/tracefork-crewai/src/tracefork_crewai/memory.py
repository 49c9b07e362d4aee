"""Record each call of a memory, with what it returned, as an exchange.

The work behind it (models, embeddings, a database, the time, records of earlier runs) is part of
the exchange and never runs in a replay. A replay stores nothing, so nothing has to be found again.
CrewAI finishes saving in a thread after the call has returned; that is part of the exchange too.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial, wraps
from typing import Any

from crewai.memory.unified_memory import Memory

from tracefork_core.adapters import Effect, Patches
from tracefork_crewai import memory_storage
from tracefork_crewai.memory_storage import in_use
from tracefork_crewai.memory_usage import CountedValues, Usage
from tracefork_crewai.methods import as_exchange
from tracefork_crewai.untold import Untold

_ASKED = (
    "recall",
    "extract_memories",
    "list_records",
    "list_scopes",
    "list_categories",
    "info",
    "tree",
)
_TOLD = ("remember", "remember_many", "forget", "update", "reset", "reset_all")

Method = Callable[..., Any]
Wrap = Callable[[Method], Method]


def put_in(patches: Patches) -> None:
    """Make the calls of `Memory` exchanges of the open session."""
    untold, usage = Untold(), Usage()
    values = CountedValues()
    memory_storage.put_in(patches)
    patches.at_undo(untold.forget)
    patches.at_undo(usage.forget)
    usage.put_in(patches)
    for name in _ASKED:
        asked = _exchange(untold, usage, as_exchange(f"memory.{name}", _of_asking, values))
        patches.wrap(Memory, name, asked)
    for name in _TOLD:
        told = _exchange(untold, usage, as_exchange(f"memory.{name}", _of_storing, values))
        patches.wrap(Memory, name, partial(_telling, untold, told))


def _exchange(untold: Untold, usage: Usage, wrap: Wrap) -> Wrap:
    return lambda method: _noticed(usage.counting(wrap(usage.telling(_live(untold, method)))))


def _noticed(exchange: Method) -> Method:
    """Let the tape count the storages in the order of the calls, also of those that it answers."""

    @wraps(exchange)
    def noticed(self: Any, *args: Any, **kwargs: Any) -> Any:
        with in_use(self):
            return exchange(self, *args, **kwargs)

    return noticed


def _telling(untold: Untold, wrap: Wrap, method: Method) -> Method:
    exchange = wrap(method)

    @wraps(method)
    def told(self: Any, *args: Any, **kwargs: Any) -> Any:
        with untold.telling(self, partial(method, self, *args, **kwargs)):
            return exchange(self, *args, **kwargs)

    return told


def _live(untold: Untold, method: Method) -> Method:
    @wraps(method)
    def live(self: Any, *args: Any, **kwargs: Any) -> Any:
        untold.catch_up(self)
        return method(self, *args, **kwargs)

    return live


def _of_asking(_: Any) -> Effect:
    return "read"


def _of_storing(_: Any) -> Effect:
    return "pure"  # What a fork remembers, only its own session sees.
