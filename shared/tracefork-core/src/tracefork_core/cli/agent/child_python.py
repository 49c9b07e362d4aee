"""Run Python in a child process, and read its output."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import msgspec

from tracefork_core.errors import ReplayError

_TAIL = 20
_Left = TypeVar("_Left", bound=msgspec.Struct)


@dataclass(frozen=True, slots=True)
class Process:
    """A finished process; `status` is None if it exceeded its timeout and was killed."""

    status: int | None
    stdout: str
    stderr: str

    @property
    def said(self) -> list[str]:
        """The last lines that it wrote to stderr."""
        return self.stderr.splitlines()[-_TAIL:]


@dataclass(frozen=True, slots=True)
class Done:
    """The result of a command with --json.

    Attributes:
        exit: its exit code; that of a failed replay if it printed no document.
        document: the document that it printed; only a `reason` if it printed none.
        said: the last lines that it wrote to stderr.
        broke_off: whether it printed no document.
    """

    exit: int
    document: dict[str, object]
    said: list[str]
    broke_off: bool = False

    @property
    def reason(self) -> str:
        """Why it failed, from its error or its verdict; empty if it gave no reason."""
        error = self.document.get("error")
        reason = error.get("message") if isinstance(error, dict) else self.document.get("reason")
        return str(reason or "")


def run(
    words: Sequence[str],
    folder: Path,
    environment: Mapping[str, str],
    stdin: bytes | None = b"",
) -> Done:
    """Run `python -m WORDS`, a command that prints one JSON document; `stdin` as for `start`."""
    process = start(words, folder, environment, stdin=stdin)
    try:
        document = json.loads(process.stdout)
    except (ValueError, RecursionError):
        document = None
    if process.status is None or not isinstance(document, dict):
        reason: dict[str, object] = {"reason": without_result(process.status)}
        return Done(ReplayError.exit_code, reason, process.said, broke_off=True)
    return Done(process.status, document, process.said)


def start(
    words: Sequence[str],
    folder: Path,
    environment: Mapping[str, str],
    timeout: float | None = None,
    stdin: bytes | None = b"",
) -> Process:
    """Run `python -m WORDS` to its end.

    Args:
        words: the module and its arguments.
        folder: where it runs.
        environment: its environment variables.
        timeout: in seconds.
        stdin: its standard input; None for that of this process.
    """
    # Files, not pipes: a process that the agent left behind would hold a pipe open.
    with tempfile.TemporaryDirectory(prefix="tracefork-", ignore_cleanup_errors=True) as temporary:
        paths = Path(temporary, "stdout"), Path(temporary, "stderr")
        given = Path(temporary, "stdin")
        given.write_bytes(stdin or b"")
        with given.open("rb") as source, paths[0].open("wb") as out, paths[1].open("wb") as err:
            try:
                status: int | None = subprocess.run(  # noqa: S603 - our own command line
                    [sys.executable, "-m", *words],
                    cwd=folder,
                    env=environment,
                    stdin=None if stdin is None else source,
                    stdout=out,
                    stderr=err,
                    timeout=timeout,
                    check=False,
                ).returncode
            except subprocess.TimeoutExpired:
                status = None
        output = [path.read_bytes().decode("utf-8", "backslashreplace") for path in paths]
    return Process(status, *output)


def leave(path: Path, what: msgspec.Struct) -> None:
    """Write a message for another tracefork process to a file; `left` reads it."""
    # Not msgspec's JSON, which is Unicode only: names, arguments and variables may not be.
    path.write_text(json.dumps(msgspec.to_builtins(what)))


def left(path: Path, kind: type[_Left]) -> _Left:
    """Read a message that another tracefork process wrote with `leave`."""
    return msgspec.convert(json.loads(path.read_bytes()), kind)


def without_result(status: int | None) -> str:
    """Return the reason to report for a run that wrote no result."""
    return f"the run ended without a result, with status {status}"
