"""Guard what is left of a process after its session: finalizers, daemon threads, signal handlers.

The command line ends the process right after it has closed the tape. What still runs then can no
longer be recorded or answered. After a replay its connections are refused. After a recording they
are let through. Both are named on stderr, since the summary is printed already.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress

from tracefork_core.egress.target import Target
from tracefork_core.errors import EgressError
from tracefork_core.exchange.caller import caller
from tracefork_core.exchange.kind import takes_reports


class Aftermath:
    """The guard of a process whose session has ended.

    Args:
        refuses: whether connections and programs are refused.
        allows: tells which targets may be reached all the same.
    """

    session = None

    def __init__(self, *, refuses: bool, allows: Callable[[Target], bool]) -> None:
        self._refuses = refuses
        self._allows = allows
        self._named: set[str] = set()

    def looking_up(self, event: str, wanted: Target) -> None:
        """Handle a name look-up."""
        if self._refuses and not wanted.is_local and not self._allows(wanted):
            self._meet("look up", "looked up", wanted.host, wanted.host)

    def sending(self, event: str, wanted: Target, socket: int | None) -> None:
        """Handle data sent on a connection that may have been open before."""
        self.connecting(event, wanted, socket)

    def connecting(self, event: str, wanted: Target, socket: int | None) -> None:
        """Handle a connection or datagram."""
        if not self._allows(wanted):
            self._meet("reach", "reached", str(wanted), wanted.host)

    def opening_native(self, module: str, target: str) -> None:
        """Let it be: the connection may never be used."""

    def starting(self, name: str, *, guarded: bool) -> None:
        """Handle the start of another program; nothing would guard a Python either."""
        self._meet("start", "started", name, None)

    def _meet(self, verb: str, done: str, what: str, host: str | None) -> None:
        reports = takes_reports(host)
        if not self._refuses:
            # Python may have taken apart the modules that this needs. The agent comes first.
            with suppress(Exception):
                if not reports:
                    self._name(f"after the end of the recording: {_line()} {done} {what}")
            return
        tried = f"{_line()} tried to {verb} {what}"
        if not reports:
            self._name(f"refused after the end of the replay: {tried}")
        raise EgressError(f"tracefork: {tried} after the end of the replay. It was refused.")

    def _name(self, text: str) -> None:
        if text not in self._named:
            self._named.add(text)
            shown = "".join(letter if letter.isprintable() else "?" for letter in text)
            os.write(2, f"  ! {shown}\n".encode("utf-8", "backslashreplace"))


def _line() -> str:
    return caller() or "a thread without user code"
