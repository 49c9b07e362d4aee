"""The workers of a check: processes that replay tapes, several at a time."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

import msgspec

from tracefork_core.cli.agent.child_python import Done, without_result
from tracefork_core.cli.gate import worker
from tracefork_core.cli.gate.manifest import Entry
from tracefork_core.cli.gate.worker import Setup
from tracefork_core.errors import ReplayError

_TAIL = 20
_T = TypeVar("_T", bound=msgspec.Struct)


class LostError(ReplayError):
    """A worker has ended, and the replay with it."""


class Worker:
    """One worker process. Not safe for threads: each thread has its own."""

    def __init__(self, setup: Setup, environment: Mapping[str, str]) -> None:
        self._process = subprocess.Popen(  # noqa: S603 - our own command line
            [sys.executable, "-m", worker.__name__],
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        self.closed = self._ask(setup, worker.Ready).closed

    def replay(self, words: list[str], entry: Entry, folder: Path, *, fresh: bool = False) -> Done:
        """Run `tracefork WORDS`, a replay of an entry with --json, and return its result."""
        with tempfile.TemporaryDirectory(prefix="tracefork-ci-") as place:
            out, err = Path(place, "stdout"), Path(place, "stderr")
            files = str(out), str(err)
            job = worker.Job(words, entry.form, entry.target, str(folder), *files, fresh)
            status = self._ask(job, worker.Done).status
            said = _text(err).splitlines()[-_TAIL:]
            try:
                document = json.loads(_text(out))
            except (ValueError, RecursionError):
                document = None
        if not isinstance(document, dict):
            reason: dict[str, object] = {"reason": without_result(status)}
            return Done(ReplayError.exit_code, reason, said, broke_off=True)
        return Done(status, document, said)

    def stop(self) -> None:
        """Let the process end, and the replay in it. Another thread may be waiting for that."""
        if self._process.stdin is not None:
            with suppress(OSError):  # What a dead worker has not read is still in the buffer.
                self._process.stdin.close()

    def close(self) -> int:
        """End the process, and return its status."""
        self.stop()
        if self._process.stdout is not None:
            self._process.stdout.close()
        return self._process.wait()

    def _ask(self, question: msgspec.Struct, answer: type[_T]) -> _T:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        try:
            self._process.stdin.write(msgspec.json.encode(question) + b"\n")
            self._process.stdin.flush()
            line = self._process.stdout.readline()
        except (BrokenPipeError, ValueError):  # It has died, or was stopped.
            line = b""
        if not line:
            raise LostError(
                f"tracefork: the process that replayed it ended with status {self.close()}."
            )
        return msgspec.json.decode(line, type=answer)


class Workers:
    """The workers of one thread, by hash seed and network."""

    def __init__(self) -> None:
        self._workers: dict[tuple[Setup, str], Worker] = {}

    def worker(self, setup: Setup, environment: Mapping[str, str]) -> Worker:
        """Return the worker for an agent and a hash seed; start it if it does not run."""
        key = setup, environment.get("PYTHONHASHSEED", "")
        if key not in self._workers:
            self._workers[key] = Worker(setup, environment)
        return self._workers[key]

    def forget(self, setup: Setup, environment: Mapping[str, str]) -> None:
        """Start another process for the next tape of this kind."""
        self._workers.pop((setup, environment.get("PYTHONHASHSEED", "")), None)

    def stop(self) -> None:
        """Let all of them end, and the replays in them."""
        for one in list(self._workers.values()):
            one.stop()

    def close(self) -> None:
        """End all of them."""
        for one in self._workers.values():
            one.close()


class PerThread(threading.local):
    """The workers of the current thread, made when they are first needed."""

    def __init__(self, all_of_them: list[Workers]) -> None:
        self.workers = Workers()
        all_of_them.append(self.workers)


def _text(file: Path) -> str:
    return file.read_bytes().decode("utf-8", "backslashreplace") if file.exists() else ""


def cores() -> int:
    """Return how many processors this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
