"""Check in a test that an agent, or a run that was made already, is the one on a tape."""

from __future__ import annotations

import shlex
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from tracefork_core.comparing.diff import diff
from tracefork_core.comparing.finding import Kind
from tracefork_core.run.replay import replay
from tracefork_core.tape import Tape

_ASKED: frozenset[Kind] = frozenset({"input differs", "operation differs", "missing", "extra"})


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


def assert_matches(tape: str | Path | Tape, expected: str | Path) -> None:
    """Check that a run asked what another tape holds, as `diff` compares the two.

    Other answers are allowed, and so is what they bring into later questions.

    Raises:
        AssertionError: it asked something else, more or less; the text says where first.
        UsageError: there is no such tape.
        ReplayError: neither tape holds an exchange.
    """
    __tracebackhide__ = True
    found = [one for one in diff(expected, tape).findings if one.kind in _ASKED]
    if found:
        first, path = found[0], tape.path if isinstance(tape, Tape) else tape
        where = f"{first.kind} {first.pointer}".strip()
        raise AssertionError(
            f"this run differs from {expected} at exchange {first.place} ({first.operation}: "
            f"{where}). To see it: tracefork diff {shlex.join(map(str, (expected, path)))}"
        )


def _listed(words: Path | Sequence[str]) -> list[str]:
    return [str(words)] if isinstance(words, Path) else list(words)
