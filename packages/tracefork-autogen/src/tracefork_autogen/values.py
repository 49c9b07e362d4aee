"""Convert what tools return: classes that can be rebuilt to data and back, others to text.

AutoGen makes a text of each result for the model, by `return_value_as_string` of the tool. So a
result that no replay could rebuild is replaced by that text, in the recording, too.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import Any

from autogen_core.tools import ToolResult

from tracefork_core.adapters import ProgramValues


class Rendered(str):
    """The text that a model gets for a result; no further text is made of it."""

    __slots__ = ()


class Values(ProgramValues):
    """Converts the results of one tool.

    Args:
        kinds: classes that hold data, besides those of AutoGen's own results.
    """

    tag = "autogen"

    def __init__(self, kinds: Iterable[Any] = ()) -> None:
        super().__init__((ToolResult, *kinds))

    def class_named(self, name: str) -> type | None:
        return super().class_named(name) or _messages().get(name)

    def fields(self, value: object) -> dict[str, Any] | None:
        return {"text": str(value)} if type(value) is Rendered else super().fields(value)

    def built(self, name: str, fields: dict[str, Any]) -> object:
        return Rendered(fields["text"]) if name == "Rendered" else super().built(name, fields)

    def said(self, text: str) -> object:
        return Rendered(text)


def _messages() -> dict[str, type]:
    """Return the classes of messages and events, which tools that yield pass to their agents."""
    loaded = sys.modules.get("autogen_agentchat.messages")
    if loaded is None:
        return {}
    found: dict[str, type] = {}
    waiting: list[type] = [loaded.BaseChatMessage, loaded.BaseAgentEvent]
    while waiting:
        kind = waiting.pop()
        found[kind.__name__] = kind
        waiting.extend(kind.__subclasses__())
    return found
