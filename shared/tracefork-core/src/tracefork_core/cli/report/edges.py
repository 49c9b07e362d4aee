"""Which exchange needed which: what the steps of a framework recorded, and what texts reveal.

Within a lane, each exchange follows the one before; a page draws that without being told. The other
edges are:

- recorded: a step began after other steps, as an adapter noted it (joins);
- inferred: a lane began while its parent's lane was between two exchanges ("started here"); a
  question repeats the answer that a model gave on another lane ("repeats the answer").
"""

from __future__ import annotations

from collections.abc import Sequence

from tracefork_core.cli.report.document import Edge
from tracefork_core.exchange.contract import AFTER
from tracefork_core.providers import ModelCall, TextPart
from tracefork_core.providers.call import Message, ToolCallResponsePart
from tracefork_core.providers.remembered import added
from tracefork_core.tape import Exchange, StepRecord, Tape

STARTED = "started here"
REPEATS = "repeats the answer"
_LEAST = 24
"""Shorter answers are equal by chance."""


class Edges:
    """Finds the edges. Give it each exchange in its order; `found` has them."""

    def __init__(self, tape: Tape) -> None:
        self.found: list[Edge] = []
        self._met = 0
        self._waits: dict[str, list[str]] = {}
        self._ends: dict[str, int] = {}
        self._lanes: dict[str, int] = {}
        self._answers: dict[str, tuple[int, str]] = {}
        self._asked: dict[str, tuple[Message, ...]] = {}
        self._known: set[tuple[int, int]] = set()
        self.meet(tape.steps)

    def meet(self, steps: Sequence[StepRecord]) -> None:
        """Learn the steps so far."""
        for step in steps[self._met :]:
            if isinstance(after := step.detail.get(AFTER), list):
                self._waits[step.id] = [str(one) for one in after]
        self._met = len(steps)

    def add(self, exchange: Exchange, call: ModelCall | None) -> None:
        """Find the edges that lead to an exchange."""
        for step in exchange.steps:
            for before in self._waits.pop(step.id, ()):
                self._add(self._ends.get(before), exchange.n, None)
        for step in exchange.steps:
            self._ends[step.id] = exchange.n
        if exchange.lane not in self._lanes and "/" in exchange.lane:
            parent = exchange.lane.rpartition("/")[0]
            self._add(self._lanes.get(parent), exchange.n, STARTED)
        self._lanes[exchange.lane] = exchange.n
        if call is not None and not exchange.is_auxiliary:
            self._follow(exchange, call)

    def _follow(self, exchange: Exchange, call: ModelCall) -> None:
        """Find the answers of other lanes in what a question adds, and keep its own answer."""
        new = added(self._asked.get(exchange.lane, ()), call.input)
        self._asked[exchange.lane] = call.input
        for message in call.input if new is None else new:
            for part in message.parts:
                text = part.content if isinstance(part, TextPart) else None
                if isinstance(part, ToolCallResponsePart) and isinstance(part.response, str):
                    text = part.response
                n, lane = self._answers.get(text or "", (None, ""))
                if n is not None and lane != exchange.lane:
                    self._add(n, exchange.n, REPEATS)
        if len(call.text) >= _LEAST:
            self._answers[call.text] = exchange.n, exchange.lane

    def _add(self, start: int | None, end: int, rule: str | None) -> None:
        if start is not None and start != end and (start, end) not in self._known:
            self._known.add((start, end))
            self.found.append(Edge(start, end, rule))
