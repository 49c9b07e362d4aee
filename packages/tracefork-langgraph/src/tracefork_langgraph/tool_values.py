"""What tools return, as data: LangChain's and LangGraph's classes by their fields, and back.

    {"langchain": "ToolMessage", "content": "sunny", "status": "error"}
    {"langchain": "Command", "goto": "refunds", "update": {"order": 17}}
    {"langchain": "dict", "pairs": [["langchain", "a dictionary that would look like one of them"]]}

The classes are those of a fixed table, and are looked up in it by the name on the tape. What is
none of them stays as it is: core holds plain values, and refuses others by name.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

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

from tracefork_core import ReplayError

_TAG = "langchain"
_DICT = "dict"
_CALL = "tool_call_id"


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of a tool that asked a person.

    Args:
        answered: how many of its interrupts had their answers.
        result: what it returned.
        asks: the value and the response schema of the interrupt that it ended with, if it did.
    """

    answered: int
    result: object = None
    asks: tuple[object, object] | None = None


# Of each class the fields that it always has, and those that are left out where they are empty.
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


class Values:
    """The results of one call. `call` is its id, which is another one at the next live call."""

    def __init__(self, call: str | None = None) -> None:
        self._call = call

    def told(self, value: object) -> object:
        """Return `value` without the framework's classes; what is not theirs stays as it is."""
        kind = type(value)
        if _CLASSES.get(kind.__name__) is kind:
            told = {name: self.told(field) for name, field in _fields(value).items()}
            if kind is ToolMessage and told[_CALL] == self._call:
                del told[_CALL]
            return {_TAG: kind.__name__, **told}
        if kind is dict and isinstance(value, dict):
            if _TAG in value:
                return {_TAG: _DICT, "pairs": [self.told([*pair]) for pair in value.items()]}
            return {name: self.told(item) for name, item in value.items()}
        return _each(value, self.told)

    def meant(self, value: object) -> object:
        """Return what `told` was given.

        Raises:
            ReplayError: it is nothing that `told` returns.
        """
        if type(value) is dict:
            fields = {name: self.meant(item) for name, item in value.items()}
            return self._built(fields) if _TAG in fields else fields
        return _each(value, self.meant)

    def _built(self, fields: dict[str, object]) -> object:
        name = fields.pop(_TAG)
        kind = _CLASSES.get(name) if isinstance(name, str) else None
        try:
            if name == _DICT:
                return dict(fields["pairs"])  # type: ignore[call-overload]
            if kind is None:
                raise TypeError("no tool returns one")
            if kind is ToolMessage:
                fields.setdefault(_CALL, self._call)
            return kind(**fields)
        except (KeyError, TypeError, ValueError) as error:
            raise ReplayError(
                f"tracefork: what the tape holds of a tool is no {name!r:.60}: {error}"
            ) from error


def _each(value: object, change: Callable[[object], object]) -> object:
    """Return a list or a tuple with all in it changed; what is neither stays as it is."""
    if type(value) is list:
        return [change(item) for item in value]
    if type(value) is tuple:
        return tuple(change(item) for item in value)
    return value


def _fields(value: object) -> dict[str, object]:
    """Return the fields of an object that say something."""
    if (names := _FIELDS.get(type(value))) is not None:
        always, sometimes = names
        said = {name: getattr(value, name) for name in sometimes}
        said = {name: field for name, field in said.items() if not _is(field, None, ())}
        return {**{name: getattr(value, name) for name in always}, **said}
    assert isinstance(value, BaseMessage)
    fields = {name: getattr(value, name) for name in type(value).model_fields if name != "type"}
    said = {name: field for name, field in fields.items() if not _is(field, _default(value, name))}
    return {**said, **(value.model_extra or {})}


def _default(message: BaseMessage, name: str) -> object:
    """Return the default of a field; `...` where there is none."""
    declared = type(message).model_fields[name]
    return ... if declared.is_required() else declared.get_default(call_default_factory=True)


def _is(field: object, *defaults: object) -> bool:
    """Return whether a field is one of its defaults; not all objects can be asked by `==`."""
    return any(type(field) is type(default) and field == default for default in defaults)
