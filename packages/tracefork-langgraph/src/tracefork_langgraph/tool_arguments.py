"""The request of a tool call, as it is compared: the model's arguments, state and context.

LangGraph injects more arguments into tools. State and context influence the result, so they are
compared, without the ids of messages and with only the class of a value that has no JSON. The
store, the stream writer, callbacks and the configuration belong to the framework and are left out.
The id of the call is left out too: for some models LangChain makes it up.
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
    """The arguments of one call. Models give the arguments `names`; `ids` receive the call's id.

    Attributes:
        told: the arguments that are compared.
        call: the id of the call, if the tool receives it.
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
        """Return the arguments to call the tool with, including those that a fork has changed."""
        values = {name: told[name] for name in self._names if name in told}
        args = [values.pop(name) for name in self._args if name in values]
        handed = {name: value for name, value in self._kwargs.items() if name not in self._names}
        return args, {**handed, **values}


def told_by_models(tool: BaseTool) -> tuple[str, ...]:
    """Return the names of the arguments that a model gives to a tool."""
    schema = None if tool.args_schema is None else tool.tool_call_schema
    if isinstance(schema, dict):
        return tuple(schema.get("properties", ()))
    # Avoid the JSON schema where possible: some classes have none.
    return tuple(getattr(schema, "model_fields", None) or ()) or tuple(tool.args)


def call_ids(tool: BaseTool) -> frozenset[str]:
    """Return the names of the arguments that receive the id of the call."""
    return frozenset({*arguments_of(tool, InjectedToolCallId), "tool_call_id"})


def _is_machinery(value: object) -> bool:
    if isinstance(value, dict):
        return value.keys() >= _OF_A_CONFIG
    return isinstance(value, _MACHINERY)


def plain(value: object) -> object:
    """Return a value as comparable data; a part that has no such form becomes its class name."""
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
        return {
            field.name: plain(getattr(value, field.name)) for field in dataclasses.fields(value)
        }
    return f"a {type(value).__module__}.{type(value).__qualname__}"


def _message(message: BaseMessage) -> dict[str, object]:
    compared: dict[str, object] = {"type": message.type, "content": plain(message.content)}
    if isinstance(message, AIMessage):
        asked = [{"name": call["name"], "args": plain(call["args"])} for call in message.tool_calls]
        compared["tool_calls"] = asked
    if isinstance(message, ToolMessage):
        compared["status"] = message.status
    return compared
