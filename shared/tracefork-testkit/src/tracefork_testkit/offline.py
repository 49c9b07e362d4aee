"""Close the network with an audit hook, which no Python library can bypass, and prove it."""

from __future__ import annotations

import socket
import sys
import sysconfig
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

EVENTS = frozenset(
    {
        "socket.connect",
        "socket.getaddrinfo",
        "socket.gethostbyname",
        "socket.gethostbyaddr",
        "socket.getnameinfo",
        "socket.sendto",
        "socket.sendmsg",
    }
)
# Files in none of these folders are the code under test.
LIBRARIES = (sysconfig.get_path("stdlib"), sysconfig.get_path("purelib"))


class NetworkClosedError(RuntimeError):
    """Code tried to use the network while it was closed.

    Not an OSError, because HTTP libraries retry those.
    """


@dataclass(frozen=True, slots=True)
class Attempt:
    """One refused use of the network."""

    event: str
    target: str
    caller: str


@dataclass(slots=True)
class ClosedNetwork:
    """The refused uses of the network, in order, from all threads of this process."""

    attempts: list[Attempt] = field(default_factory=list)


_closed: list[ClosedNetwork] = []
_hooked = False


@contextmanager
def closed_network() -> Iterator[ClosedNetwork]:
    """Refuse every use of the network by this process, loopback too, and prove it first.

    Child processes and Unix sockets are not refused.

    Raises:
        NetworkClosedError: in the code that uses the network.
        AssertionError: at once, if closing the network failed.
    """
    global _hooked
    if not _hooked:
        # An audit hook cannot be removed: add a single one, which does nothing while all is open.
        sys.addaudithook(_audit)
        _hooked = True
    network = ClosedNetwork()
    with socket.create_server(("127.0.0.1", 0)) as door:
        address = door.getsockname()
        socket.create_connection(address, timeout=5).close()
        _closed.append(network)
        try:
            _prove_closed(address)
            network.attempts.clear()
            yield network
        finally:
            _closed.remove(network)


def _prove_closed(address: tuple[str, int]) -> None:
    with socket.socket() as probe:
        try:
            probe.connect(address)
        except NetworkClosedError:
            pass
        else:
            raise AssertionError(f"the network is not closed: a connection to {address} succeeded")
    try:
        socket.getaddrinfo("localhost", 80)
    except NetworkClosedError:
        return
    raise AssertionError("the network is not closed: a name was resolved")


def _audit(event: str, args: tuple[object, ...]) -> None:
    if not _closed or event not in EVENTS:
        return
    target = args
    if isinstance(args[0], socket.SocketType):
        inet = args[0].family in (socket.AF_INET, socket.AF_INET6)
        # sendmsg on a connected socket has no address: its connect was refused before.
        if not inet or args[1] is None:
            return
        target = args[1:]
    attempt = Attempt(event, repr(target[0]), _caller())
    _closed[-1].attempts.append(attempt)
    raise NetworkClosedError(
        f"the network is closed for this test: {event} {attempt.target} from {attempt.caller}. "
        "Replay the calls of this code from a tape, or remove the `no_network` fixture."
    )


def _caller() -> str:
    innermost = frame = sys._getframe(2)
    while frame.f_code.co_filename.startswith(LIBRARIES):
        if frame.f_back is None:
            frame = innermost
            break
        frame = frame.f_back
    return f"{frame.f_code.co_filename}:{frame.f_lineno} in {frame.f_code.co_name}"
