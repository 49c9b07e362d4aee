"""Oracles by their words: what a run has to come to, to be good.

exit                     it ends with status 0; with 125 nobody can tell
regex:PATTERN            the pattern is found in what it returned or printed
not-regex:PATTERN        it is not
equals:TEXT              that is all it returned or printed, but for white space around it
json:/pointer=VALUE      what it returned or printed is JSON, and has that value there
PKG.MOD:FN               a function says so
judge:RUBRIC.md          a model says so, by a rubric in a file; TRACEFORK_JUDGE_MODEL names it
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
"""With this status a program says that nobody can tell, as for `git bisect run`."""


@dataclass(frozen=True, slots=True)
class Ended:
    """What a program came to: its exit status, and what it printed on stdout."""

    status: int
    output: str

    def __str__(self) -> str:
        """What it printed."""
        return self.output


@dataclass(frozen=True, slots=True)
class Exits:
    """Good is a program that ends with status 0; one that raises is bad, 125 is no grade."""

    grades_errors = True

    def __call__(self, outcome: object) -> bool:
        """Say whether it did."""
        if isinstance(outcome, SystemExit):  # As a function ends that is a program's `main`.
            outcome = Ended(_status(outcome.code), "")
        if isinstance(outcome, BaseException):
            return False
        if isinstance(outcome, Ended) and outcome.status == SKIPS:
            raise LookupError(f"status {SKIPS} says that it cannot be graded")
        return not isinstance(outcome, Ended) or outcome.status == 0


def _status(code: object) -> int:
    """Return the status that Python exits with, for the code of a SystemExit."""
    return code & 0xFF if isinstance(code, int) else int(code is not None)


@dataclass(frozen=True, slots=True)
class Matches:
    """Good is what a pattern is found in, or where it is unwanted, is not."""

    pattern: str
    wanted: bool = True

    def __call__(self, outcome: object) -> bool:
        """Say whether it is."""
        return (re.search(self.pattern, str(outcome)) is not None) is self.wanted


@dataclass(frozen=True, slots=True)
class Equals:
    """Good is a text."""

    text: str

    def __call__(self, outcome: object) -> bool:
        """Say whether it is that."""
        return str(outcome).strip() == self.text.strip()


@dataclass(frozen=True, slots=True)
class HasValue:
    """Good is a JSON document with a value at a pointer; `value` is JSON itself."""

    pointer: str
    value: str

    def __call__(self, outcome: object) -> bool:
        """Say whether it has; what is no document has not."""
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
    """Return the oracle that some words mean; a rubric is looked for in the folder.

    Raises:
        UsageError: they mean none, or there is no such function.
    """
    kind, colon, rest = words.partition(":")
    if words == "exit":
        return Exits()
    if colon and kind in ("regex", "not-regex"):
        try:
            re.compile(rest)
        except re.error as error:
            raise UsageError(f"tracefork: {rest!r} is no pattern: {error}.") from error
        return Matches(rest, wanted=kind == "regex")
    if colon and kind == "equals":
        return Equals(rest)
    if colon and kind == "json":
        pointer, equal, value = rest.partition("=")
        if not equal or (pointer and not pointer.startswith("/")):
            raise UsageError(f"tracefork: say json:/pointer=VALUE, not {words!r}.")
        return HasValue(pointer, _as_json(value))
    if colon and kind == "judge":
        return _judge((folder or Path.cwd()) / rest)
    if colon and rest.isidentifier():
        return _function(kind, rest)
    raise UsageError(
        f"tracefork: {words!r} is no oracle. There are: exit, regex:PATTERN, not-regex:PATTERN, "
        "equals:TEXT, json:/pointer=VALUE, judge:RUBRIC.md and PKG.MOD:FN."
    )


def _as_json(value: str) -> str:
    """Return a value as JSON: a word that is none is a text."""
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
        raise UsageError("tracefork: which model is the judge? Set TRACEFORK_JUDGE_MODEL.")
    return Judge(text, model)


def _function(module: str, name: str) -> Oracle:
    try:
        found = getattr(import_module(module), name)
    except (ImportError, AttributeError) as error:
        raise UsageError(
            f"tracefork: no oracle {module}:{name}: {error}. It is looked for in {Path.cwd()} and "
            "in what is installed."
        ) from error
    if not callable(found):
        raise UsageError(
            f"tracefork: {module}:{name} is no function, and an oracle is one (PKG.MOD:FN)."
        )
    oracle: Oracle = found
    return oracle
