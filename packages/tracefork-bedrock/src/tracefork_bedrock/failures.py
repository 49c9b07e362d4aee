"""How the errors of an attempt get onto a tape, and back from there.

An attempt fails with an exception of botocore, a body with one of urllib3. A class is looked up by
its name in the tables below, and never imported because a tape names it.
"""

from __future__ import annotations

import builtins
import inspect
from types import ModuleType
from typing import Any

import botocore.exceptions
import urllib3.exceptions

from tracefork_core.adapters import Failure


def _classes(module: ModuleType, base: type) -> dict[str, Any]:
    return {
        name: value
        for name, value in vars(module).items()
        if inspect.isclass(value) and issubclass(value, base)
    }


_ATTEMPT = _classes(botocore.exceptions, botocore.exceptions.BotoCoreError)
_BODY = _classes(urllib3.exceptions, urllib3.exceptions.HTTPError)
_BUILTIN = _classes(builtins, Exception)
_OF_THE_WIRE = (urllib3.exceptions.HTTPError, OSError)


def failure_of(error: BaseException) -> Failure:
    """Return an exception in the form that the tape stores."""
    return Failure(type(error).__name__, str(error))


def is_of_the_wire(error: BaseException) -> bool:
    """Return whether an exception cut a body short."""
    return isinstance(error, _OF_THE_WIRE)


def exception_of(failure: Failure, request: Any) -> Exception:
    """Rebuild the exception that an attempt ended with."""
    kind = _ATTEMPT.get(failure.kind)
    if kind is None:
        return _builtin(failure) or botocore.exceptions.HTTPClientError(
            error=f"{failure.kind}: {failure.message}"
        )
    wanted = {"endpoint_url": request.url, "error": failure.message}
    return _made(kind, failure.message, kwargs=wanted, request=request, response=None)


def body_exception_of(failure: Failure) -> Exception:
    """Rebuild the exception that cut a body short."""
    kind = _BODY.get(failure.kind)
    if kind is None:
        return _builtin(failure) or urllib3.exceptions.ProtocolError(failure.message)
    return _made(kind, failure.message, pool=None, url=None, reason=None)


def _builtin(failure: Failure) -> Exception | None:
    kind = _BUILTIN.get(failure.kind)
    try:
        return None if kind is None else kind(failure.message)
    except TypeError:  # It takes more than a message.
        return None


def _made(kind: Any, message: str, **attributes: object) -> Exception:
    """Return an exception with a message, which its constructor would spell in its own way."""
    error: Exception = kind.__new__(kind)
    Exception.__init__(error, message)
    vars(error).update(attributes)
    return error
