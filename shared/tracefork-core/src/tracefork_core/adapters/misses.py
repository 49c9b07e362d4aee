"""Raise a session's error where a framework would hide it, in a class that the framework lets pass.

A divergence is raised where a request is made. On its way up an SDK turns it into an error of its
own, and a framework retries that, tells the model that a tool failed, or continues without. So an
adapter asks for the session's first error where the framework handles errors, and raises it again.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from tracefork_core.errors import TraceforkError
from tracefork_core.exchange.current import current_session

E = TypeVar("E", bound=TraceforkError)
T = TypeVar("T")


def check_session(also: type[BaseException] | None = None, **attributes: object) -> None:
    """Raise the first error of this session, if there was one.

    Call it where the framework handles the errors of models and tools. An SDK turns a divergence
    into an exception of its own, which frameworks retry or work around.

    Args:
        also: a class of exceptions that the framework neither retries nor swallows, if it has one.
            The error is then an instance of it, too: see `also_a`.
        attributes: what the framework reads from exceptions of that class.

    Raises:
        TraceforkError: a copy of the session's first error.
    """
    session = current_session()
    if session is None:
        return
    try:
        session.check()
    except TraceforkError as error:
        if also is None:
            raise
        raise also_a(error, also, **attributes) from None


@contextmanager
def session_checked() -> Iterator[None]:
    """Raise the session's error in place of another that the block raises, or at its end."""
    try:
        yield
    except Exception:
        check_session()
        raise
    check_session()


async def checked_events(events: AsyncIterable[T]) -> AsyncGenerator[T, None]:
    """Yield events; raise the session's error in place of an event, an error, or at the end."""
    try:
        with session_checked():
            async for event in events:
                check_session()
                yield event
    finally:
        if isinstance(events, AsyncGenerator):
            await events.aclose()


def also_a(error: E, kind: type[BaseException], **attributes: object) -> E:
    """Return a copy of an error that is also an instance of another class of exceptions.

    `kind.__init__` is not called: give what it would set as `attributes`.
    """
    own = type(error)
    made: Any = type(own.__name__, (kind, own), {"__module__": own.__module__})
    copy: E = made.__new__(made, str(error))
    vars(copy).update(vars(error), **attributes)
    return copy
