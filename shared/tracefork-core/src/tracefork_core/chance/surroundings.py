"""Record what the agent's own code reads of its environment, and compare it at replay.

That is environment variables, the working directory, the host name, the locale, and the timezone
if the clock is read. A replay does not restore any of it: it reports what differs.

Only reads by the user's own code count. Libraries read dozens of variables that do not matter, and
a copy of the whole environment (for a child process) says nothing about any single one.

Two kinds of variables also count if a library reads them. One is the base URL of an SDK: it decides
which server is asked. Names end in `_BASE_URL`, `_API_BASE`, `_ENDPOINT`, `_ENDPOINT_URL` or
`_HOST`; those of tracing tools do not count.

Secrets are the other, because an SDK reads its key itself and refuses to start without one. The
tape holds the name of each secret that was set, even if only a library read it. If the variable is
missing at replay, the read returns a placeholder.
"""

from __future__ import annotations

import locale
import os
import platform
import re
import socket
import sys
import threading
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager, suppress
from functools import wraps
from hashlib import sha256
from types import FrameType
from typing import Any
from urllib.parse import urlsplit, urlunsplit

from tracefork_core.chance.draws import PerSession, observers
from tracefork_core.exchange.caller import behind_made, is_users, place
from tracefork_core.masking.names import is_secret_name, secret_values
from tracefork_core.masking.redactor import placeholder
from tracefork_core.patching.patch import Patches, Shared
from tracefork_core.tape.digest import spelled_text
from tracefork_core.tape.environment import timezone
from tracefork_core.tape.surroundings import SURROUNDINGS, Seen, Surroundings
from tracefork_core.tape.writer import TapeWriter

VARIABLE, FOLDER, HOST, LOCALE, TIMEZONE = "variable", "folder", "host", "locale", "timezone"
_CALLED = {
    FOLDER: "the working directory",
    HOST: "the host name",
    LOCALE: "the locale",
    TIMEZONE: "the timezone",
}
_OURS = frozenset({"PYTHONPATH", "PYTHONHASHSEED"})
_OUR_PREFIX = "TRACEFORK_"
"""Prefix of the variables that a session sets itself."""
_LONGEST = 200
_BASE_URL = re.compile(
    r"(?!OTEL_|LANGSMITH_|LANGCHAIN_|LANGFUSE_).*_(BASE_URL|API_BASE|ENDPOINT|ENDPOINT_URL|HOST)"
)


class Lookout:
    """Records, or compares, the first read of each thing by the agent of one session.

    Args:
        session: the session of the agent.
        mask: returns a text with the session's secrets masked.
        secret: names of variables that are secret, besides those that look secret.
        keeps_values: whether values are recorded, or only names.
        recorded: what the tape holds; None while recording.
    """

    def __init__(
        self,
        session: object,
        mask: Callable[[str], str],
        *,
        secret: Collection[str] = (),
        keeps_values: bool = True,
        recorded: Iterable[Seen] | None = None,
    ) -> None:
        self.session = session
        self.differences: list[str] = []
        self._mask = mask
        self._secret = frozenset(secret)
        self._keeps_values = keeps_values
        self._recorded = {(seen.kind, seen.name): seen for seen in recorded or ()}
        self._writes = recorded is None
        self._met: set[tuple[str, str]] = set()
        self._fresh: list[Seen] = []
        # Re-entrant: a finalizer that runs in the middle of this may read the environment, too.
        self._lock = threading.RLock()

    def has_met(self, kind: str, name: str) -> bool:
        """Return whether this was read before; only the first read counts."""
        return (kind, name) in self._met

    def look(self, kind: str, name: str, value: str | None, frame: FrameType | None) -> None:
        """Record or compare one read, unless the same was read before."""
        key = (kind, name)
        if key in self._met or name in _OURS or name.startswith(_OUR_PREFIX):
            return
        with self._lock:
            if key in self._met:
                return
            self._met.add(key)
            if kind == VARIABLE and value is not None and is_base_url(name):
                value = _without_credentials(value)
            withheld = not self._keeps_values or (value is not None and self.is_secret(name, value))
            site = place(frame) if frame else None
            seen = Seen(kind, name, None if withheld else value, site, withheld)
            if self._writes:
                self._fresh.append(seen)
            elif then := self._recorded.get(key):
                self._compare(then, seen)

    def is_secret(self, name: str, value: str) -> bool:
        """Return whether the value of a variable stays off the tape."""
        return name in self._secret or is_secret_name(name) or bool(secret_values(name, value))

    def has_placeholder(self, name: str) -> bool:
        """Return whether a missing variable was a secret with a value when this was recorded."""
        seen = self._recorded.get((VARIABLE, name))
        return seen is not None and seen.withheld

    def drop_placeholder(self, name: str) -> None:
        """Let a variable be missing from now on: the agent has deleted it."""
        self._recorded.pop((VARIABLE, name), None)

    def flush(self, sink: TapeWriter) -> None:
        """Write the reads since the last flush to the tape, ahead of what depends on them."""
        if self._fresh:
            with self._lock:
                fresh, self._fresh = self._fresh, []
            sink.note(SURROUNDINGS, aside=Surroundings([self._as_kept(seen) for seen in fresh]))

    def _as_kept(self, seen: Seen) -> Seen:
        value = None if seen.value is None else spelled_text(_shortened(self._mask(seen.value)))
        site = seen.site and spelled_text(self._mask(seen.site))
        return Seen(seen.kind, seen.name, value, site, seen.withheld)

    def _compare(self, then: Seen, now: Seen) -> None:
        if then.withheld or now.withheld:
            return
        now = self._as_kept(now)
        if then.value != now.value:
            self.differences.append(_difference(then, now))


