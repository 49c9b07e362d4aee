"""Where programs read their surroundings: each way is watched while somebody is on the lookout.

Only what the user's own code asks for counts. A library reads dozens of variables nobody cares for,
and a copy of the whole environment (for a child process) is not a question about any of it.
"""

from __future__ import annotations

import locale
import os
import platform
import socket
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from types import FrameType
from typing import Any

from tracefork_core.chance import observers
from tracefork_core.chance.owner import Open
from tracefork_core.chance.surroundings.noted import (
    FOLDER,
    HOST,
    LOCALE,
    TIMEZONE,
    VARIABLE,
    Lookout,
)
from tracefork_core.exchange.caller import behind_made, is_users
from tracefork_core.tape.environment import timezone

_THROUGH = frozenset("os collections _collections_abc pathlib platform socket".split())
"""Modules that read for whoever calls them, by the first part of their names."""
_PATHS = frozenset({"ntpath", "posixpath"})
"""`os.path`, which reads the folder for whoever calls it; variables it reads for what they hold."""
lookouts: Open[Lookout] = Open()
_lock = threading.Lock()


class _Iterated(threading.local):
    """Names that came out of iterating the environment here: who reads these reads all of it."""

    def __init__(self) -> None:
        self.names: dict[object, object] = {}


_iterated = _Iterated()


@contextmanager
def on_the_lookout(lookout: Lookout) -> Iterator[None]:
    """Let `lookout` see what its session's agent reads of its surroundings."""
    with _lock:
        if not _patched:
            _patch()
        lookouts.all.append(lookout)
    try:
        yield
    finally:
        with _lock:
            lookouts.all.remove(lookout)
            if not lookouts.all:
                _unpatch()


@contextmanager
def timezone_seen(lookout: Lookout, recorded_at: float) -> Iterator[None]:
    """Let `lookout` see the timezone when the agent's own code first reads the clock."""

    def observe(source: str, value: object, frame: FrameType | None) -> None:
        if source != "clock" or (frame := behind_made(frame)) is None or not is_users(frame):
            return
        if lookouts.here() is lookout:
            stop()
            lookout.look(TIMEZONE, "", timezone(recorded_at), frame)

    def stop() -> None:
        with _lock:
            if observe in observers.observers:
                observers.observers.remove(observe)

    observers.observers.append(observe)
    try:
        yield
    finally:
        stop()


def _saw(kind: str, name: str, value: str | None) -> None:
    lookout = lookouts.here()
    if lookout is None or lookout.has_met(kind, name):
        return  # To look at a frame is dear: it is audited, and a guard listens.
    frame: FrameType | None = sys._getframe(2)
    through = _THROUGH | _PATHS if kind == FOLDER else _THROUGH
    while frame is not None and _package(frame) in through:
        frame = frame.f_back
    frame = behind_made(frame)
    if frame is not None and is_users(frame):
        lookout.look(kind, name, value, frame)


def _package(frame: FrameType) -> str:
    name: str = frame.f_globals.get("__name__", "?")
    return name.partition(".")[0]


def _watched_getitem(original: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(original)
    def getitem(self: Any, key: Any) -> Any:
        try:
            value = original(self, key)
        except KeyError:
            _saw(VARIABLE, os.fsdecode(key), None)
            raise
        if _iterated.names.get(key) is not key:
            _saw(VARIABLE, os.fsdecode(key), os.fsdecode(value))
        return value

    return getitem


def _watched_iter(original: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(original)
    def iterate(self: Any) -> Iterator[Any]:
        names = _iterated.names
        for key in original(self):
            names[key] = key
            yield key

    return iterate


def _watched(kind: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    def watch(original: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(original)
        def read(*args: Any, **kwargs: Any) -> Any:
            value = original(*args, **kwargs)
            _saw(kind, "", _spelled(value))
            return value

        return read

    return watch


def _spelled(value: object) -> str:
    """Return a value as text; a locale is a pair of a language and an encoding."""
    parts = value if isinstance(value, tuple) else (value,)
    return ".".join("—" if part is None else str(part) for part in parts)


_Plain: Any = type(os.environ)


class _Watched(_Plain):  # type: ignore[misc]
    """The class of `os.environ` meanwhile.

    Not its own with other methods: Python 3.13 stops noticing that `__getitem__` was replaced after
    a thousand changes of a class, and a test suite has hundreds of sessions.
    """

    __getitem__ = _watched_getitem(_Plain.__getitem__)
    __iter__ = _watched_iter(_Plain.__iter__)


_Watched.__name__, _Watched.__qualname__ = _Plain.__name__, _Plain.__qualname__
_environments: list[Any] = [os.environ, getattr(os, "environb", os.environ)]
_WAYS: tuple[tuple[Any, str, Callable[[Callable[..., Any]], Callable[..., Any]]], ...] = (
    (os, "getcwd", _watched(FOLDER)),
    (socket, "gethostname", _watched(HOST)),
    (platform, "node", _watched(HOST)),
    (locale, "getlocale", _watched(LOCALE)),
)
_patched: list[tuple[Any, str, Callable[..., Any], Callable[..., Any]]] = []


def _patch() -> None:
    for environment in _environments:
        environment.__class__ = _Watched
    for owner, name, watch in _WAYS:
        original = getattr(owner, name)
        watching = watch(original)
        setattr(owner, name, watching)
        _patched.append((owner, name, original, watching))


def _unpatch() -> None:
    """Put everything back, but what somebody has replaced since."""
    for environment in _environments:
        environment.__class__ = _Plain
    while _patched:
        owner, name, original, watching = _patched.pop()
        if getattr(owner, name) is watching:
            setattr(owner, name, original)
    _iterated.names.clear()
