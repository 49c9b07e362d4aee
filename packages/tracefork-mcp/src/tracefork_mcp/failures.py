"""How the errors of a transport get onto a tape, and back from there.

A transport runs tasks beside the client. If one of them raises, the client's block is cancelled and
the error comes out of the transport, in a group. A class is looked up by its name in the tables
below, and never imported because a tape names it; any other one becomes a `ConnectionError`.
"""

from __future__ import annotations

import builtins
import re
import sys
from typing import Any

from tracefork_core.adapters import Failure

CLOSED = Failure("ConnectionClosed", "the server closed the connection")
"""The server ended the connection. The client only notices that nothing more comes."""
_ENDS = frozenset({CLOSED.kind, "ClosedResourceError", "BrokenResourceError"})
_MODULES = ("mcp.client.auth", "httpx", "httpx2")
_STATUS = re.compile(r"'(\d{3}) ")


def is_end(failure: Failure) -> bool:
    """Return whether a failure is the end of a connection, and no error of the transport."""
    return failure.kind in _ENDS


def failure_of(error: BaseException) -> Failure:
    """Return an error in the form that the tape stores, the first one of a group."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return Failure(type(error).__name__, str(error))


def exception_of(failure: Failure) -> Exception:
    """Rebuild an error."""
    for kind in _kinds(failure.kind):
        try:
            return _made(kind, failure)
        except TypeError:  # It takes more than a message.
            continue
    return ConnectionError(f"{failure.kind}: {failure.message}")


def _kinds(name: str) -> list[Any]:
    homes = [builtins, *filter(None, map(sys.modules.get, _MODULES))]
    found = [vars(home).get(name) for home in homes]
    return [one for one in found if isinstance(one, type) and issubclass(one, Exception)]


def _made(kind: Any, failure: Failure) -> Exception:
    library = sys.modules.get(kind.__module__.partition(".")[0])
    if library is not None and failure.kind == "HTTPStatusError":
        status = _STATUS.search(failure.message)
        request = library.Request("POST", "http://mcp")
        response = library.Response(int(status[1]) if status else 500, request=request)
        made: Exception = kind(failure.message, request=request, response=response)
        return made
    return kind(failure.message)  # type: ignore[no-any-return]
