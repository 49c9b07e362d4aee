"""Grade an outcome by a rule that is written as text.

The oracles, and when they pass a run:

exit                     it ends with status 0; status 125 means that it cannot be graded
contains:TEXT            it returned or printed this text, perhaps among other text
regex:PATTERN            the pattern matches in what it returned or printed
not-regex:PATTERN        the pattern does not match
equals:TEXT              it returned or printed this text, ignoring surrounding white space
json:/pointer=VALUE      it returned or printed JSON with this value at the pointer
PKG.MOD:FN               the function returns True
judge:RUBRIC.md          a model passes it by the rubric in the file; set TRACEFORK_JUDGE_MODEL
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path

from tracefork_core.blaming.trials.trial import Oracle
from tracefork_core.errors import UsageError
from tracefork_core.tape.json_pointer import parts

SKIPS = 125
"""Exit status of a program that cannot be graded, as for `git bisect run`."""


@dataclass(frozen=True, slots=True)
class Ended:
    """The outcome of a program: its exit status and its output on stdout."""

    status: int
    output: str

    def __str__(self) -> str:
        """The output, which oracles read as text."""
        return self.output


@dataclass(frozen=True, slots=True)
class Exits:
    """Pass a program that ends with status 0; an exception is bad, status 125 gives no grade."""

    grades_errors = True

    def __call__(self, outcome: object) -> bool:
        """Return whether the run ended with status 0.

        Raises:
            LookupError: the status says that the run cannot be graded.
        """
        if isinstance(outcome, SystemExit):  # The `main` of a program ends like this.
            outcome = Ended(_status(outcome.code), "")
        if isinstance(outcome, BaseException):
            return False
        if isinstance(outcome, Ended) and outcome.status == SKIPS:
            raise LookupError(f"status {SKIPS} says that it cannot be graded")
        return not isinstance(outcome, Ended) or outcome.status == 0


def _status(code: object) -> int:
    """Return the exit status of Python for the code of a SystemExit."""
    return code & 0xFF if isinstance(code, int) else int(code is not None)


@dataclass(frozen=True, slots=True)
class Matches:
    """Pass an outcome in which a pattern matches; with `wanted=False`, one in which it does not."""

    pattern: str
    wanted: bool = True

    def __call__(self, outcome: object) -> bool:
        """Return whether the pattern matches, or does not if it is unwanted."""
        return (re.search(self.pattern, str(outcome)) is not None) is self.wanted


@dataclass(frozen=True, slots=True)
class Equals:
    """Pass an outcome that equals a text, ignoring surrounding white space."""

    text: str

    def __call__(self, outcome: object) -> bool:
        """Return whether the outcome equals the text."""
        return str(outcome).strip() == self.text.strip()


@dataclass(frozen=True, slots=True)
class HasValue:
    """Pass a JSON document with a value at a JSON pointer; `value` is JSON text."""

    pointer: str
    value: str

    def __call__(self, outcome: object) -> bool:
        """Return whether the value is there; False if the outcome is not JSON."""
        try:
            document = json.loads(str(outcome)) if isinstance(outcome, str | Ended) else outcome
        except ValueError:
            return False
        for name in parts(self.pointer):
            if isinstance(document, Mapping) and name in document:
                document = document[name]
            elif isinstance(document, list | tuple) and name in map(str, range(len(document))):
                document = document[int(name)]
            else:
                return False
        value = json.loads(self.value)
        if isinstance(document, bool) or isinstance(value, bool):
            return document is value
        return bool(document == value)


def read_oracle(words: str, folder: Path | None = None) -> Oracle:
    """Return the oracle that a text names.

    Args:
        words: one of the forms listed above.
        folder: folder of a rubric file; the current one by default.

    Raises:
        UsageError: the text names no oracle, its pattern or pointer is invalid, its function or
            rubric does not exist, or no model is set for the judge.
    """
    kind, colon, rest = words.partition(":")
    if words == "exit":
        return Exits()
    if colon and kind in ("regex", "not-regex"):
        try:
            re.compile(rest)
        except re.error as error:
            raise UsageError(f"tracefork: {rest!r} is not a valid pattern: {error}.") from error
        return Matches(rest, wanted=kind == "regex")
    if colon and kind == "contains":
        return Matches(re.escape(rest))
    if colon and kind == "equals":
        return Equals(rest)
    if colon and kind == "json":
        pointer, equal, value = rest.partition("=")
        if not equal or (pointer and not pointer.startswith("/")):
            raise UsageError(f"tracefork: write json:/pointer=VALUE, not {words!r}.")
        return HasValue(pointer, _as_json(value))
    if colon and kind == "judge":
        return _judge((folder or Path.cwd()) / rest)
    if colon and rest.isidentifier():
        return _function(kind, rest)
    raise UsageError(
        f"tracefork: {words!r} is not an oracle. Use exit, contains:TEXT, regex:PATTERN, "
        "not-regex:PATTERN, equals:TEXT, json:/pointer=VALUE, judge:RUBRIC.md or PKG.MOD:FN."
    )


def _as_json(value: str) -> str:
    """Return a value as JSON text; a value that is not JSON becomes a string."""
    try:
        json.loads(value)
    except ValueError:
        return json.dumps(value)
    return value


def _judge(rubric: Path) -> Oracle:
    from tracefork_core.blaming.oracles.judge import Judge

    try:
        text = rubric.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        why = getattr(error, "strerror", None) or error
        raise UsageError(f"tracefork: cannot read the rubric {rubric}: {why}.") from error
    if not (model := os.environ.get("TRACEFORK_JUDGE_MODEL")):
        raise UsageError("tracefork: no model is set for the judge. Set TRACEFORK_JUDGE_MODEL.")
    return Judge(text, model)


def _function(module: str, name: str) -> Oracle:
    try:
        function = getattr(import_module(module), name)
    except (ImportError, AttributeError) as error:
        raise UsageError(
            f"tracefork: no oracle {module}:{name}: {error}. tracefork looks in {Path.cwd()} and "
            "in the installed packages."
        ) from error
    if not callable(function):
        raise UsageError(
            f"tracefork: {module}:{name} is not a function. An oracle PKG.MOD:FN must be one."
        )
    oracle: Oracle = function
    return oracle
