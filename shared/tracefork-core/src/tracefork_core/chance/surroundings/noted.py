"""What the agent's own code reads of its surroundings: noted in a recording, compared in a replay.

Variables of the environment, the working directory, the name of the machine, the locale; and the
timezone, wherever the clock is read. None of it is given back at replay: a difference is said.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Iterable
from hashlib import sha256
from types import FrameType

from tracefork_core.exchange.caller import place
from tracefork_core.masking.names import is_secret_name, secret_values
from tracefork_core.tape.digest import spelled_text
from tracefork_core.tape.event import SURROUNDINGS, Seen, Surroundings
from tracefork_core.tape.writer import TapeWriter

VARIABLE, FOLDER, HOST, LOCALE, TIMEZONE = "variable", "folder", "host", "locale", "timezone"
_CALLED = {
    FOLDER: "the working directory",
    HOST: "the name of the machine",
    LOCALE: "the locale",
    TIMEZONE: "the timezone",
}
_OURS = frozenset({"PYTHONPATH", "PYTHONHASHSEED"})
_OUR_PREFIX = "TRACEFORK_"
"""Variables that a session sets itself."""
_LONGEST = 200


class Lookout:
    """Sees what the agent of one session reads first of each thing around it.

    Args:
        session: whose agent is watched.
        mask: returns a text with the session's secrets masked.
        secret: names of variables that are secret besides those that look it.
        keeps_values: whether values are noted, or names alone.
        recorded: what the tape holds; None where one is being written.
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
        # Re-entrant: a finalizer that runs in the middle of this may look around as well.
        self._lock = threading.RLock()

    def has_met(self, kind: str, name: str) -> bool:
        """Return whether this was read before: only the first time counts."""
        return (kind, name) in self._met

    def look(self, kind: str, name: str, value: str | None, frame: FrameType | None) -> None:
        """Take in what was read; what was read before is known already."""
        key = (kind, name)
        if key in self._met or name in _OURS or name.startswith(_OUR_PREFIX):
            return
        with self._lock:
            if key in self._met:
                return
            self._met.add(key)
            withheld = not self._keeps_values or name in self._secret or _is_secret(name, value)
            site = place(frame) if frame else None
            seen = Seen(kind, name, None if withheld else value, site, withheld)
            if self._writes:
                self._fresh.append(seen)
            elif then := self._recorded.get(key):
                self._compare(then, seen)

    def flush(self, sink: TapeWriter) -> None:
        """Put what was read since the last flush on the tape, ahead of what depends on it."""
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


def _is_secret(name: str, value: str | None) -> bool:
    return is_secret_name(name) or (value is not None and bool(secret_values(name, value)))


def _shortened(text: str) -> str:
    """Return a text as it is kept: of a long one the beginning, and what tells it from others."""
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
