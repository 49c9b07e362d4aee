"""Watch every connection and name look-up of the process with an audit hook.

At replay they are refused: `EgressError` names the frame that tried. While recording they are
counted, so that the receipt can say how many crossed a seam. What an audit hook does not see:
sockets opened inside C extensions (gRPC, uvloop's own resolver, libpq).
"""

from __future__ import annotations

import ipaddress
import os
import sys
import threading
from collections.abc import Callable, Collection
from typing import Literal

from tracefork_core.egress.program import is_guarded_python, program_name
from tracefork_core.egress.report import Report
from tracefork_core.errors import EgressError, UsageError
from tracefork_core.exchange.caller import caller
from tracefork_core.exchange.current import current_session, is_crossing_seam
from tracefork_core.exchange.telemetry import HOSTS

Mode = Literal["refuse", "count"]

_CONNECTS = frozenset({"socket.connect", "socket.sendto", "socket.sendmsg"})
_LOOKUPS = frozenset(
    {"socket.getaddrinfo", "socket.gethostbyname", "socket.gethostbyaddr", "socket.getnameinfo"}
)
_PROGRAMS = frozenset(
    {"subprocess.Popen", "os.system", "os.posix_spawn", "os.exec", "os.spawn", "pty.spawn"}
)
_EVENTS = _CONNECTS | _LOOKUPS | _PROGRAMS


class Watch:
    """The guard of one session.

    Args:
        session: whose egress this is (None in a child process: everything there is).
        mode: refuse or count.
        allow: hosts, "host:port" pairs or unix socket paths that may be reached all the same.
        programs: whether other programs may be started.
        on_refused: told of each refusal that a telemetry host does not explain.
        report: where child processes report what they tried.
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
        self.strays: list[str] = []
        self.subprocesses: list[str] = []
        self._on_refused = on_refused
        self._lock = threading.Lock()
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
            self.connections += len(line.strays)
            self.subprocesses.extend(line.programs)
            if line.refused and self._on_refused:
                self._on_refused(EgressError(line.refused))

    def connecting(self, event: str, target: str, host: str) -> None:
        """Handle a connection or a look-up of `host`."""
        allowed = not self.allow.isdisjoint({target, host})
        if self.mode == "refuse" and not allowed:
            raise self._refuse(f"tried to reach {target} ({event})", telemetry=host in HOSTS)
        if event in _CONNECTS:
            self._count(target)

    def starting(self, name: str, *, guarded: bool) -> None:
        """Handle the start of another program."""
        if guarded:
            return
        if not self.programs:
            raise self._refuse(f"tried to start {name}, and --no-subprocess is on")
        if self._in_child():
            self.report.write(programs=[name])
        with self._lock:
            self.subprocesses.append(name)

    def _count(self, target: str) -> None:
        crossed = is_crossing_seam()
        if self._in_child() and not crossed:
            self.report.write(strays=[target])
        with self._lock:
            self.connections += 1
            self.crossed += crossed
            if not crossed:
                self.strays.append(target)

    def _refuse(self, what: str, *, telemetry: bool = False) -> EgressError:
        when = "during replay" if self.mode == "refuse" else "while recording"
        error = EgressError(
            f"tracefork: {caller() or 'a thread without user code'} {what} {when}. Nothing was sent. "
            "Only what crosses a seam is on the tape: `tracefork doctor` lists them; "
            "allow=[…] (--allow HOST) lets a host through."
        )
        if self._in_child():
            self.report.write(refused=str(error))
        elif self._on_refused and not telemetry:
            self._on_refused(error)
        return error

    def _in_child(self) -> bool:
        return self.session is None or os.getpid() != self._pid


_watches: list[Watch] = []
_installed = False


def _install_once() -> None:
    global _installed
    if not _installed:
        _installed = True
        sys.addaudithook(_hook)


def _hook(event: str, args: tuple[object, ...]) -> None:
    if not _watches or event not in _EVENTS:
        return
    for watch in _concerned():
        if event in _PROGRAMS:
            if event == "os.posix_spawn" and _called_from_subprocess():
                return  # subprocess.Popen has announced it already.
            watch.starting(program_name(event, args), guarded=is_guarded_python(event, args))
        elif (reached := _target(event, args)) is not None:
            watch.connecting(event, *reached)


def _concerned() -> list[Watch]:
    """Return the watch of the session that runs here, or all where that cannot be told."""
    if len(_watches) == 1:
        return list(_watches)
    try:
        session = current_session()
    except UsageError:
        session = None
    own = [watch for watch in _watches if watch.session is session]
    return own or list(_watches)


def _target(event: str, args: tuple[object, ...]) -> tuple[str, str] | None:
    """Return what is reached as ("host:port", "host"), or None where nothing leaves."""
    if event in _LOOKUPS:
        host = args[0][0] if isinstance(args[0], tuple) else args[0]
        name = host.decode("ascii", "replace") if isinstance(host, bytes) else host
        return None if not isinstance(name, str) or _is_local_name(name) else (name, name)
    address = args[1] if len(args) > 1 else None
    if address is None:
        return None  # An answer on a socket that is connected already.
    if isinstance(address, tuple) and len(address) >= 2:
        return f"{address[0]}:{address[1]}", str(address[0])
    path = address.decode(errors="replace") if isinstance(address, bytes) else str(address)
    return f"unix:{path}", path


def _is_local_name(name: str) -> bool:
    """Return whether looking `name` up asks nobody: addresses, localhost, the empty name."""
    if name in ("", "localhost") or name == os.uname().nodename:
        return True
    try:
        ipaddress.ip_address(name.partition("%")[0])
    except ValueError:
        return False
    return True


def _called_from_subprocess() -> bool:
    frame = sys._getframe(2)
    while frame is not None:
        if frame.f_globals.get("__name__") == "subprocess":
            return True
        frame = frame.f_back  # type: ignore[assignment]
    return False
