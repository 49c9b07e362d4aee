"""Compare the environment of this machine with the recorded one, before a verifier runs in it."""

from __future__ import annotations

import platform

from tracefork_core.errors import UsageError
from tracefork_core.tape.event import Environment
from tracefork_core.tape.repository import lockfile


def differences(recorded: Environment) -> list[str]:
    """Return how this environment differs: another Python, another lockfile."""
    found = []
    if recorded.python != platform.python_version():
        found.append(f"Python {recorded.python} then, {platform.python_version()} now")
    if recorded.lockfile is not None:
        name, sha = recorded.lockfile
        now = lockfile()
        if now is None:
            found.append(f"{name} is missing now")
        elif now != (name, sha):
            same = now[0] == name
            found.append(f"{name} has changed" if same else f"{name} then, {now[0]} now")
    return found


def check(recorded: Environment | None, *, unpinned: bool) -> list[str]:
    """Return the differences that were accepted.

    Raises:
        UsageError: something differs, and that was not accepted.
    """
    found = [] if recorded is None else differences(recorded)
    if found and not unpinned:
        raise UsageError(
            f"tracefork: verifiers need the environment of the recording: {'; '.join(found)}. Run "
            "this there, give a --container, or pass --unpinned to run them here all the same."
        )
    return found
