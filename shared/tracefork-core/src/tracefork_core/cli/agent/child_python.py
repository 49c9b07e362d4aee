"""A Python process of our own: run it, and read what it printed."""

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
    """A process that is over. `status` is None where it took too long and was stopped."""

    status: int | None
    stdout: str
    stderr: str

    @property
    def said(self) -> list[str]:
        """The last lines of what it wrote on stderr."""
        return self.stderr.splitlines()[-_TAIL:]


@dataclass(frozen=True, slots=True)
class Done:
    """What a command with --json came to.

    Attributes:
        exit: its exit code; that of a failed replay where it printed no document.
        document: what it printed; a `reason` alone where that is no document.
        said: the last lines of what it wrote on stderr.
        broke_off: whether it printed no document.
    """

    exit: int
    document: dict[str, object]
    said: list[str]
    broke_off: bool = False

    @property
    def reason(self) -> str:
        """Why it failed, in its own words where it has some."""
        error = self.document.get("error")
        reason = error.get("message") if isinstance(error, dict) else self.document.get("reason")
        return str(reason or "")


def run(words: Sequence[str], folder: Path, environment: Mapping[str, str]) -> Done:
    """Run `python -m WORDS`, a command that prints one JSON document."""
    process = start(words, folder, environment)
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
) -> Process:
    """Run `python -m WORDS` to its end, with no standard input; `timeout` is in seconds."""
    # Files, not pipes: a process that the agent left behind would hold a pipe open.
    with tempfile.TemporaryDirectory(prefix="tracefork-", ignore_cleanup_errors=True) as place:
        paths = Path(place, "stdout"), Path(place, "stderr")
        with paths[0].open("wb") as out, paths[1].open("wb") as err:
            try:
                status: int | None = subprocess.run(  # noqa: S603 - our own command line
                    [sys.executable, "-m", *words],
                    cwd=folder,
                    env=environment,
                    stdin=subprocess.DEVNULL,
                    stdout=out,
                    stderr=err,
                    timeout=timeout,
                    check=False,
                ).returncode
            except subprocess.TimeoutExpired:
                status = None
        said = [path.read_bytes().decode("utf-8", "backslashreplace") for path in paths]
    return Process(status, *said)


def leave(path: Path, what: msgspec.Struct) -> None:
    """Write down what a process of ours has to say to another one."""
    # Not msgspec's JSON: names, arguments and variables need not be Unicode.
    path.write_text(json.dumps(msgspec.to_builtins(what)))


def left(path: Path, kind: type[_Left]) -> _Left:
    """Read what another process of ours wrote down."""
    return msgspec.convert(json.loads(path.read_bytes()), kind)


def without_result(status: int | None) -> str:
    """Return what to say of a run that left nothing to read."""
    return f"the run ended without a result, with status {status}"