def is_base_url(name: str) -> bool:
    """Return whether the name of a variable says that it holds the address of a server."""
    return _BASE_URL.fullmatch(name) is not None


def _without_credentials(url: str) -> str:
    """Return a URL without user, password, query and fragment; other text stays as it is."""
    try:
        scheme, host, path, _, _ = urlsplit(url)
    except ValueError:
        return url
    return urlunsplit((scheme, host.rpartition("@")[2], path, "", "")) if host else url


def _shortened(text: str) -> str:
    """Return a text as it is stored: a long one as its beginning, its length and a digest."""
    if len(text) <= _LONGEST:
        return text
    digest = sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:12]
    return f"{text[: _LONGEST // 2]}… ({len(text)} characters, {digest})"


def _difference(then: Seen, now: Seen) -> str:
    what = _CALLED.get(then.kind, then.name)
    was = "was not set" if then.value is None else f"was {then.value!r}"
    is_now = "is not set" if now.value is None else f"is {now.value!r}"
    where = f" ({now.site})" if now.site else ""
    return f"{what} {was} when this was recorded and {is_now} now{where}"


_THROUGH = frozenset("os collections _collections_abc pathlib platform socket".split())
"""Modules that read on behalf of their caller, by the first part of their names."""
_PATHS = frozenset({"ntpath", "posixpath"})
"""`os.path` reads the folder on behalf of its caller; variables it reads for itself."""
lookouts: PerSession[Lookout] = PerSession()
_lock = threading.Lock()


class _Iterated(threading.local):
    """Names that this thread got by iterating over the environment: it reads all of them."""

    def __init__(self) -> None:
        self.names: dict[object, object] = {}


_iterated = _Iterated()


@contextmanager
def on_the_lookout(lookout: Lookout) -> Iterator[None]:
    """Report to `lookout` what its session's agent reads of its environment."""
    _patches.on()
    lookouts.add(lookout)
    try:
        yield
    finally:
        lookouts.remove(lookout)
        _patches.off()


@contextmanager
def timezone_seen(lookout: Lookout, recorded_at: float) -> Iterator[None]:
    """Report the timezone to `lookout` when the agent's own code first reads the clock."""

    def observe(source: str, value: object, frame: FrameType | None) -> None:
        if source != "clock" or (frame := behind_made(frame)) is None or not is_users(frame):
            return
        if lookouts.here() is lookout:
            stop()
            lookout.look(TIMEZONE, "", timezone(recorded_at), frame)

    def stop() -> None:
        with _lock:
            if observe in observers:
                observers.remove(observe)

    observers.append(observe)
    try:
        yield
    finally:
        stop()


