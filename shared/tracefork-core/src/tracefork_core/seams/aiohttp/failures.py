"""Record aiohttp's exceptions by name and message, and rebuild them through a fixed table.

The message is enough to rebuild the exception: "[Errno 111] Connection refused" is an errno and a
text, "407 Proxy Authentication Required" a status and a reason. If a custom connector derives its
own exception from one of these, the base class is recorded.
"""

from __future__ import annotations

import re
from types import ModuleType
from typing import Any

from tracefork_core.exchange.contract import Failure
from tracefork_core.seams.failures import builtin_of

_PLAIN = (
    "ClientError",
    "ClientConnectionError",
    "ClientConnectionResetError",
    "ClientOSError",
    "ClientPayloadError",
    "ConnectionTimeoutError",
    "ServerConnectionError",
    "ServerDisconnectedError",
    "ServerTimeoutError",
    "SocketTimeoutError",
    "UploadAbortedError",
)
_CONNECTOR = (
    "ClientConnectorError",
    "ClientConnectorDNSError",
    "ClientConnectorSSLError",
    "ClientConnectorCertificateError",
    "ClientProxyConnectionError",
    "ClientSSLError",
    "UnixClientConnectorError",
)
_RESPONSE = ("ClientResponseError", "ClientHttpProxyError")
_BUILTIN = {
    kind.__name__: kind
    for kind in (
        TimeoutError,
        BrokenPipeError,
        ConnectionAbortedError,
        ConnectionRefusedError,
        ConnectionResetError,
        OSError,
    )
}
_ERRNO = re.compile(r"\[Errno (-?\d+|None)\] (.*)", re.DOTALL)


class Failures:
    """The exceptions of one module of aiohttp."""

    def __init__(self, lib: ModuleType) -> None:
        # Some are not in the namespace of the package, and some not in every version.
        known = vars(lib.client_exceptions)
        self._plain = {name: known[name] for name in _PLAIN if name in known} | _BUILTIN
        self._connector = {name: known[name] for name in _CONNECTOR if name in known}
        self._response = {name: known[name] for name in _RESPONSE}
        self._client_error = lib.ClientError
        self._request_info = lib.RequestInfo

    @property
    def kinds(self) -> frozenset[str]:
        """The names of the exceptions that an attempt may end with."""
        return frozenset({*self._plain, *self._connector, *self._response})

    def failure(self, error: BaseException) -> Failure:
        """Return an exception in the form that the tape stores."""
        kind = next(
            (base.__name__ for base in type(error).__mro__ if self._knows(base)),
            type(error).__name__,
        )
        return Failure(kind, self._message(kind, error))

    def exception(self, failure: Failure, request: Any) -> Exception:
        """Rebuild the exception of a recorded failure of `request`."""
        kind, message = failure.kind, failure.message
        if kind in self._connector:
            return self._from_connector(kind, message, request)
        if kind in self._response:
            return self._from_response(kind, message, request)
        if kind in self._plain:
            arguments = _arguments(message)
            return self._plain[kind](*arguments)  # type: ignore[no-any-return]
        if (builtin := builtin_of(failure)) is not None:
            return builtin
        return self._client_error(f"{kind}: {message}")  # type: ignore[no-any-return]

    def _knows(self, kind: type) -> bool:
        tables = (self._plain, self._connector, self._response)
        return any(table.get(kind.__name__) is kind for table in tables)

    def _message(self, kind: str, error: Any) -> str:
        if kind in self._connector:
            certificate = hasattr(error, "certificate_error")
            return _spelled(error.certificate_error if certificate else error.os_error)
        if kind in self._response:
            return f"{error.status} {error.message}"
        return str(error)

    def _from_connector(self, kind: str, message: str, request: Any) -> Exception:
        import socket
        import ssl

        reasons: dict[str, type[OSError]] = {
            "ClientConnectorDNSError": socket.gaierror,
            "ClientConnectorSSLError": ssl.SSLError,
            "ClientConnectorCertificateError": ssl.SSLCertVerificationError,
        }
        reason = reasons.get(kind, OSError)(*_arguments(message))
        if kind == "UnixClientConnectorError":
            path = getattr(request._session.connector, "path", "")
            return self._connector[kind](path, request.connection_key, reason)  # type: ignore[no-any-return]
        return self._connector[kind](request.connection_key, reason)  # type: ignore[no-any-return]

    def _from_response(self, kind: str, message: str, request: Any) -> Exception:
        status, _, text = message.partition(" ")
        info = request.request_info
        if kind == "ClientHttpProxyError" and request.proxy is not None:
            info = self._request_info(request.proxy, "CONNECT", info.headers, request.proxy)
        return self._response[kind](  # type: ignore[no-any-return]
            info, (), status=int(status) if status.isdecimal() else 0, message=text
        )


def _spelled(reason: BaseException) -> str:
    """Return the text of an OSError with its errno, which some classes leave out."""
    if isinstance(reason, OSError) and reason.strerror is not None:
        return f"[Errno {reason.errno}] {reason.strerror}"
    return str(reason)


def _arguments(message: str) -> tuple[object, ...]:
    found = _ERRNO.fullmatch(message)
    if found is None:
        return (message,) if message else ()
    return (None if found[1] == "None" else int(found[1]), found[2])
