"""Watch every connection and name look-up of the process with an audit hook.

At replay they are refused: `EgressError` names the frame that tried. While recording they are
counted, so that the receipt can say how many crossed a seam. A connection of `http.client` (that of
urllib3 too) that was open before is met where it sends. What an audit hook does not see: sockets
opened inside C extensions (gRPC, uvloop's own resolver, libpq), and what is sent on other sockets
that were connected before.
"""

from __future__ import annotations

import os
import sys
import threading
import warnings
from collections.abc import Callable, Collection
from typing import Literal, Protocol

from tracefork_core.egress.programs import Report, is_guarded_python, program_name
from tracefork_core.egress.target import (
    CONNECTS,
    LOOKUPS,
    SENDS,
    Target,
    addresses_of,
    descriptor,
    target,
)
from tracefork_core.errors import EgressError, UsageError
from tracefork_core.exchange.caller import caller
from tracefork_core.exchange.current import current_session, is_crossing_seam
from tracefork_core.exchange.lane import outlived
from tracefork_core.exchange.machine import ABOUT_THE_MACHINE
from tracefork_core.exchange.telemetry import takes_reports

Mode = Literal["refuse", "offline", "count"]

_PROGRAMS = frozenset(
    {"subprocess.Popen", "os.system", "os.posix_spawn", "os.exec", "os.spawn", "pty.spawn"}
)
_EVENTS = CONNECTS | LOOKUPS | SENDS | _PROGRAMS


_WHEN: dict[Mode, str] = {
    "refuse": (
        "during replay. Nothing was sent. Only what crosses a seam is on the tape: "
        "`tracefork doctor` lists them; allow=[…] (--allow HOST) lets a host through."
    ),
    "offline": (
        "while offline (offline=True, --offline). Nothing was sent. Record without, to let it "
        "through."
    ),
}


class Invitation(Protocol):
    """What a child process needs to join a session, as JSON takes it."""

    def spelled(self) -> dict[str, object]: ...


class Inviting(Protocol):
    """Lets other processes join a session."""

    def open(self) -> None:
        """Let processes in from now on."""

    def invite(self, name: str) -> Invitation:
        """Return the invitation for a process of this name that is about to start."""

    def standing(self) -> Invitation | None:
        """Return the invitation for whoever is started unseen."""


class Watch:
    """The guard of one session.

    Args:
        session: whose egress this is (None in a child process: everything there is).
        mode: refuse (at replay), offline (the same while recording) or count.
        allow: hosts, "host:port" pairs or unix socket paths that may be reached all the same.
        programs: whether other programs may be started.
        on_refused: told of each refusal that a telemetry host does not explain.
        report: where child processes report what they tried.

    `inviting` lets child processes join the session, by a socket that is no egress: the `door`.
    `below_seam` says that this child was started below a seam: what it does is part of an exchange.
    """

    def __init__(
        self,
        session: object | None,
        mode: Mode,
        report: Report,
        *,
        allow: Collection[str] = (),
        programs: bool = True,
        on_refused: Callable[[EgressError], object] | None = None,
    ) -> None:
        self.session = session
        self.mode = mode
        self.report = report
        self.allow = frozenset(allow)
        self.programs = programs
        self.connections = 0
        self.crossed = 0
        self.inviting: Inviting | None = None
        self.door: str | None = None
        self.below_seam = False
        self.strays: list[str] = []
        self.subprocesses: list[str] = []
        self._addresses: set[str] = set()
        self._connected: set[int] = set()
        self._on_refused = on_refused
        self._lock = threading.RLock()
        self._pid = os.getpid()

    def start(self) -> None:
        """Begin to watch."""
        _install_once()
        _watches.append(self)

    def stop(self) -> None:
        """Stop watching and take in what child processes reported."""
        _watches.remove(self)
        for line in self.report.read():
            self.strays.extend(line.strays)
            self.connections += len(line.strays) + line.crossed
            self.crossed += line.crossed
            self.subprocesses.extend(line.programs)
            if line.refused and self._on_refused:
                self._on_refused(EgressError(line.refused))

    def looking_up(self, event: str, wanted: Target) -> None:
        """Handle a look-up of a name. The addresses of an allowed name are allowed as well."""
        if self._allows(wanted):
            if self.mode != "count" and event == "socket.getaddrinfo":
                self._addresses |= addresses_of(wanted, self.allow)
        elif self.mode != "count" and not wanted.is_local:
            raise self._refuse(
                f"tried to look up {wanted.host}", _WHEN[self.mode], host=wanted.host
            )

    def sending(self, event: str, wanted: Target, socket: int | None) -> None:
        """Handle what is sent on a connection, which may be older than the session."""
        if socket is None or socket in self._connected or self.below_seam or is_crossing_seam():
            return
        self.connecting(event, wanted, socket)

    def connecting(self, event: str, wanted: Target, socket: int | None) -> None:
        """Handle a connection or a datagram of a socket with this descriptor."""
        if self.door is not None and self.door in (wanted.host, str(wanted)):
            return
        if self.mode != "count" and not self._allows(wanted):
            raise self._refuse(
                f"tried to reach {wanted} ({event})", _WHEN[self.mode], host=wanted.host
            )
        if socket is not None:
            self._connected.add(socket)
        crossed = self.below_seam or is_crossing_seam()
        if self._in_child():
            self.report.write(strays=[] if crossed else [str(wanted)], crossed=int(crossed))
            return
        with self._lock:
            self.connections += 1
            self.crossed += crossed
            if not crossed:
                self.strays.append(str(wanted))

    def starting(self, name: str, *, guarded: bool) -> None:
        """Handle the start of another program."""
        below = self.below_seam or is_crossing_seam()
        if self.inviting is not None and not below:
            self.inviting.open()
        if guarded:
            return
        if not self.programs:
            raise self._refuse(
                f"tried to start {name}, and other programs were ruled out "
                "(subprocesses=False, --no-subprocess).",
                "It was not started.",
            )
        if below:
            return
        if self._in_child():
            self.report.write(programs=[name])
            return
        with self._lock:
            self.subprocesses.append(name)

    def _allows(self, wanted: Target) -> bool:
        names = {str(wanted), wanted.host}
        return not (self.allow.isdisjoint(names) and self._addresses.isdisjoint(names))

    def _refuse(self, what: str, then: str, *, host: str | None = None) -> EgressError:
        who = caller() or "a thread without user code"
        error = EgressError(f"tracefork: {who} {what} {then}")
        if takes_reports(host):
            return error
        if self._in_child():
            self.report.write(refused=str(error))
        elif self._on_refused:
            self._on_refused(error)
        return error

    def _in_child(self) -> bool:
        return self.session is None or os.getpid() != self._pid


