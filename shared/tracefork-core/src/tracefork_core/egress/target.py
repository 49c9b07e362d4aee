"""Tell from an audit event which host it reaches, and whether anything leaves the machine."""

from __future__ import annotations

import ipaddress
import os
import re
import socket
from collections.abc import Collection
from contextvars import ContextVar
from dataclasses import dataclass

from tracefork_core.errors import UsageError

CONNECTS = frozenset({"socket.connect", "socket.sendto", "socket.sendmsg"})
SENDS = frozenset({"http.client.send"})
LINKS = frozenset({"ctypes.dlsym"})
_LINKED_CONNECTS = frozenset({"connect", "sendto", "sendmsg", "sendmmsg", "getaddrinfo"})
_LINKED_PROGRAMS = re.compile(r"^(system|popen|posix_spawnp?|exec(l|le|lp|v|ve|vp|vpe)|syscall)$")
_FORWARD = frozenset({"socket.getaddrinfo", "socket.gethostbyname"})
_REVERSE = frozenset({"socket.gethostbyaddr", "socket.getnameinfo"})
LOOKUPS = _FORWARD | _REVERSE

# Sockets to this machine's kernel: nothing leaves the machine through them.
_KERNEL = {getattr(socket, name, None) for name in ("AF_NETLINK", "AF_ALG")} - {None}
_UNIX = getattr(socket, "AF_UNIX", None)
_MULTIPROCESSING = re.compile(r"/pymp-[^/]+/listener-[^/]+$")
_resolving: ContextVar[bool] = ContextVar("tracefork_resolving", default=False)


@dataclass(frozen=True, slots=True)
class Target:
    """The target of a connection: "host:port", "host" if no port is known, or "unix:path".

    `is_local` marks a look-up that needs no network: an address, or this machine's own name.
    """

    host: str
    port: object = None
    is_local: bool = False

    def __str__(self) -> str:
        """Return the target as it is written in `allow` and in receipts."""
        if self.port is None:
            return self.host
        return f"unix:{self.host}" if self.port == "unix" else f"{self.host}:{self.port}"


def target(event: str, args: tuple[object, ...]) -> Target | None:
    """Return what a connection or look-up reaches, or None if nothing leaves this run."""
    if _resolving.get():
        return None
    if event in LOOKUPS:
        return _looked_up(event, args)
    if event in SENDS:
        return Target(_text(getattr(args[0], "host", "?")), getattr(args[0], "port", None))
    address = args[1] if len(args) > 1 else None
    family = getattr(args[0], "family", None)
    if address is None or family in _KERNEL:
        return None  # A reply on a connected socket, or a message to the kernel.
    if family == _UNIX and _MULTIPROCESSING.search(_text(address)):
        return None  # A fork server or a manager: a process of this run.
    if isinstance(address, tuple) and len(address) >= 2:
        return Target(_text(address[0]), address[1])
    return Target(_text(address), "unix")


def linked(args: tuple[object, ...]) -> tuple[Target | None, str | None]:
    """Return what a function of C reaches or starts that `ctypes` looks up, if it is known."""
    name = _text(args[1])
    called = f"{name}() of C"
    return (
        Target(called) if name in _LINKED_CONNECTS else None,
        called if _LINKED_PROGRAMS.match(name) else None,
    )


def descriptor(event: str, args: tuple[object, ...]) -> int | None:
    """Return the file descriptor of the socket of an event, or None."""
    socket = getattr(args[0], "sock", None) if event in SENDS else args[0]
    number = getattr(socket, "fileno", lambda: None)()
    return number if isinstance(number, int) and number >= 0 else None


def check_allowed(allow: Collection[str]) -> None:
    """Check the hosts that a user allows: a misspelled one would silently allow nothing.

    Raises:
        UsageError: `allow` is a string instead of a list, or an entry is a URL or empty.
    """
    if isinstance(allow, str):
        raise UsageError(f"tracefork: allow takes a list of hosts: allow=[{allow!r}].")
    for host in allow:
        if not host.strip() or "://" in host:
            raise UsageError(f"tracefork: allow (--allow) takes HOST or HOST:PORT (got {host!r}).")


def addresses_of(wanted: Target, allow: Collection[str]) -> set[str]:
    """Return the addresses of an allowed name, each with the port if only that port is allowed."""
    token = _resolving.set(True)
    try:
        addresses = {_text(info[4][0]) for info in socket.getaddrinfo(wanted.host, None)}
    except OSError:
        return set()
    finally:
        _resolving.reset(token)
    whole = wanted.host in allow
    return {address if whole else f"{address}:{wanted.port}" for address in addresses}


def _looked_up(event: str, args: tuple[object, ...]) -> Target | None:
    asked = args[0]
    if isinstance(asked, tuple):  # getnameinfo takes an address with its port.
        asked = asked[0]
    if asked is None:
        return None
    name = _text(asked)
    port = args[1] if event == "socket.getaddrinfo" and len(args) > 1 else None
    return Target(name, port, _is_local(name, reverse=event in _REVERSE))


def _is_local(name: str, *, reverse: bool) -> bool:
    """Return whether looking up `name` needs no network.

    An address resolves to itself; finding its name (`reverse`) asks the network.
    """
    if name.lower() in ("", "localhost", os.uname().nodename.lower()):
        return True
    try:
        address = ipaddress.ip_address(name.partition("%")[0])
    except ValueError:
        return name.lower().endswith(".localhost")
    return address.is_loopback or address.is_unspecified or not reverse


def _text(value: object) -> str:
    if isinstance(value, (bytes, bytearray)):
        return value.decode("utf-8", "replace")
    return str(value)
