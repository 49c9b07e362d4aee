"""What a call of a tool is compared by: what the model said, and the state it is handed.

LangGraph hands tools things of its own. State and context decide what comes of a call, so they are
compared; without the ids that messages get, and without what has no JSON. The store, the writer of
a stream, callbacks and the configuration are the framework's, and are left out, as is the id of
the call: some models get theirs from LangChain.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum
from pathlib import Path
from uuid import UUID

from langchain_core.callbacks import BaseCallbackManager
from langchain_core.callbacks.manager import BaseRunManager
from langchain_core.messages import AIMessage, BaseMessage, ToolMessage
from langchain_core.tools import BaseTool, InjectedToolCallId
from langgraph.prebuilt import ToolRuntime
from langgraph.store.base import BaseStore

from tracefork_langgraph.tool_effects import arguments_of

_VALUES = (str, int, float, bytes, datetime, date, time, timedelta, Decimal, UUID, Path, Enum)
_OF_A_CONFIG = {"callbacks", "metadata", "tags"}
_MACHINERY = (BaseStore, BaseRunManager, BaseCallbackManager)


class Arguments:
    """The arguments of one call: `names` are those that models give, `ids` hand it its id.

    Attributes:
        told: what is compared.
        call: the id of the call, where the tool is told it.
    """

    def __init__(
        self,
        names: tuple[str, ...],
        ids: frozenset[str],
        args: tuple[object, ...],
        kwargs: dict[str, object],
    ) -> None:
        beyond = map(str, range(len(names), len(args)))
        self._args = dict(zip((*names, *beyond), args, strict=False))
        self._kwargs = kwargs
        self._names = dict.fromkeys((*names, *self._args))
        self.call: str | None = None
        self.told: dict[str, object] = dict(self._args)
        for name, value in kwargs.items():
            if name in self._names:
                self.told[name] = value
            elif isinstance(value, ToolRuntime):
                self.call = value.tool_call_id
                self.told[name] = {"context": plain(value.context), "state": plain(value.state)}
            elif name in ids and isinstance(value, str):
                self.call = value
            elif not _is_machinery(value):
                self.told[name] = plain(value)

    def given(self, told: Mapping[str, object]) -> tuple[list[object], dict[str, object]]:
        """Return the arguments of the call, of which a fork may have told it some otherwise."""
        said = {name: told[name] for name in self._names if name in told}
        args = [said.pop(name) for name in self._args if name in said]
        handed = {name: value for name, value in self._kwargs.items() if name not in self._names}
        return args, {**handed, **said}


def told_by_models(tool: BaseTool) -> tuple[str, ...]:
    """Return the names of the arguments that a model gives a tool."""
    schema = None if tool.args_schema is None else tool.tool_call_schema
    if isinstance(schema, dict):
        return tuple(schema.get("properties", ()))
    # Not by its JSON schema where there is another way: not all classes have one.
    return tuple(getattr(schema, "model_fields", None) or ()) or tuple(tool.args)


def call_ids(tool: BaseTool) -> frozenset[str]:
    """Return the arguments in which a tool is handed the id of its call."""
    return frozenset({*arguments_of(tool, InjectedToolCallId), "tool_call_id"})


def _is_machinery(value: object) -> bool:
    if isinstance(value, dict):
        return value.keys() >= _OF_A_CONFIG
    return isinstance(value, _MACHINERY)


def plain(value: object) -> object:
    """Return what can be compared of a value, and the class of what cannot."""
    match value:
        case _ if value is None or isinstance(value, _VALUES):
            return value
        case BaseMessage():
            return _message(value)
        case Mapping() if all(isinstance(name, str) for name in value):
            return {str(name): plain(item) for name, item in value.items()}
        case Mapping():
            return sorted(([plain(name), plain(item)] for name, item in value.items()), key=repr)
        case list() | tuple():
            return [plain(item) for item in value]
        case set() | frozenset():
            return sorted(map(plain, value), key=repr)
    if fields := getattr(type(value), "model_fields", None):
        return {name: plain(getattr(value, name)) for name in fields}
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {it.name: plain(getattr(value, it.name)) for it in dataclasses.fields(value)}
    return f"a {type(value).__module__}.{type(value).__qualname__}"


def _message(message: BaseMessage) -> dict[str, object]:
    told: dict[str, object] = {"type": message.type, "content": plain(message.content)}
    if isinstance(message, AIMessage):
        asked = [{"name": it["name"], "args": plain(it["args"])} for it in message.tool_calls]
        told["tool_calls"] = asked
    if isinstance(message, ToolMessage):
        told["status"] = message.status
    return told
