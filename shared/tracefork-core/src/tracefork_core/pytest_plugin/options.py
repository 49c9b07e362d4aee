"""Read what the marks of a test say about its tape."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest

from tracefork_core.errors import UsageError
from tracefork_core.pytest_plugin.plugin import MARK
from tracefork_core.run.use_tape import TapeMode, mode_of

_OF_BLOCKS = frozenset({"allow", "match", "mask", "writes", "reads", "tools"})
_OWN = frozenset({"mode", "strict", "repeat", "pass_rate", "confidence"})
_CONFIDENCE = 0.8


@dataclass(frozen=True, slots=True)
class Options:
    """What the marks of a test say.

    Attributes:
        mode: the mode that the mark or the settings ask for; the command line and the environment
            have precedence.
        strict: as for `replay`.
        repeat: how often the test runs at most; None for once.
        pass_rate: how often it has to pass.
        confidence: how certain the verdict on `pass_rate` has to be.
        of_blocks: the arguments of `record`, `replay` and `rerun`.
    """

    mode: TapeMode
    strict: bool = False
    repeat: int | None = None
    pass_rate: float = 0.9
    confidence: float = _CONFIDENCE
    of_blocks: dict[str, Any] = field(default_factory=dict)


def default_mode(config: pytest.Config) -> TapeMode:
    """Return the mode of a test whose mark sets none."""
    return mode_of(config.getini("tape_mode") or "none")


def options_of(item: pytest.Item) -> Options:
    """Return what the marks of a test say; a nearer mark has precedence.

    Raises:
        UsageError: a mark has an argument that does not exist, or one out of range.
    """
    given: dict[str, Any] = {}
    for mark in reversed(list(item.iter_markers(MARK))):
        if mark.args:
            raise UsageError(
                f"tracefork: the mark tape takes arguments by name only (got {mark.args[0]!r}). "
                "The file of the tape is named after the test."
            )
        given |= mark.kwargs
    if unknown := sorted(given.keys() - _OF_BLOCKS - _OWN):
        known = ", ".join(sorted(_OF_BLOCKS | _OWN))
        raise UsageError(
            f"tracefork: the mark tape has no argument {unknown[0]!r}. It has {known}."
        )
    repeat, rate = given.get("repeat"), given.get("pass_rate", 0.9)
    confidence = given.get("confidence", _CONFIDENCE)
    if repeat is not None and (not isinstance(repeat, int) or repeat < 1):
        raise UsageError(f"tracefork: repeat must be a number of runs (got {repeat!r}).")
    if not 0 < rate < 1 or not 0 < confidence < 1:
        raise UsageError(
            f"tracefork: pass_rate and confidence lie between 0 and 1 (got {rate!r} and "
            f"{confidence!r})."
        )
    return Options(
        mode_of(given.get("mode") or item.config.getini("tape_mode") or "none"),
        given.get("strict", False),
        repeat,
        rate,
        confidence,
        {name: value for name, value in given.items() if name in _OF_BLOCKS},
    )
