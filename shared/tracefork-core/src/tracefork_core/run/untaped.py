"""Find the tools that ran in the agent's process without being on the tape.

The tape holds which tools the model called, and which exchanges the program made. A call of a tool
is on the tape if one of these was made between the answer that called it and the question that
brought its result:

- an exchange of that tool, or one with the same arguments: a function behind `@tracefork.tool`,
  one of a framework's tools, a `tools/call` of an MCP server;
- an exchange in a step of that tool, where an adapter names the steps;
- where the answer called nothing else, another exchange of the same lane that asks no model, from a
  line that makes none while no tool is called: the function's own request, which a replay answers.

All other calls ran as plain functions. A replay runs them again, and so does a fork.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from copy import copy
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path

from tracefork_core.errors import UsageError
from tracefork_core.exchange.contract import TOOL
from tracefork_core.providers import Json, ModelCall, ToolCallPart, ToolCallResponsePart, is_bounded
from tracefork_core.providers.call import Message
from tracefork_core.providers.decode import model_call, tool_use
from tracefork_core.providers.remembered import added
from tracefork_core.tape import Exchange, Tape

_CHANGED = re.compile(r"\W+")
_TOOL_STEPS = frozenset({"tool", "delegation"})
_TOLD = 4
"""The names of tools that a sentence lists."""


@dataclass(slots=True)
class _Called:
    """A call of a tool by the model.

    Attributes:
        exchange: the exchange whose answer holds the call.
        is_alone: whether that answer calls no other tool.
        is_demanded: whether the question demanded a call. If no result comes back, the call is the
            model's answer in a structured form.
        is_answered: whether its result was sent to the model.
        is_taped: whether an exchange of its own is on the tape.
    """

    exchange: Exchange
    part: ToolCallPart
    is_alone: bool
    is_demanded: bool
    is_answered: bool = False
    is_taped: bool = False

    @property
    def is_untaped(self) -> bool:
        return not self.is_taped and (self.is_answered or not self.is_demanded)

    def is_around(self, exchange: Exchange) -> bool:
        """Return whether an exchange was made on the lane of this call, or on one under it."""
        lane = self.exchange.lane
        return exchange.lane == lane or exchange.lane.startswith(f"{lane}/")


@dataclass(frozen=True, slots=True)
class _Asked:
    """The last question of a lane, and the ids of the results in it."""

    messages: tuple[Message, ...] = ()
    results: set[str | None] = field(default_factory=set)


@dataclass(slots=True)
class ToolCalls:
    """The calls of tools in a run. Give it each exchange in its order."""

    _calls: list[_Called] = field(default_factory=list)
    _open: list[_Called] = field(default_factory=list)
    _lines_of_no_tool: set[str | None] = field(default_factory=set)
    _asked: dict[str, _Asked] = field(default_factory=dict)

    def copy(self) -> ToolCalls:
        """Return a copy that goes on by itself."""
        twins = {id(called): copy(called) for called in self._calls}
        still_open = [twins[id(called)] for called in self._open]
        return ToolCalls(
            [*twins.values()], still_open, self._lines_of_no_tool.copy(), self._asked.copy()
        )

    def add(self, exchange: Exchange, call: ModelCall | None) -> None:
        """Add the next exchange, and what it is as a model call."""
        if exchange.is_auxiliary or not exchange.has_bodies:
            return
        steps = {_plain(step.name) for step in exchange.steps if step.kind in _TOOL_STEPS}
        for called in self._open if steps else ():
            called.is_taped = called.is_taped or _plain(called.part.name) in steps
        if call is None:
            self._tape(exchange)
            return
        self._answer(call, exchange.lane)
        parts = call.tool_calls
        demanded = _is_demanded(call.parameters)
        new = [_Called(exchange, part, len(parts) == 1, demanded) for part in parts]
        self._calls += new
        self._open += new

    @property
    def untaped(self) -> list[tuple[Exchange, ToolCallPart]]:
        """The calls that are not on the tape, each with the exchange that holds it."""
        return [(one.exchange, one.part) for one in self._calls if one.is_untaped]

    def _answer(self, call: ModelCall, lane: str) -> None:
        """Note the results that a question brings."""
        before = self._asked.get(lane, _Asked())
        new = added(before.messages, call.input)
        parts = [part for message in (call.input if new is None else new) for part in message.parts]
        brought = {part.id for part in parts if isinstance(part, ToolCallResponsePart)}
        ids = brought if new is None else before.results | brought
        self._asked[lane] = _Asked(call.input, ids)
        answered = [one for one in self._open if one.part.id in ids]
        for one in answered:
            one.is_answered = True
        self._open = [one for one in self._open if not one.is_answered]

    def _tape(self, exchange: Exchange) -> None:
        """Note the call that an exchange belongs to."""
        waiting = [one for one in self._open if not one.is_taped]
        if (asked := _tool_asked(exchange)) is not None:
            name, arguments = asked
            same = [one for one in waiting if _plain(one.part.name) == name]
            same += [one for one in waiting if arguments and one.part.arguments == arguments]
            if same:
                same[0].is_taped = True
                return
        around = [one for one in self._open if one.is_around(exchange)]
        if not around:
            self._lines_of_no_tool.add(exchange.aside.caller)
        elif exchange.aside.caller not in self._lines_of_no_tool:
            for one in around:
                one.is_taped = one.is_taped or one.is_alone


def untaped_calls(tape: Tape) -> list[tuple[Exchange, ToolCallPart]]:
    """Return the calls of tools that are not on a tape, each with the exchange that holds it."""
    calls = ToolCalls()
    for exchange in tape.exchanges:
        calls.add(exchange, model_call(exchange))
    return calls.untaped


def untaped_tools(path: Path) -> dict[str, int]:
    """Return the tools that ran untaped, with the number of their calls.

    Raises:
        TapeError: the tape is corrupt.
    """
    with Tape.open(path) as tape:
        return counted(untaped_calls(tape)) if tape.opens else {}


def counted(calls: Iterable[tuple[Exchange, ToolCallPart]]) -> dict[str, int]:
    """Return the number of calls of each tool."""
    return dict(Counter(part.name for _, part in calls))


def untaped_words(tools: Mapping[str, int], then: str) -> str:
    """Return "3 tool calls ran in your process and are not on the tape: charge_card ×1, …".

    `then` is what comes of it, with "{}" for the tools: "A replay runs {} again."
    """
    several = sum(tools.values()) > 1
    calls = f"{sum(tools.values())} tool calls" if several else "1 tool call"
    verb, them = ("are", "them") if several else ("is", "it")
    listed = f"{calls} ran in your process and {verb} not on the tape: {_names(tools)}"
    return f"{listed}. {then.format(them)}"


def repeated_tools(tape: Tape, until: int | None = None) -> dict[str, int]:
    """Return the untaped tools that a run of this tape calls again.

    `until` is the exchange that ends it: tools that are called after that stay out.
    """
    calls = untaped_calls(tape)
    return counted((one, part) for one, part in calls if until is None or one.n <= until)


def check_tools(tape: Tape, until: int | None = None) -> None:
    """Refuse a run that would call untaped tools again.

    Raises:
        UsageError: it would.
    """
    if tools := repeated_tools(tape, until):
        raise UsageError(
            f"tracefork: {untaped_words(tools, 'This would run {} again.')} Allow it with "
            "--allow-writes (writes='allow'). Or record the tool as an exchange, which is not "
            f"repeated: `tracefork record --tool MODULE:{next(iter(tools))}`, or @tracefork.tool "
            "above the function."
        )


def _names(tools: Mapping[str, int]) -> str:
    names = [f"{name} ×{count}" for name, count in tools.items()]
    left = len(names) - _TOLD
    return ", ".join([*names[:_TOLD], *([f"{left} more"] if left > 0 else [])])


def _tool_asked(exchange: Exchange) -> tuple[str, Json] | None:
    """Return the tool that an exchange runs and its arguments; None if it runs none."""
    if exchange.aside.seam == TOOL:
        name = exchange.url.removeprefix("tool:").rpartition(".")[2]
        return _plain(name), _document(exchange)
    if use := tool_use(exchange):
        return _plain(use.name), use.arguments
    document = _document(exchange) if exchange.method == "POST" else None
    if isinstance(document, dict) and document.get("method") == "tools/call":
        params = document.get("params")
        if isinstance(params, dict):
            return _plain(str(params.get("name"))), params.get("arguments")
    return None


@lru_cache(1_024)
def _plain(name: str) -> str:
    """Return the name of a tool without what frameworks change in it for a model."""
    return _CHANGED.sub("_", name).lower()


def _document(exchange: Exchange) -> Json:
    body = exchange.request_body
    if not is_bounded(body):
        return None
    try:
        document: Json = json.loads(body)
    except (ValueError, RecursionError):
        return None
    return document


def _is_demanded(parameters: Mapping[str, Json]) -> bool:
    """Return whether a question lets the model answer with a call of a tool only."""
    choice = parameters.get("tool_choice")
    if isinstance(choice, dict):
        choice = choice.get("type")
    config = parameters.get("toolConfig") or parameters.get("tool_config")
    if isinstance(config, dict):
        calling = config.get("functionCallingConfig") or config.get("function_calling_config")
        choice = calling.get("mode") if isinstance(calling, dict) else choice
    return choice not in (None, "auto", "none", "AUTO", "NONE", "MODE_UNSPECIFIED")
