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


def classes_of(module: ModuleType, base: type) -> dict[str, Any]:
    """Return the classes of exceptions in a module, by name."""
    return {
        name: value
        for name, value in vars(module).items()
        if inspect.isclass(value) and issubclass(value, base)
    }


_ATTEMPT = classes_of(botocore.exceptions, botocore.exceptions.BotoCoreError)
_BODY = classes_of(urllib3.exceptions, urllib3.exceptions.HTTPError)
_BUILTIN = classes_of(builtins, Exception)
OF_THE_NETWORK = sorted(
    name
    for name, kind in _ATTEMPT.items()
    if issubclass(kind, botocore.exceptions.HTTPClientError) and name != "HTTPClientError"
)
"""The exceptions with which an attempt fails that gets no answer."""
_OF_THE_WIRE = (urllib3.exceptions.HTTPError, OSError)


def is_known(name: str) -> bool:
    """Return whether a failure with this name is rebuilt with its class."""
    return any(name in known for known in (_ATTEMPT, _BODY, _BUILTIN))


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
        return builtin_of(failure) or botocore.exceptions.HTTPClientError(
            error=f"{failure.kind}: {failure.message}"
        )
    wanted = {"endpoint_url": request.url, "error": failure.message}
    return made(kind, failure.message, kwargs=wanted, request=request, response=None)


def body_exception_of(failure: Failure) -> Exception:
    """Rebuild the exception that cut a body short, as urllib3 raises it."""
    kind = _BODY.get(failure.kind)
    if kind is None:
        return builtin_of(failure) or urllib3.exceptions.ProtocolError(failure.message)
    return made(kind, failure.message, pool=None, url=None, reason=None)


def builtin_of(failure: Failure) -> Exception | None:
    """Return a failure as an exception of Python; None if it is not one of Python's."""
    kind = _BUILTIN.get(failure.kind)
    try:
        return None if kind is None else kind(failure.message)
    except TypeError:  # It takes more than a message.
        return None


def made(kind: Any, message: str, **attributes: object) -> Exception:
    """Return an exception with a message, which its constructor would spell in its own way."""
    error: Exception = kind.__new__(kind)
    Exception.__init__(error, message)
    vars(error).update(attributes)
    return error
