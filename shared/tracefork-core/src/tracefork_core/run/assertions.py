"""Check in a test that an agent, or a run that was made already, is the one on a tape."""

from __future__ import annotations

import shlex
import subprocess
import sys
from collections.abc import Callable, Sequence
from itertools import zip_longest
from pathlib import Path
from typing import Any

from tracefork_core.run.replay import replay
from tracefork_core.run.rerun_changes import difference
from tracefork_core.tape import Exchange, Tape


def assert_no_diff(
    entrypoint: str | Path | Sequence[str] | Callable[[], Any], expected: str | Path
) -> None:
    """Replay a tape with an agent, and check that the run is the recorded one.

    Args:
        entrypoint: a function without arguments; or what follows the tape in `tracefork replay`: a
            script, "agent.py --fast", or a list of words. A script runs in a process of its own.
        expected: the tape.

    Raises:
        AssertionError: a script made another run; the text is the card that says where.
        DivergenceError: the function made another run.
        UsageError: there is no such tape.
    """
    __tracebackhide__ = True
    if callable(entrypoint):
        with replay(expected):
            entrypoint()
        return
    words = shlex.split(entrypoint) if isinstance(entrypoint, str) else _listed(entrypoint)
    script, *arguments = words
    after = ["--", *arguments] if arguments else []
    command = [sys.executable, "-m", "tracefork_core", "replay", str(expected), script, *after]
    done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603
    if done.returncode != 0:
        raise AssertionError(
            f"{shlex.join(map(str, words))} made another run than {expected} holds (exit "
            f"{done.returncode}):\n{done.stderr.strip()}"
        )


def assert_matches(tape: str | Path, expected: str | Path) -> None:
    """Check that two tapes hold the same requests, in the same order.

    Raises:
        AssertionError: they do not; the text says where they differ first.
        UsageError: there is no such tape.
    """
    __tracebackhide__ = True
    with Tape.open(tape) as made:
        assert_same_requests(made.exchanges, expected)


def assert_same_requests(made: Sequence[Exchange], expected: str | Path) -> None:
    """Check that these exchanges ask what a tape holds, in the same order.

    Raises:
        AssertionError: they do not.
    """
    __tracebackhide__ = True
    with Tape.open(expected) as tape:
        for old, new in zip_longest(_compared(tape.exchanges), _compared(made)):
            if new is None:
                raise AssertionError(f"exchange {old.n} of {expected} was not asked for: {old!r}")
            if old is None or old.request != new.request:
                body = new.request_body if new.has_bodies else b""
                raise AssertionError(
                    f"this run differs from {expected}: {difference(new.url, body, old)}"
                )


def _compared(exchanges: Sequence[Exchange]) -> list[Exchange]:
    return [one for one in exchanges if not one.is_auxiliary]


def _listed(words: Path | Sequence[str]) -> list[str]:
    return [str(words)] if isinstance(words, Path) else list(words)
