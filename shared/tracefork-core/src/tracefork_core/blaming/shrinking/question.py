"""Leave messages, tools and lines out of one model call."""

from __future__ import annotations

import copy
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from tracefork_core.errors import UsageError
from tracefork_core.providers.asking import edit
from tracefork_core.providers.dropping import drop_message
from tracefork_core.providers.lenient import Json, mappings, parse
from tracefork_core.providers.question import MESSAGES, read_question
from tracefork_core.session.interventions import Edit
from tracefork_core.tape import Exchange

Place = tuple[int, tuple[str | int, ...]]
Line = tuple[Place, int]
_TEXTS = ("content", "text", "output", "parts")
_FEWEST_LINES = 3
"""A shorter text is left whole."""


@dataclass(frozen=True, slots=True)
class Asked:
    """A request, as the formats of the providers read it."""

    method: str
    url: str
    headers: Sequence[tuple[str, str]]
    body: bytes


@dataclass(frozen=True, slots=True)
class Asking:
    """What one model call asks, taken apart.

    Attributes:
        asked: the request.
        key: the field of the request that holds the messages.
        messages: the messages.
        groups: numbers of messages that can only be left out together: a tool call and its result.
        tools: the names of the tools.
    """

    asked: Asked
    key: str
    messages: list[dict[str, Json]]
    groups: list[tuple[int, ...]]
    tools: list[str]

    @classmethod
    def read(cls, call: Exchange, body: bytes) -> Asking | None:
        """Take a body apart; None if the format of the call holds no list of messages."""
        try:
            asked = Asked(call.method, call.url, call.request_headers, body)
            api = read_question(asked).call
        except UsageError:
            return None
        document = parse(body)
        if api.api not in MESSAGES or not isinstance(document, dict):
            return None
        key, _ = MESSAGES[api.api]
        given = document.get(key)
        messages = mappings(given)
        if not isinstance(given, list) or len(messages) != len(given):
            return None
        tools = list(dict.fromkeys(tool.name for tool in api.tools))
        return cls(asked, key, messages, _groups(api.api, key, messages), tools)

    def edit(
        self,
        groups: Sequence[tuple[int, ...]],
        tools: Sequence[str],
        dropped: Collection[Line] = (),
    ) -> Edit:
        """Return the change of the request that leaves only these messages, tools and lines."""
        numbers = sorted(n for group in groups for n in group)
        messages = [_without(self.messages[n], n, dropped) for n in numbers]
        offered = None if len(tools) == len(self.tools) else list(tools)
        return Edit(tools=offered, values={f"/{self.key}": messages})

    def sent(self, change: Edit) -> str:
        """Return the body that is sent with a change of the request."""
        return edit(self.asked, tools=change.tools, set=change.values)[1].decode()

    def lines(self, groups: Sequence[tuple[int, ...]]) -> list[Line]:
        """Return the lines of the longer texts of these messages."""
        numbers = sorted(n for group in groups for n in group)
        return [
            ((n, path), i)
            for n in numbers
            for path, text in _texts(self.messages[n], ())
            if len(lines := text.split("\n")) >= _FEWEST_LINES
            for i in range(len(lines))
        ]


def _groups(api: str, key: str, messages: list[dict[str, Json]]) -> list[tuple[int, ...]]:
    """Return which messages go together, as `drop_message` removes them."""
    group_of = list(range(len(messages)))
    for n in range(len(messages)):
        body: dict[str, Json] = {key: list[Json](messages)}
        try:
            drop_message(api, body, n)
        except UsageError:  # Nothing would be left: all messages go together.
            return [tuple(range(len(messages)))]
        rest = {id(message) for message in mappings(body.get(key))}
        gone = {group_of[i] for i, message in enumerate(messages) if id(message) not in rest}
        group_of = [min(gone) if group in gone else group for group in group_of]
    named = dict.fromkeys(group_of)
    return [tuple(n for n, own in enumerate(group_of) if own == group) for group in named]


def _texts(
    node: object, path: tuple[str | int, ...]
) -> Iterator[tuple[tuple[str | int, ...], str]]:
    if isinstance(node, str):
        yield path, node
    elif isinstance(node, dict):
        for key in _TEXTS:
            if key in node:
                yield from _texts(node[key], (*path, key))
    elif isinstance(node, list):
        for i, child in enumerate(node):
            yield from _texts(child, (*path, i))


def _without(message: dict[str, Json], n: int, dropped: Collection[Line]) -> dict[str, Json]:
    changed: Any = copy.deepcopy(message) if dropped else message
    for path, text in _texts(message, ()) if dropped else ():
        kept = [line for i, line in enumerate(text.split("\n")) if ((n, path), i) not in dropped]
        parent = changed
        for part in path[:-1]:
            parent = parent[part]
        parent[path[-1]] = "\n".join(kept)
    result: dict[str, Json] = changed
    return result