def _report(kind: str, name: str, value: str | None) -> None:
    lookout = lookouts.here()
    if lookout is None or lookout.has_met(kind, name):
        return  # Looking at frames is expensive: it raises an audit event that a guard handles.
    frame: FrameType | None = sys._getframe(2)
    through = _THROUGH | _PATHS if kind == FOLDER else _THROUGH
    while frame is not None and _package(frame) in through:
        frame = frame.f_back
    frame = behind_made(frame)
    if frame is not None and is_users(frame):
        lookout.look(kind, name, value, frame)
    elif kind == VARIABLE and (
        is_base_url(name) or (value is not None and lookout.is_secret(name, value))
    ):
        lookout.look(kind, name, value, None)


def _package(frame: FrameType) -> str:
    name: str = frame.f_globals.get("__name__", "?")
    return name.partition(".")[0]


_standing_in: list[Callable[[str], bool]] = []


@contextmanager
def standing_in(has: Callable[[str], bool]) -> Iterator[None]:
    """Answer reads of missing variables with a placeholder where `has` says so, in any code."""
    _patches.on()
    _standing_in.append(has)
    try:
        yield
    finally:
        _standing_in.remove(has)
        _patches.off()


_noting: list[set[str]] = []


@contextmanager
def noting_secrets(names: set[str]) -> Iterator[None]:
    """Add to `names` each variable with a secret name that any code reads, outside sessions too."""
    _patches.on()
    _noting.append(names)
    try:
        yield
    finally:
        _noting.pop()
        _patches.off()


def _placeholder(name: str, key: object) -> str | bytes:
    text = placeholder(name)
    return os.fsencode(text) if isinstance(key, bytes) else text


def _watched_getitem(original: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(original)
    def getitem(self: Any, key: Any) -> Any:
        try:
            value = original(self, key)
        except KeyError:
            name = os.fsdecode(key)
            if (lookout := lookouts.here()) and lookout.has_placeholder(name):
                return _placeholder(name, key)
            if not name.startswith(_OUR_PREFIX) and any(has(name) for has in _standing_in):
                return _placeholder(name, key)
            _report(VARIABLE, name, None)
            raise
        if _iterated.names.get(key) is not key:
            if _noting and is_secret_name(os.fsdecode(key)):
                _noting[-1].add(os.fsdecode(key))
            _report(VARIABLE, os.fsdecode(key), os.fsdecode(value))
        return value

    return getitem


def _watched_delitem(original: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(original)
    def delitem(self: Any, key: Any) -> None:
        name = os.fsdecode(key)
        lookout = lookouts.here()
        if lookout is None or not lookout.has_placeholder(name):
            original(self, key)
            return
        lookout.drop_placeholder(name)
        with suppress(KeyError):
            original(self, key)

    return delitem


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
            _report(kind, "", _spelled(value))
            return value

        return read

    return watch


def _spelled(value: object) -> str:
    """Return a value as text; a locale is a pair of a language and an encoding."""
    parts = value if isinstance(value, tuple) else (value,)
    return ".".join("—" if part is None else str(part) for part in parts)


_Plain: Any = type(os.environ)


class _Watched(_Plain):  # type: ignore[misc]
    """The class of `os.environ` while a session is open.

    To replace methods of the original class does not work: after a thousand changes of a class,
    Python 3.13 no longer notices a new `__getitem__`, and a test suite has hundreds of sessions.
    """

    __getitem__ = _watched_getitem(_Plain.__getitem__)
    __delitem__ = _watched_delitem(_Plain.__delitem__)
    __iter__ = _watched_iter(_Plain.__iter__)


_Watched.__name__, _Watched.__qualname__ = _Plain.__name__, _Plain.__qualname__
_environments: list[Any] = [os.environ, getattr(os, "environb", os.environ)]


def _put_in(patches: Patches) -> None:
    for environment in _environments:
        patches.change_class(environment, _Watched)
    patches.wrap(os, "getcwd", _watched(FOLDER))
    patches.wrap(socket, "gethostname", _watched(HOST))
    patches.wrap(platform, "node", _watched(HOST))
    patches.wrap(locale, "getlocale", _watched(LOCALE))
    patches.switch(_iterated.names.clear, _iterated.names.clear)


_patches = Shared(_put_in)
