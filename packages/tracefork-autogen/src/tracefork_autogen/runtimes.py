"""Make steps of the messages of autogen-core and of the agents that handle them.

A message that is sent lasts until its response, and is in the step of its sender, which waits for
it. A message that is published lasts until all its subscribers have handled it. Its sender does not
wait, and the subscribers may publish in turn; so it is in the step in which the conversation began,
and comes after its sender. Else two agents that talk would have steps as deep as their talk is
long.

The runtime handles a message in a task of its own, which has the context of the code that started
the runtime. What the message comes from is handed over by its id. So a session sees what is sent in
it, also where the runtime of a service was started before it.

A runtime logs the error of a handler of a published message, and continues. If that error is a
divergence, the program may wait for what will never come; so the task that it waits in is
cancelled, and the session raises its error. That error is not logged: its traceback through AutoGen
hides what differs, and a blame ends many forks by such an error.

Messages between the parts of a team are no steps: `teams` says what is.
"""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from functools import wraps
from typing import Any
from uuid import uuid4

from autogen_core import AgentId, BaseAgent, SingleThreadedAgentRuntime, TopicId

from tracefork_autogen.causes import (
    Root,
    agent_step,
    cause,
    causes_here,
    enter_session_of,
    lane_around,
    root,
    sent_from,
)
from tracefork_autogen.clients import ATTACHED
from tracefork_core import TraceforkError
from tracefork_core.adapters import (
    Patches,
    begin_step,
    check_session,
    current_step,
    end_step,
    is_recorded_here,
    lane_here,
    step,
)

_LOGGER = "autogen_core"
_ID = re.compile(r"[_-]?[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}")


Turn = tuple[str, Sequence[Any]]
"""The name of an agent, and the messages that it reads."""


@dataclass(frozen=True, slots=True)
class Inside:
    """What is inside of a team: the class of its parts, and the module of their messages.

    `manages` returns the turn of a part that is an agent when it handles a message.
    """

    part: type
    module: str
    manages: Callable[[Any, Any], Turn | None]


inside: list[Inside] = []
"""Put in by `teams` where autogen-agentchat is imported."""


@dataclass(frozen=True, slots=True)
class _Sent:
    """What a message comes from.

    Attributes:
        step: the step in which it is handled.
        root: the conversation.
        cause: the step that led to it, if that is not around `step` and before it.
        is_published: whether its step ends when it was handled.
    """

    step: str | None
    root: Root
    cause: str | None
    is_published: bool = False


_sent: dict[str, _Sent] = {}
"""What was sent and not handled yet, by the ids of messages."""


def put_in(patches: Patches) -> None:
    """Put messages and the agents that handle them on the tape of the open session, as steps."""
    patches.wrap(SingleThreadedAgentRuntime, "send_message", _as_sent)
    patches.wrap(SingleThreadedAgentRuntime, "publish_message", _as_published)
    for name in ("_process_send", "_process_publish"):
        patches.wrap(SingleThreadedAgentRuntime, name, _as_handled)
    patches.wrap(BaseAgent, "on_message", _as_agent)
    patches.at_undo(_sent.clear)
    logger = logging.getLogger(_LOGGER)
    patches.switch(lambda: logger.addFilter(_is_logged), lambda: logger.removeFilter(_is_logged))


def _is_logged(record: logging.LogRecord) -> bool:
    """Return False for errors that follow from the session's own."""
    return record.exc_info is None or _error_here() is None


def _error_here() -> TraceforkError | None:
    try:
        check_session()
    except TraceforkError as error:
        return error
    return None


