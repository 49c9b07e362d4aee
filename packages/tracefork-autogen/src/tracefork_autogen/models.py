"""Make steps of model calls, whichever class of client makes them.

A client that wraps another, such as a cache, makes no step: the client inside does, when it is
asked.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextvars import ContextVar
from functools import partial, wraps
from typing import Any

from autogen_core.models import ChatCompletionClient

from tracefork_autogen.clients import bind_client
from tracefork_core.adapters import (
    Patches,
    RunningStep,
    check_session,
    checked_events,
    events_in,
    is_recorded_here,
    replace_in_classes,
    session_checked,
    step,
)

_asking: ContextVar[object] = ContextVar("tracefork_autogen_asking", default=None)
"""The client that is asking: its class may ask the class that it derives from."""


def put_in(patches: Patches) -> None:
    """Put model calls on the tape of the open session, as steps."""
    names = ["create", "create_stream"]
    replace_in_classes(patches, ChatCompletionClient, names, partial(_instead, patches))


def _instead(patches: Patches, _owner: type, name: str, original: Any) -> Any:
    return (_as_stream if name == "create_stream" else _as_call)(patches, original)


def _as_call(patches: Patches, create: Callable[..., Any]) -> Callable[..., Awaitable[Any]]:
    @wraps(create)
    async def created(self: Any, *args: Any, **options: Any) -> Any:
        if _passes_by(self):
            return await create(self, *args, **options)
        _prepare(patches, self)
        with session_checked(), step("model", _model_of(self), {_asking: self}):
            return await create(self, *args, **options)

    return created


def _as_stream(patches: Patches, create_stream: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(create_stream)
    def created(self: Any, *args: Any, **options: Any) -> Any:
        chunks = create_stream(self, *args, **options)
        if _passes_by(self):
            return chunks
        _prepare(patches, self)
        begin = partial(RunningStep.begin, "model", _model_of(self), {_asking: self})
        return checked_events(events_in(begin, chunks))

    return created


def _prepare(patches: Patches, client: Any) -> None:
    check_session()
    bind_client(patches, client)


def _passes_by(client: Any) -> bool:
    inner = getattr(client, "client", None)
    return (
        not is_recorded_here() or _asking.get() is client or isinstance(inner, ChatCompletionClient)
    )


def _model_of(client: Any) -> str:
    """Return the name of a client's model, or that of its class where it does not tell."""
    for held in ("_create_args", "_raw_config"):
        told = getattr(client, held, None)
        if isinstance(told, dict) and told.get("model"):
            return str(told["model"])
    return type(client).__name__