_watches: list[Watch] = []
_installed = False


def watches_here() -> list[Watch]:
    """Return the watch of the session that runs here, or all where that cannot be told.

    The watch that a child process inherited is always among them.
    """
    if len(_watches) < 2:
        return list(_watches)
    try:
        session = current_session()
    except UsageError:
        session = None
    own = [watch for watch in _watches if watch.session in (None, session)]
    return own if any(watch.session is session for watch in own) else list(_watches)


def _install_once() -> None:
    global _installed
    if not _installed:
        _installed = True
        sys.addaudithook(_hook)


def _hook(event: str, args: tuple[object, ...]) -> None:
    if event not in _EVENTS:
        return
    if not _watches:
        if event in CONNECTS and (wanted := target(event, args)) is not None:
            _warn_if_outlived(wanted)
        return
    if event in _PROGRAMS:
        if event == "os.posix_spawn" and _called_from_subprocess():
            return  # subprocess.Popen has announced it already.
        if event == "subprocess.Popen" and _asks_about_the_machine():
            return
        name, guarded = program_name(event, args), is_guarded_python(event, args)
        for watch in watches_here():
            watch.starting(name, guarded=guarded)
    elif (wanted := target(event, args)) is not None:
        for watch in watches_here():
            if event in LOOKUPS:
                watch.looking_up(event, wanted)
            elif event in SENDS:
                watch.sending(event, wanted, descriptor(event, args))
            else:
                watch.connecting(event, wanted, descriptor(event, args))


def _warn_if_outlived(wanted: Target) -> None:
    """Warn that the user's code reaches something for real, since its session has ended.

    Threads of libraries (exporters of traces and of measurements) outlive sessions as they like.
    """
    if (lane := outlived()) is None or (where := caller()) is None:
        return
    warnings.warn(
        f"tracefork: the run that {lane.name} belonged to has ended: {where} reaches {wanted} "
        "for real, and no tape has it. Wait for it inside the block.",
        RuntimeWarning,
        stacklevel=1,
    )


def _called_from_subprocess() -> bool:
    frame = sys._getframe(2)
    while frame is not None:
        if frame.f_globals.get("__name__") == "subprocess":
            return True
        frame = frame.f_back  # type: ignore[assignment]
    return False


def _asks_about_the_machine() -> bool:
    """Return whether Python itself, or `distro`, starts a program to ask about the machine."""
    frame = sys._getframe(2)
    while frame is not None:
        name = str(frame.f_globals.get("__name__"))
        if name != "subprocess" and not name.startswith("tracefork_core."):
            return name in ABOUT_THE_MACHINE
        frame = frame.f_back  # type: ignore[assignment]
    return False
