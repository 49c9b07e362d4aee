"""Record each query to knowledge, with the passages that it returned, as an exchange.

Adding the sources is one exchange, whose request holds their content. If a file has changed since
the recording, the replay reports a divergence.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial, wraps
from typing import Any

from crewai.knowledge.knowledge import Knowledge

from tracefork_core.adapters import Patches, in_session
from tracefork_crewai import knowledge_storage
from tracefork_crewai.knowledge_storage import notice
from tracefork_crewai.methods import as_exchange
from tracefork_crewai.tool_calls import Leaf, acall, call
from tracefork_crewai.tool_values import Values
from tracefork_crewai.untold import Untold

Method = Callable[..., Any]


def put_in(patches: Patches) -> None:
    """Make the calls of `Knowledge` exchanges of the open session."""
    untold = Untold()
    knowledge_storage.put_in(patches)
    patches.at_undo(untold.forget)
    for name, wrap in (
        ("query", _query),
        ("aquery", _aquery),
        ("add_sources", _add_sources),
        ("aadd_sources", partial(_aadd_sources, add=Knowledge.add_sources)),
    ):
        patches.wrap(Knowledge, name, _noticing(partial(wrap, untold)))


def _noticing(wrap: Callable[[Method], Method]) -> Callable[[Method], Method]:
    def wrapped(method: Method) -> Method:
        exchange = wrap(method)

        @wraps(exchange)
        def noticed(self: Any, *args: Any, **kwargs: Any) -> Any:
            notice(self.storage)
            return exchange(self, *args, **kwargs)

        return noticed  # An async method returns its coroutine.

    return wrapped


_as_query = as_exchange("knowledge.query", lambda _: "read")


def _query(untold: Untold, query: Method) -> Method:
    @wraps(query)
    def live(self: Any, *args: Any, **kwargs: Any) -> Any:
        untold.catch_up(self)
        return query(self, *args, **kwargs)

    return _as_query(live)


def _aquery(untold: Untold, query: Method) -> Method:
    @wraps(query)
    async def live(self: Any, *args: Any, **kwargs: Any) -> Any:
        untold.catch_up(self)
        return await query(self, *args, **kwargs)

    return _as_query(live)


def _add_sources(untold: Untold, add: Method) -> Method:
    @wraps(add)
    def added(self: Any) -> None:
        def live(sources: object) -> Any:
            untold.catch_up(self)
            return add(self)

        if not in_session():
            add(self)
            return
        with untold.telling(self, partial(add, self)):
            call(_leaf(add), live, (), {"sources": _told(self)})

    return added


def _aadd_sources(untold: Untold, aadd: Method, *, add: Method) -> Method:
    @wraps(aadd)
    async def added(self: Any) -> None:
        async def live(sources: object) -> Any:
            untold.catch_up(self)
            return await aadd(self)

        if not in_session():
            await aadd(self)
            return
        with untold.telling(self, partial(add, self)):
            await acall(_leaf(aadd), live, (), {"sources": _told(self)})

    return added


# A "read", since it can be repeated: a source is stored by its content.
_leaf = partial(Leaf, "knowledge.add_sources", values=Values(), effect="read")


def _told(knowledge: Any) -> list[dict[str, object]]:
    return [_told_of(source) for source in knowledge.sources]


def _told_of(source: Any) -> dict[str, object]:
    content = getattr(source, "content", None)
    if isinstance(content, dict):  # The keys are paths, which differ between machines.
        content = list(content.values())
    return {"source": type(source).__name__, "content": content}
