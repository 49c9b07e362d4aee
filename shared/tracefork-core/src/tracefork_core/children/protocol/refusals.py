"""Errors of a session, on their way to the process whose exchange they meet."""

from __future__ import annotations

from tracefork_core import errors
from tracefork_core.children.protocol.messages import Refused
from tracefork_core.errors import DivergenceError, TraceforkError

_KINDS: dict[str, type[TraceforkError]] = {
    name: kind
    for name, kind in vars(errors).items()
    if isinstance(kind, type) and issubclass(kind, TraceforkError)
}


def refused(error: Exception) -> Refused:
    """Return an error as it is sent."""
    text = str(error).encode("utf-8", "backslashreplace").decode()
    if isinstance(error, DivergenceError):
        return Refused("DivergenceError", text, error.divergence)
    if isinstance(error, TraceforkError):
        return Refused(type(error).__name__, text)
    return Refused("TraceforkError", f"tracefork: the session of the parent failed: {error!r}")


def as_raised(refusal: Refused) -> TraceforkError:
    """Return a refusal as the error it was."""
    if refusal.divergence is not None:
        return DivergenceError(refusal.divergence)
    return _KINDS.get(refusal.kind, TraceforkError)(refusal.text)
