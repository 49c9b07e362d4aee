"""Processes that can be killed: a nursery forks them, and each reports what it has seen."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

AGENTS = Path(__file__).with_name("agents.py")


@dataclass
class Ended:
    """What a process saw, and the error that ended it."""

    seen: list[dict[str, Any]] = field(default_factory=list)
    error: str | None = None
    message: str = ""
    began: bool = False
    points: int | None = None


class Nursery:
    """Runs agents in processes of their own, one at a time."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, str(AGENTS)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )

    def run(
        self,
        verb: str,
        agent: str,
        url: str,
        tape: Path,
        *,
        kill_after: int | None = None,
        kill_in_close: bool = False,
        wait: float = 0.0,
        **more: Any,
    ) -> Ended:
        """Run an agent; kill it `wait` seconds after it has seen `kill_after` things.

        Or after its block began to close. With `die_at` it ends itself there; `weak` takes the
        rights of root from it.
        """
        command = {"verb": verb, "agent": agent, "url": url, "tape": str(tape), **more}
        command |= {"stays": True} if kill_in_close else {}
        stdin, stdout = self._process.stdin, self._process.stdout
        assert stdin is not None
        assert stdout is not None
        stdin.write(json.dumps(command).encode() + b"\n")
        stdin.flush()
        ended, pid, killed = Ended(), 0, False
        for line in stdout:
            said = json.loads(line)
            pid = said.get("pid", pid)
            ended.began = ended.began or "began" in said
            ended.points = said.get("points", ended.points)
            if "query" in said:
                ended.seen.append(said)
            elif "error" in said:
                ended.error, ended.message = said["error"], said["message"]
            elif "ended" in said:
                assert (said["ended"] == signal.SIGKILL) is (killed or self._died(ended, more))
                return ended
            now = len(ended.seen) == kill_after if not kill_in_close else "closing" in said
            if not killed and "pid" not in said and now:
                time.sleep(wait)
                os.kill(pid, signal.SIGKILL)
                killed = True
        raise AssertionError("the nursery ended")

    def _died(self, ended: Ended, more: dict[str, Any]) -> bool:
        return more.get("die_at") is not None and ended.points is None

    def close(self) -> None:
        """End the nursery."""
        self._process.communicate()


@pytest.fixture(scope="module")
def nursery() -> Iterator[Nursery]:
    """Start a nursery; it forks, so nothing of the test process runs in its children."""
    opened = Nursery()
    yield opened
    opened.close()


@pytest.fixture
def another_nursery() -> Iterator[Nursery]:
    """Start a second nursery, for two processes at the same time."""
    opened = Nursery()
    yield opened
    opened.close()
