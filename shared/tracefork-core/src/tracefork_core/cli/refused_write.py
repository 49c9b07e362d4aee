"""What a fork or a rerun says where it refused a write: its branch is kept, and can go on."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

from tracefork_core.errors import WriteError

if TYPE_CHECKING:
    from tracefork_core.cli.agent.hard_exit import Outcome
    from tracefork_core.run.fork import Forking
    from tracefork_core.run.scope import Scope


def ended(
    outcome: Outcome[Forking], scope: Scope[Forking]
) -> tuple[Forking, int, WriteError | None]:
    """Return the run, its exit status, and the error if it refused a write.

    Raises:
        TraceforkError: any other error, or nothing was kept of the run.
    """
    try:
        run, ending = outcome()
    except WriteError as error:
        if scope.run is None or scope.run.receipt is None:
            raise
        return scope.run, error.exit_code, error
    return run, ending.status, None


def onwards(shown: str, exchanges: int) -> str:
    """Return the command that makes the refused call, after all that the branch holds."""
    return f"tracefork fork {shlex.quote(shown)} --at {exchanges} --allow-writes"


def message(error: WriteError) -> str:
    """Return the text of the error as a command prints it."""
    return str(error).removeprefix("tracefork: ")
