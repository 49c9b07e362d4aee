"""Watch every connection, name look-up and started program of the process with an audit hook.

Replay refuses them with an `EgressError` that names the line. A recording counts them, so that the
receipt can tell how many connections a seam captured.

Why an audit hook: it sees sockets of every Python library without patching one, and code cannot
remove it. It does not see sockets that C extensions open (gRPC, uvloop's own resolver, libpq), nor
data sent on sockets that were connected before. For connections of `http.client` (and so urllib3)
that were open before, the guard checks each send.

This module is loaded as a child process starts: it imports nothing heavy.
"""

from __future__ import annotations

import os
import sys
import threading
import warnings
from collections.abc import Callable, Collection
from typing import Literal, Protocol

from tracefork_core.egress.aftermath import Aftermath
from tracefork_core.egress.programs import Report, is_guarded_python, program_name
from tracefork_core.egress.target import (
    CONNECTS,
    LINKS,
    LOOKUPS,
    SENDS,
    Target,
    addresses_of,
    descriptor,
    linked,
    target,
)
from tracefork_core.errors import EgressError
from tracefork_core.exchange.caller import ABOUT_THE_MACHINE, caller
from tracefork_core.exchange.current import current_session, is_crossing_seam
from tracefork_core.exchange.kind import takes_reports
from tracefork_core.exchange.lane import outlived

Mode = Literal["refuse", "offline", "count"]

_PROGRAMS = frozenset(
    {"subprocess.Popen", "os.system", "os.posix_spawn", "os.exec", "os.spawn", "pty.spawn"}
)
_EVENTS = CONNECTS | LINKS | LOOKUPS | SENDS | _PROGRAMS

_WHEN: dict[Mode, str] = {
    "refuse": (
        "during replay. Nothing was sent. Replay answers only the libraries that `tracefork "
        "doctor` lists. To let this host through, pass --allow HOST (allow=[…])."
    ),
    "offline": (
        "while offline (offline=True, --offline). Nothing was sent. Record without that option "
        "to let it through."
    ),
}


class Invitation(Protocol):
    """What a child process needs to join a session, as JSON-able values."""

    def spelled(self) -> dict[str, object]: ...


class Inviting(Protocol):
    """Lets child processes join a session."""

    def open(self) -> None:
        """Accept processes from now on."""

    def invite(self, name: str) -> Invitation:
        """Return the invitation for a process of this name that is about to start."""

    def standing(self) -> Invitation | None:
        """Return the invitation for a process whose start the guard does not see."""


