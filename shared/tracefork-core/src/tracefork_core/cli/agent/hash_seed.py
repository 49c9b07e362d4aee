"""Restart this process with a hash seed, which Python reads only when it starts.

Python hashes strings with a secret that it draws when it starts and never shows. So a set of
strings in a prompt has another order in the next process, unless both processes were started with
the same PYTHONHASHSEED. A recording therefore draws a seed and restarts with it before it loads
anything, and a replay restarts with the seed on the tape: as soon as a word of its command line
turns out to be a tape, or when the command has read its words and finds another.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence

TYPE_CHECKING = False  # This module is loaded at every start: importing typing would slow that.
if TYPE_CHECKING:
    from typing import TypeGuard

VARIABLE = "PYTHONHASHSEED"
ONCE = "TRACEFORKONCE"
_LARGEST = 2**32 - 1

is_own_process = False
"""Whether this process runs only the command line, so that it may be restarted."""


def choose() -> None:
    """Restart this process with a random seed, unless PYTHONHASHSEED holds one."""
    if not _was_started_anew() and not _is_seed(os.environ.get(VARIABLE)):
        _start_anew(drawn(), {ONCE: "1"})


def drawn() -> str:
    """Return a random seed."""
    return str(1 + int.from_bytes(os.urandom(8), "big") % _LARGEST)


def restore_early(words: Sequence[str]) -> None:
    """Restart with the seed on the first tape among a command's words, before anything is loaded.

    To load and parse the command twice would take longer than to guess. A wrong guess costs another
    restart: the command still restores the seed of the tape that it runs.
    """
    names = (name for word in words if word[:1] != "-" for name in (word, f"{word}.tape"))
    path = next((name for name in names if os.path.isfile(name)), None)  # noqa: PTH113
    if path is None or not is_own_process or ONCE in os.environ:
        return
    from pathlib import Path

    from tracefork_core.errors import TraceforkError
    from tracefork_core.tape import Tape

    try:
        with Tape.open(Path(path)) as tape:
            seed = tape.hash_seed
    except (TraceforkError, OSError):
        return  # The command says what is wrong with it.
    if _is_seed(seed) and os.environ.get(VARIABLE) != seed:
        _start_anew(seed, {})


def restore(seed: str | None) -> None:
    """Restart this process with a recorded seed if it has another one; None keeps its own."""
    if not _was_started_anew() and _is_seed(seed) and os.environ.get(VARIABLE) != seed:
        _start_anew(seed, {ONCE: "1"})


def with_seed(environment: Mapping[str, str], seed: str | None) -> dict[str, str]:
    """Return an environment with a recorded seed in it, for a child process."""
    return {**environment, VARIABLE: seed} if _is_seed(seed) else dict(environment)


def _is_seed(text: str | None) -> TypeGuard[str]:
    """Return whether a text is a valid seed; Python does not start with an invalid one."""
    if text is None or not (text.isdecimal() and text.isascii()):
        return False
    return len(text) <= len(str(_LARGEST)) and int(text) <= _LARGEST


def _was_started_anew() -> bool:
    """Return whether this process was restarted already; it is never restarted twice."""
    return os.environ.pop(ONCE, None) is not None


def _start_anew(seed: str, marks: Mapping[str, str]) -> None:
    """Replace this process with the same command and a seed; return if that is not possible."""
    if not is_own_process or not sys.executable or sys.flags.ignore_environment:
        return
    if sys.gettrace() is not None:
        return  # A debugger would lose its program.
    command = [sys.executable, *sys.orig_argv[1:]]
    environment = {**os.environ, VARIABLE: seed, **marks}
    for stream in (sys.stdout, sys.stderr):
        if stream is not None:
            stream.flush()
    if os.name == "posix":
        try:
            os.execve(sys.executable, command, environment)  # noqa: S606 - the very same command
        except OSError:
            return
    # On other systems, execve starts a new process and returns to the shell at once.
    import subprocess

    sys.exit(subprocess.call(command, env=environment))  # noqa: S603 - the very same command
