"""The content of a run in blocks, each small enough to unpack at once."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from decimal import Decimal
from typing import TypeVar
from urllib.parse import urlsplit

from tracefork_core.cli.display.account import Account, Counting
from tracefork_core.cli.report import bodies
from tracefork_core.cli.report.conversation import Asked, Conversation
from tracefork_core.cli.report.document import Block, Body, Edge, Exchange, Index
from tracefork_core.cli.report.edges import Edges
from tracefork_core.cli.report.packing import Parts
from tracefork_core.cli.report.timeline import Timeline
from tracefork_core.providers import ModelCall, model_call
from tracefork_core.tape import Exchange as Taped
from tracefork_core.tape import StepRecord, Tape

_CHARACTERS = 256 * 1024
"""A block is closed when it holds that much text. A page shows the first one at once."""


class Blocks:
    """Packs what a run holds. Give it each exchange in its order, then `close` it."""

    def __init__(
        self,
        tape: Tape,
        steps: Sequence[StepRecord],
        parts: Parts,
        *,
        began: int,
        content: bool,
    ) -> None:
        self._parts, self._content = parts, content
        self._timeline = Timeline(steps, began, content=content)
        self._conversation = Conversation(content)
        self._edges = Edges(tape)
        self._counting = Counting()
        self._requests: dict[int, str] = {}
        self._last: dict[str, int] = {}
        self._block, self._size, self._first = Block(0), 0, -1
        self.ids: list[tuple[int, str]] = []

    def add(self, exchange: Taped) -> None:
        """Add an exchange."""
        call = model_call(exchange)
        price: Decimal | None = self._counting.add(exchange, call)
        first = self._conversation.count
        asked = self._conversation.add(exchange, call)
        self._timeline.add(exchange, call, price, first)
        self._edges.add(exchange, call)
        if self._first < 0:
            self._first, self._block = exchange.n, Block(first)
        shown = self._exchange(exchange, asked, call, first)
        self._block.exchanges.append(shown)
        self._size += len(shown.request.text) + len(shown.response.text)
        self._size += sum(len(part.text) for one in self._conversation.new for part in one.parts)
        if self._size > _CHARACTERS:
            self._pack()

    def meet(self, steps: Sequence[StepRecord]) -> None:
        """Learn the steps so far."""
        self._timeline.meet(steps)
        self._edges.meet(steps)

    def ahead(self, parts: Parts) -> Blocks:
        """Return a copy that goes on from here, into other parts.

        Its index has the rows that are added to it alone. So what is still open can be shown, and
        be shown again when more of it is there.
        """
        return _copied(
            self,
            _parts=parts,
            _block=_copied(self._block),
            _timeline=_copied(self._timeline, index=Index(steps=self._timeline.index.steps)),
            _conversation=_copied(self._conversation),
            _edges=_copied(self._edges, found=[]),
            _counting=self._counting.copy(),
        )

    @property
    def index(self) -> Index:
        """The rows so far, without the edges."""
        return self._timeline.index

    @property
    def edges(self) -> list[Edge]:
        """The edges so far."""
        return self._edges.found

    def close(self) -> Index:
        """Pack the last block, and return the index."""
        if self._first >= 0:
            self._pack()
        self._timeline.index.edges = self._edges.found
        return self._timeline.index

    @property
    def lanes(self) -> list[str]:
        """The names of the lanes, by their numbers."""
        return list(self._timeline.lanes)

    @property
    def account(self) -> Account:
        """The totals of the run."""
        return self._counting.account

    def _pack(self) -> None:
        self.ids.append((self._first, self._parts.add(self._block)))
        self._first, self._size = -1, 0

    def _exchange(
        self, exchange: Taped, asked: Asked, call: ModelCall | None, first: int
    ) -> Exchange:
        request, response = bodies.EMPTY, bodies.EMPTY
        if self._content and exchange.has_bodies:
            request, response = self._request(exchange, asked, call), bodies.response_body(exchange)
        url = exchange.url if self._content else urlsplit(exchange.url).netloc
        return Exchange(
            base=asked.base,
            keep=asked.keep,
            messages=[number - first for number in asked.messages],
            answer=[number - first for number in asked.answer],
            settings=asked.settings,
            method=exchange.method,
            url=url,
            status=exchange.status,
            request_headers=exchange.request_headers if self._content else [],
            response_headers=exchange.response_headers if self._content else [],
            caller=exchange.aside.caller,
            # A text and the bodies that hold it lie close together, so that they deflate to one.
            new=self._conversation.new,
            request=request,
            response=response,
        )

    def _request(self, exchange: Taped, asked: Asked, call: ModelCall | None) -> Body:
        """Return a request as what differs from the one that its conversation sent before."""
        text = bodies.request_body(exchange)
        if isinstance(text, int) or call is None:
            return bodies.whole(text)
        base = asked.base if asked.base >= 0 else self._last.get(exchange.lane, -1)
        before = self._requests.pop(base, None)
        self._requests[exchange.n] = text
        self._last[exchange.lane] = exchange.n
        if before is None:
            return bodies.whole(text)
        return bodies.beside(text, before, base)


_T = TypeVar("_T")


def _copied(thing: _T, **others: object) -> _T:
    """Return a copy with lists, dicts and sets of its own, and some other attributes."""
    twin = copy(thing)
    for name in getattr(thing, "__struct_fields__", ()) or vars(thing):
        value = others.get(name, getattr(thing, name))
        if name not in others and isinstance(value, list | dict | set):
            value = value.copy()
        setattr(twin, name, value)
    return twin