class Watch:
    """The guard of one session.

    Args:
        session: the session whose connections are watched; None watches all of a child process.
        mode: "refuse" (replay), "offline" (refuse while recording) or "count" (record).
        allow: hosts, "host:port" pairs or unix socket paths that may be reached anyway.
        programs: whether other programs may be started.
        on_refused: called with each refusal, except those of telemetry hosts.
        report: the file where child processes report what they tried.

    `inviting` lets child processes join the session over the socket `door`, which is always
    allowed. With `is_proxied`, the door is a proxy that makes their calls, and they do not join.
    `below_seam` tells that this child was started by a captured call: everything it does is part of
    that exchange. `stays` keeps a guard in place after the session.
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
        self.is_proxied = False
        self.stays = False
        self.strays: list[str] = []
        self.subprocesses: list[str] = []
        self.unwatched: set[str] = set()
        self._addresses: set[str] = set()
        self._connected: set[int] = set()
        self._on_refused = on_refused
        self._lock = threading.RLock()
        self._pid = os.getpid()

    def start(self) -> None:
        """Start watching."""
        _install_once()
        _watches.append(self)

    def stop(self) -> None:
        """Stop watching, and add what child processes reported."""
        if self.stays:
            after = Aftermath(refuses=self.mode != "count", allows=self._allows)
            _watches[_watches.index(self)] = after
        else:
            _watches.remove(self)
        lines = self.report.read()
        arrived = {line.arrived for line in lines}
        for line in lines:
            self.subprocesses.extend(
                name for start, name in line.awaited.items() if start not in arrived
            )
            self.strays.extend(line.strays)
            self.connections += len(line.strays) + line.crossed
            self.crossed += line.crossed
            self.subprocesses.extend(line.programs)
            if line.refused and self._on_refused:
                self._on_refused(EgressError(line.refused))

    def looking_up(self, event: str, wanted: Target) -> None:
        """Handle a name look-up; an allowed name also allows its addresses."""
        if self._allows(wanted):
            if self.mode != "count" and event == "socket.getaddrinfo":
                self._addresses |= addresses_of(wanted, self.allow)
        elif self.mode != "count" and not wanted.is_local:
            raise self._refuse(
                f"tried to look up {wanted.host}", _WHEN[self.mode], host=wanted.host
            )

    def sending(self, event: str, wanted: Target, socket: int | None) -> None:
        """Handle data sent on a connection, which may have been open before the session."""
        if socket is None or socket in self._connected or self.below_seam or is_crossing_seam():
            return
        self.connecting(event, wanted, socket)

    def connecting(self, event: str, wanted: Target, socket: int | None) -> None:
        """Handle a connection or datagram of the socket with this descriptor."""
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

    def opening_native(self, module: str, target: str) -> None:
        """Count a connection that a module may open in native code: it cannot be refused."""
        self.unwatched.add(module)
        if self.mode != "count":
            return
        named = f"{target} ({module})"
        if self._in_child():
            self.report.write(strays=[named])
            return
        with self._lock:
            self.connections += 1
            self.strays.append(named)

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
        if below or self.is_proxied:
            return
        if self._in_child():
            self.report.write(programs=[name])
            return
        with self._lock:
            self.subprocesses.append(name)

    def _allows(self, wanted: Target) -> bool:
        names = {str(wanted), wanted.host}
        return not (self.allow.isdisjoint(names) and self._addresses.isdisjoint(names))

    def _refuse(self, tried: str, remedy: str, *, host: str | None = None) -> EgressError:
        line = caller() or "a thread without user code"
        error = EgressError(f"tracefork: {line} {tried} {remedy}")
        if takes_reports(host):
            return error
        if self._in_child():
            self.report.write(refused=str(error))
        elif self._on_refused:
            self._on_refused(error)
        return error

    def _in_child(self) -> bool:
        return self.session is None or os.getpid() != self._pid


_watches: list[Watch | Aftermath] = []
_installed = False


def watches_here() -> list[Watch | Aftermath]:
    """Return the watch of the session that this code runs under, and that of a child process.

    Other work of the process has none: it is not watched.
    """
    session = current_session()
    return [watch for watch in _watches if watch.session is None or watch.session is session]


def pass_on_watch(session: object, member: object) -> None:
    """Let the watch of a session watch the forked child that has joined it as `member`."""
    for watch in _watches:
        if isinstance(watch, Watch) and watch.session is session:
            watch.session = member


def call_through(address: str) -> None:
    """Let programs reach a proxy of this session at "host:port", instead of joining the session.

    Their calls are exchanges of the proxy. All else that they reach is refused or counted.
    """
    for watch in watches_here():
        if isinstance(watch, Watch):
            watch.inviting, watch.door, watch.is_proxied = None, address, True


def stay() -> None:
    """Guard this process until it is gone, also after its sessions have ended."""
    for watch in _watches:
        if isinstance(watch, Watch):
            watch.stays = True


def program_starts(name: str, *, guarded: bool = False) -> None:
    """Tell the watches of this code that it starts a program; `guarded` if that loads the guard."""
    for watch in watches_here():
        watch.starting(name, guarded=guarded)


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
        program_starts(program_name(event, args), guarded=is_guarded_python(event, args))
    elif event in LINKS:
        reached, program = linked(args)
        if program is not None:
            program_starts(program)
        if reached is not None:
            for watch in watches_here():
                watch.connecting(event, reached, None)
    elif (wanted := target(event, args)) is not None:
        for watch in watches_here():
            if event in LOOKUPS:
                watch.looking_up(event, wanted)
            elif event in SENDS:
                watch.sending(event, wanted, descriptor(event, args))
            else:
                watch.connecting(event, wanted, descriptor(event, args))


def _warn_if_outlived(wanted: Target) -> None:
    """Warn if user code connects in a thread or task whose session has ended.

    Not for threads of libraries: exporters of traces and metrics outlive sessions by design.
    """
    if (lane := outlived()) is None or (where := caller()) is None:
        return
    warnings.warn(
        f"tracefork: the run that {lane.name} belonged to has ended: {where} reaches {wanted} "
        "for real, and no tape records it. Wait for the thread or task inside the block.",
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
    """Return whether Python itself or `distro` starts a program to query the machine."""
    frame = sys._getframe(2)
    while frame is not None:
        name = str(frame.f_globals.get("__name__"))
        if name != "subprocess" and not name.startswith("tracefork_core."):
            return name in ABOUT_THE_MACHINE
        frame = frame.f_back  # type: ignore[assignment]
    return False
