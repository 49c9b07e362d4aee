"""The commands that the page has started: one at a time, each a process of its own."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections import deque
from contextlib import suppress
from pathlib import Path

import msgspec

from tracefork_core.cli.display.text import printable
from tracefork_core.cli.view.offers import Offer
from tracefork_core.errors import UsageError

_LINES = 2_000
"""What is kept of an output; the lines before are counted."""
_LONGEST = 4_000
_GRACE = 5.0
"""Seconds that a command has to end by itself."""


class State(msgspec.Struct, frozen=True, kw_only=True):
    """A command's output from line `start` on, and its exit code once it has ended."""

    job: int
    command: str
    start: int
    lines: list[str]
    exit: int | None


class Job:
    """A command that was started."""

    def __init__(self, number: int, offer: Offer, folder: Path) -> None:
        self.number, self.command = number, offer.command
        self._lines: deque[str] = deque(maxlen=_LINES)
        self._count = 0
        self._lock = threading.Lock()
        self._asked_to_stop = 0
        self._process = subprocess.Popen(  # noqa: S603 - its words are made by `offers`
            [sys.executable, "-m", "tracefork_core", *offer.words],
            cwd=folder,
            env=os.environ | {"NO_COLOR": "1", "COLUMNS": "100"},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        output = self._process.stdout
        assert output is not None
        with output:
            while line := output.readline(_LONGEST):
                text = printable(line.decode("utf-8", "backslashreplace").rstrip("\r\n"))
                with self._lock:
                    self._lines.append(text)
                    self._count += 1

    @property
    def is_running(self) -> bool:
        """Whether it has not ended, or not all of its output was read."""
        return self._process.poll() is None or self._reader.is_alive()

    def state(self, start: int) -> State:
        """Return the output from a line on."""
        ended = not self.is_running
        with self._lock:
            first = self._count - len(self._lines)
            start = max(start, first)
            lines = list(self._lines)[start - first :]
        code = self._process.returncode if ended else None
        return State(job=self.number, command=self.command, start=start, lines=lines, exit=code)

    def cancel(self) -> None:
        """Ask it to end as Ctrl-C does; the third time, end it."""
        sent = (signal.SIGINT, signal.SIGTERM, signal.SIGKILL)[min(self._asked_to_stop, 2)]
        self._asked_to_stop += 1
        if self._process.poll() is None:
            with suppress(ProcessLookupError):
                os.killpg(self._process.pid, sent)


class Jobs:
    """Starts commands, one at a time."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._lock = threading.Lock()
        self._jobs: list[Job] = []

    def start(self, offer: Offer) -> Job:
        """Start a command.

        Raises:
            UsageError: another one is running.
        """
        with self._lock:
            if self._jobs and self._jobs[-1].is_running:
                raise UsageError(
                    f"tracefork: `{self._jobs[-1].command}` is still running. Cancel it, or wait."
                )
            job = Job(len(self._jobs), offer, self._folder)
            self._jobs.append(job)
            return job

    def find(self, number: int) -> Job | None:
        """Return a command that was started."""
        with self._lock:
            return self._jobs[number] if 0 <= number < len(self._jobs) else None

    def close(self) -> None:
        """End what is still running."""
        with self._lock:
            running = [job for job in self._jobs if job.is_running]
        for _ in range(3):
            for job in running:
                job.cancel()
            until = time.monotonic() + _GRACE
            while any(job.is_running for job in running) and time.monotonic() < until:
                time.sleep(0.05)
