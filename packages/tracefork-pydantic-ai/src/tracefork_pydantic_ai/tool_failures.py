"""Convert exceptions that a message alone does not rebuild: with their data, to raise them again.

`ModelRetry` and `ToolFailed` have a message and nothing else, so the tape holds them as they are.
"""

from __future__ import annotations

import builtins
from typing import Any

from pydantic import ValidationError
from pydantic_ai import exceptions
from pydantic_ai.exceptions import ApprovalRequired, CallDeferred
from pydantic_core import InitErrorDetails, PydanticCustomError

from tracefork_core import ToolError
from tracefork_pydantic_ai.tool_values import plain

RAISED = tuple(
    getattr(exceptions, name)
    for name in (
        *("ModelRetry", "ToolFailed", "UnexpectedModelBehavior", "UsageLimitExceeded"),
        "UserError",
    )
    if hasattr(exceptions, name)
)
"""Exceptions of pydantic-ai that a message rebuilds; not each version has them all."""


def data_of(error: Exception) -> dict[str, Any] | None:
    """Return an exception as data; None if its message says all of it."""
    match error:
        case ApprovalRequired():
            return {"class": "ApprovalRequired", "metadata": plain(error.metadata)}
        case CallDeferred():
            kind = getattr(error, "kind", None)  # Older versions have none.
            options = {} if kind is None else {"kind": kind}
            return {"class": "CallDeferred", "metadata": plain(error.metadata), "options": options}
        case ValidationError():
            found = [
                {
                    "type": it["type"],
                    "loc": it["loc"],
                    "msg": it["msg"],
                    "input": plain(it["input"]),
                }
                for it in error.errors(include_url=False)
            ]
            return {"class": "ValidationError", "title": error.title, "errors": found}
    return None


def message_of(error: Exception) -> dict[str, Any]:
    """Return any exception as data: its class, and its message."""
    return data_of(error) or {"class": type(error).__name__, "message": str(error)}


def rebuilt(data: dict[str, Any], raises: tuple[type[Exception], ...] = ()) -> Exception:
    """Return the exception of recorded data; `raises` are classes that the tool declares."""
    made: Exception
    match data["class"]:
        case "ApprovalRequired":
            made = ApprovalRequired(data["metadata"])
        case "CallDeferred":
            made = CallDeferred(data["metadata"], **data["options"])
        case "ValidationError":
            errors = [
                InitErrorDetails(
                    type=PydanticCustomError(it["type"], it["msg"]),
                    loc=tuple(it["loc"]),
                    input=it["input"],
                )
                for it in data["errors"]
            ]
            made = ValidationError.from_exception_data(data["title"], errors)
        case name:
            made = _of_message(name, data["message"], (*RAISED, *raises))
    return made


def _of_message(name: str, message: str, known: tuple[type[Exception], ...]) -> Exception:
    kind = next((it for it in known if it.__name__ == name), getattr(builtins, name, None))
    if isinstance(kind, type) and issubclass(kind, Exception):
        try:
            return kind(message)
        except Exception:  # noqa: BLE001 - it cannot be built from a message alone
            return ToolError(name, message)
    return ToolError(name, message)