def _as_sent(send_message: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
    @wraps(send_message)
    async def sent(self: Any, message: Any, recipient: Any, **options: Any) -> Any:
        if not is_recorded_here():
            return await send_message(self, message, recipient, **options)
        options["message_id"] = options.get("message_id") or str(uuid4())
        handed_over = options["message_id"]
        try:
            if _is_inside(message):
                _sent[handed_over] = _of_team()
                return await send_message(self, message, recipient, **options)
            here = _root_here()
            with step("message", type(message).__name__, detail=_ends(recipient, options)):
                _sent[handed_over] = _Sent(current_step.get(), here, None)
                return await send_message(self, message, recipient, **options)
        except Exception:
            check_session()
            raise
        finally:
            _sent.pop(handed_over, None)

    return sent


def _as_published(publish_message: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
    @wraps(publish_message)
    async def published(self: Any, message: Any, topic_id: Any, **options: Any) -> Any:
        if not is_recorded_here():
            return await publish_message(self, message, topic_id, **options)
        check_session()
        options["message_id"] = options.get("message_id") or str(uuid4())
        if _is_inside(message):
            _sent[options["message_id"]] = _of_team()
        else:
            _sent[options["message_id"]] = _begun(message, topic_id, options)
        return await publish_message(self, message, topic_id, **options)

    return published


def _begun(message: Any, topic_id: Any, options: dict[str, Any]) -> _Sent:
    here = _root_here()
    sender = sent_from()
    after = () if sender is None else (sender,)
    begun = begin_step(
        "message",
        type(message).__name__,
        parent=here.step,
        after=after,
        detail=_ends(topic_id, options),
    )
    causes_here().led(after, begun)
    return _Sent(begun, here, None, is_published=True)


def _root_here() -> Root:
    return root.get() or Root(current_step.get(), lane_here(), task=asyncio.current_task())


def _of_team() -> _Sent:
    here = _root_here()
    return _Sent(here.step, here, sent_from())


def _is_inside(message: Any) -> bool:
    return any(type(message).__module__ == one.module for one in inside)


def _ends(to: AgentId | TopicId, options: dict[str, Any]) -> dict[str, object]:
    """Return where a message comes from and where it goes, for a step."""
    sender = options.get("sender")
    target = name_of(to) if isinstance(to, AgentId) else f"topic {_ID.sub('', to.type)}"
    return {"to": target} if sender is None else {"from": name_of(sender), "to": target}


def _as_handled(process: Callable[..., Awaitable[None]]) -> Callable[..., Awaitable[None]]:
    """Give the task of a message the context of its sender: nothing else runs in that task."""

    @wraps(process)
    async def handled(self: Any, envelope: Any) -> None:
        sent = _sent.pop(envelope.message_id, None)
        if sent is not None:
            enter_session_of(sent.root.lane, type(envelope.message).__name__)
        if sent is None or not is_recorded_here():
            await process(self, envelope)
            return
        current_step.set(sent.step)
        root.set(sent.root)
        lane_around.set(sent.root.lane)
        cause.set(sent.cause)
        ATTACHED.works_here.set(sent.root.is_attached)
        try:
            await process(self, envelope)
        except ValueError:  # A team that failed has shut down its queue, which counts its messages.
            if _error_here() is None:
                raise
        finally:
            if sent.is_published:
                end_step(sent.step)
                _end_if_failed(sent.root)

    return handled


def _end_if_failed(here: Root) -> None:
    error = _error_here()
    if error is not None and here.task is not None:
        here.task.cancel(str(error))


def _as_agent(on_message: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
    @wraps(on_message)
    async def handled(self: Any, message: Any, ctx: Any) -> Any:
        turn = _turn_of(self, message) if is_recorded_here() else None
        if turn is None:
            return await on_message(self, message, ctx)
        with agent_step(*turn):
            return await on_message(self, message, ctx)

    return handled


def _turn_of(agent: Any, message: Any) -> Turn | None:
    """Return the name of an agent that handles a message; None for most parts of teams."""
    for one in inside:
        if isinstance(agent, one.part):
            return one.manages(agent, message)
    return name_of(agent.id), ()


def name_of(agent: AgentId) -> str:
    """Return the name of an agent in every run: with its key, but without ids."""
    key = _ID.sub("", agent.key)
    kind = _ID.sub("", agent.type)
    return kind if key in ("", "default") else f"{kind}/{key}"
