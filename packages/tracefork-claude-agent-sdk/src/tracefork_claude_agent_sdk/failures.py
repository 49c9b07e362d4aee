"""How errors of the SDK's transport get onto a tape, and back from there.

A class is looked up by its name in the table below, and never imported because a tape names it.
"""

from __future__ import annotations

import re

from claude_agent_sdk import (
    CLIConnectionError,
    CLIJSONDecodeError,
    CLINotFoundError,
    ProcessError,
)

from tracefork_core.adapters import Failure

_EXIT_CODE = re.compile(r"\(exit code: (-?\d+)\)")


def failure_of(error: BaseException) -> Failure:
    """Return an error in the form that the tape stores."""
    return Failure(type(error).__name__, str(error))


def exception_of(failure: Failure) -> Exception:
    """Rebuild an error; one of an unknown class becomes a `CLIConnectionError`."""
    message = failure.message
    made: Exception
    if failure.kind == "ProcessError":
        code = _EXIT_CODE.search(message)
        text = message.partition(" (exit code:")[0]
        made = ProcessError(text, int(code[1]) if code else None, _errors_of(message))
    elif failure.kind == "CLINotFoundError":
        made = CLINotFoundError(message)
    elif failure.kind == "CLIJSONDecodeError":
        made = CLIJSONDecodeError(message, ValueError(message))
    else:
        made = CLIConnectionError(message)
    return made


def _errors_of(message: str) -> str | None:
    return message.partition("\nError output: ")[2] or None
