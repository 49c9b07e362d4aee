"""Convert tool results to data and back: LangChain's and LangGraph's classes by their fields.

    {"langchain": "ToolMessage", "content": "sunny", "status": "error"}
    {"langchain": "Command", "goto": "refunds", "update": {"order": 17}}
    {"langchain": "dict", "pairs": [["langchain", "a dictionary that would look like one of them"]]}

A fixed table lists the classes; the name on the tape is looked up in it. Any other value stays as
it is: core stores plain values, and names the class of a value that it refuses.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from langchain_core.documents import Document
from langchain_core.messages import (
    AIMessage,
    BaseMessage,
    ChatMessage,
    FunctionMessage,
    HumanMessage,
    RemoveMessage,
    SystemMessage,
    ToolMessage,
)
from langgraph.types import Command, Overwrite, Send

from tracefork_core.adapters import FrameworkValues

_CALL = "tool_call_id"


@dataclass(frozen=True, slots=True)
class Outcome:
    """The outcome of a tool that asked a person.

    Args:
        answered: how many of its interrupts already had an answer.
        result: what the tool returned.
        asks: the value and the response schema of the interrupt that ended the tool, if one did.
    """

    answered: int
    result: object = None
    asks: tuple[object, object] | None = None


# Per class: the fields that are always stored, and those that are left out if empty.
_FIELDS: dict[type, tuple[tuple[str, ...], tuple[str, ...]]] = {
    Command: ((), ("graph", "update", "resume", "goto")),
    Document: (("page_content", "metadata"), ("id",)),
    Outcome: (("answered",), ("result", "asks")),
    Overwrite: (("value",), ()),
    RemoveMessage: (("id",), ()),
    Send: (("node", "arg"), ()),
}
_MESSAGES = (AIMessage, ChatMessage, FunctionMessage, HumanMessage, SystemMessage, ToolMessage)
_CLASSES: dict[str, type] = {kind.__name__: kind for kind in (*_FIELDS, *_MESSAGES)}


class Values(FrameworkValues):
    """The result of one call. `call` is the call's id, which differs in the next live call."""

    tag = "langchain"

    def __init__(self, call: str | None = None) -> None:
        self._call = call

    def fields(self, value: object) -> dict[str, Any] | None:
        kind = type(value)
        if _CLASSES.get(kind.__name__) is not kind:
            return None
        fields = _fields(value)
        if kind is ToolMessage and fields[_CALL] == self._call:
            del fields[_CALL]
        return fields

    def built(self, name: str, fields: dict[str, Any]) -> object:
        kind = _CLASSES[name]
        if kind is ToolMessage:
            fields.setdefault(_CALL, self._call)
        return kind(**fields)


def _fields(value: object) -> dict[str, object]:
    """Return the fields of an object that differ from their defaults, and the required ones."""
    if (names := _FIELDS.get(type(value))) is not None:
        always, sometimes = names
        stated = {name: getattr(value, name) for name in sometimes}
        stated = {name: field for name, field in stated.items() if not _is(field, None, ())}
        return {**{name: getattr(value, name) for name in always}, **stated}
    assert isinstance(value, BaseMessage)
    fields = {name: getattr(value, name) for name in type(value).model_fields if name != "type"}
    stated = {
        name: field for name, field in fields.items() if not _is(field, _default(value, name))
    }
    return {**stated, **(value.model_extra or {})}


def _default(message: BaseMessage, name: str) -> object:
    """Return the default of a field; `...` if it has none."""
    declared = type(message).model_fields[name]
    return ... if declared.is_required() else declared.get_default(call_default_factory=True)


def _is(field: object, *defaults: object) -> bool:
    """Return whether a field has one of its defaults. Compares types first: `==` may raise."""
    return any(type(field) is type(default) and field == default for default in defaults)
