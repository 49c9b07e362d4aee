"""Real host names over TLS on loopback, for this process only.

Two alternatives failed: answering getaddrinfo with the server's port (anyio and asyncio keep the
port they asked for), and adding a CA to the contexts in use (it cannot be removed again, and
libraries keep contexts made at import). So names resolve to private loopback addresses, `connect`
replaces (address, 443) by the TLS listener, and our own SSL context makes the handshake for these
names. uvloop and c-ares bypass these functions and are not covered.
"""

from __future__ import annotations

import os
import socket
import ssl
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from itertools import count
from typing import Any, Protocol
from unittest.mock import patch


class Server(Protocol):
    """A server on loopback that can listen on another port, with TLS."""

    @property
    def port(self) -> int: ...

    def listen(self, *, tls: ssl.SSLContext) -> int: ...


DEFAULT_HOSTS = (
    "api.openai.com",
    "api.anthropic.com",
    "generativelanguage.googleapis.com",
)


class OwnContext(ssl.SSLContext):
    """A context that trusts the generated certificate; its handshakes are never replaced."""


# Nested uses must not share an address: the inner server would get the outer one's requests.
_numbers = count(1)


@contextmanager
def rerouted(server: Server, hosts: tuple[str, ...]) -> Iterator[None]:
    """Route this process's connections to `hosts` to a running server until the block ends."""
    try:
        import trustme
    except ImportError as error:
        raise RuntimeError(
            "real host names need a certificate: pip install 'tracefork-testkit[realhost]'"
        ) from error
    authority = trustme.CA()
    listening = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert(*hosts).configure_cert(listening)
    trusting = OwnContext(ssl.PROTOCOL_TLS_CLIENT)
    authority.configure_trust(trusting)
    ports = {443: server.listen(tls=listening), 80: server.port}
    addresses = {host: _private_address(next(_numbers)) for host in hosts}
    with ExitStack() as undo:
        undo.enter_context(_names(addresses))
        undo.enter_context(_connections(frozenset(addresses.values()), ports))
        undo.enter_context(_handshakes(frozenset(hosts), trusting))
        undo.enter_context(_proxies_bypassed(hosts))
        yield


def _private_address(number: int) -> str:
    return f"127.77.{number // 254 % 256}.{number % 254 + 1}"


def _plain_name(host: object) -> str:
    text = host.decode("ascii", "replace") if isinstance(host, bytes) else str(host)
    return text.rstrip(".").lower()


@contextmanager
def _names(addresses: Mapping[str, str]) -> Iterator[None]:
    real = socket.getaddrinfo

    def getaddrinfo(host: Any, *args: Any, **options: Any) -> Any:
        return real(addresses.get(_plain_name(host), host), *args, **options)

    with patch.object(socket, "getaddrinfo", getaddrinfo):
        yield


@contextmanager
def _connections(addresses: frozenset[str], ports: Mapping[int, int]) -> Iterator[None]:
    def through(real: Callable[[socket.socket, Any], Any]) -> Callable[[socket.socket, Any], Any]:
        def connect(self: socket.socket, address: Any) -> Any:
            # The real method still runs with the real address, so that audit hooks see it.
            if isinstance(address, tuple) and address[0] in addresses and address[1] in ports:
                address = ("127.0.0.1", ports[address[1]])
            return real(self, address)

        return connect

    with (
        patch.object(socket.socket, "connect", through(socket.socket.connect)),
        patch.object(socket.socket, "connect_ex", through(socket.socket.connect_ex)),
    ):
        yield


@contextmanager
def _handshakes(hosts: frozenset[str], trusting: ssl.SSLContext) -> Iterator[None]:
    def through(real: Callable[..., Any]) -> Callable[..., Any]:
        def wrap(self: ssl.SSLContext, *args: Any, **options: Any) -> Any:
            wanted = _plain_name(options.get("server_hostname"))
            if wanted in hosts and not isinstance(self, OwnContext):
                # A TLS session works only with the context that created it.
                options.pop("session", None)
                return real(trusting, *args, **options)
            return real(self, *args, **options)

        return wrap

    with (
        patch.object(ssl.SSLContext, "wrap_socket", through(ssl.SSLContext.wrap_socket)),
        patch.object(ssl.SSLContext, "wrap_bio", through(ssl.SSLContext.wrap_bio)),
    ):
        yield


@contextmanager
def _proxies_bypassed(hosts: tuple[str, ...]) -> Iterator[None]:
    proxied = [name for name in os.environ if name.lower() in ("https_proxy", "all_proxy")]
    if not proxied:
        yield
        return
    kept = {name: os.environ.get(name) for name in ("no_proxy", "NO_PROXY")}
    try:
        for name, value in kept.items():
            os.environ[name] = ",".join(filter(None, (value, *hosts)))
        yield
    finally:
        for name, value in kept.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
