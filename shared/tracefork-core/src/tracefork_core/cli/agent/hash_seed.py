"""Start this process anew with a hash seed: the order of sets is settled before Python starts.

Strings hash with a secret of the process, drawn when it starts and nowhere to be read. A set of
strings that reaches a prompt is in another order in the next process, unless both were started with
the same PYTHONHASHSEED. So a recording draws one and starts anew with it, before it loads anything,
and a replay does so with the one on the tape.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping

TYPE_CHECKING = False  # this is loaded at every start, and typing is not
if TYPE_CHECKING:
    from typing import TypeGuard

VARIABLE = "PYTHONHASHSEED"
_ANEW = "TRACEFORK_ANEW"
_LARGEST = 2**32 - 1

is_own_process = False
"""Whether the command line is all that this process runs, so that it may be started anew."""


def choose() -> None:
    """Start this process anew with a seed drawn at random, where it was not given one."""
    if not _was_started_anew() and not _is_seed(os.environ.get(VARIABLE)):
        _start_anew(drawn())


def drawn() -> str:
    """Return a seed drawn at random."""
    return str(1 + int.from_bytes(os.urandom(8), "big") % _LARGEST)


def restore(seed: str | None) -> None:
    """Start this process anew with a recorded seed, where it has another one; None: keep it."""
    if not _was_started_anew() and _is_seed(seed) and os.environ.get(VARIABLE) != seed:
        _start_anew(seed)


def with_seed(environment: Mapping[str, str], seed: str | None) -> dict[str, str]:
    """Return the environment of a child process that runs with a recorded seed."""
    return {**environment, VARIABLE: seed} if _is_seed(seed) else dict(environment)


def _is_seed(text: str | None) -> TypeGuard[str]:
    """Return whether Python takes a text for a seed: with any other one it does not start."""
    if text is None or not (text.isdecimal() and text.isascii()):
        return False
    return len(text) <= len(str(_LARGEST)) and int(text) <= _LARGEST


def _was_started_anew() -> bool:
    """Return whether this is the second start: there is no third, whatever the first came to."""
    return os.environ.pop(_ANEW, None) is not None


def _start_anew(seed: str) -> None:
    """Replace this process by the same command with a seed; go on without it where that fails."""
    if not is_own_process or not sys.executable or sys.flags.ignore_environment:
        return
    if sys.gettrace() is not None:
        return  # A debugger would lose its program.
    command = [sys.executable, *sys.orig_argv[1:]]
    environment = {**os.environ, VARIABLE: seed, _ANEW: "1"}
    for stream in (sys.stdout, sys.stderr):
        if stream is not None:
            stream.flush()
    if os.name == "posix":
        try:
            os.execve(sys.executable, command, environment)  # noqa: S606 - the very same command
        except OSError:
            return
    # Elsewhere, to replace a process is to start another and give the terminal back at once.
    import subprocess

    sys.exit(subprocess.call(command, env=environment))  # noqa: S603 - the very same command
