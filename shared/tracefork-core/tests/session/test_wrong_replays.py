"""No replay of a run that was changed is proven: a table of changes, with the unchanged agents.

`wrong_replays` has the agents. A replay is proven if nothing is raised at its end but the error
that the agent itself ended with when it was recorded.
"""

from __future__ import annotations

import io
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tracefork_core import DivergenceError, record, replay
from tracefork_core.order import turnstile
from tracefork_testkit import ProviderServer

from .wrong_replays import TWISTS, Agent

LANES = {
    ("two threads", "they swap their work"): ("main/ask.1", "main/ask.2"),
    ("two threads", "one works in the main thread"): ("main", "main/ask.1"),
    ("two threads", "one works for both"): ("main/ask.1", "main/ask.2"),
    ("two threads", "a third thread works for one"): ("main/ask.3", "main/ask.2"),
    ("two threads", "the main thread's work is in a thread"): ("main/ask.3", "main"),
    ("two threads", "one starts another for its work"): ("main/nested.1/ask.1", "main/ask.1"),
    ("jobs of a pool", "they swap their work"): ("main/ask.1", "main/ask.2"),
    ("jobs of a pool", "both work in one"): ("main/ask.1", "main/ask.2"),
    ("jobs of a pool", "one works in the main thread"): ("main", "main/ask.2"),
    ("two tasks", "they swap their work"): ("main/ask.1", "main/ask.2"),
    ("two tasks", "one after the other in the main task"): ("main", "main/ask.1"),
    ("two tasks", "one starts a task for its work"): ("main/ask.1", "main/ask.2"),
    ("two processes", "they swap their work"): ("main/python.1", "main/python.2"),
    ("two processes", "one works in the parent"): ("main", "main/python.1"),
}
"""The lane now and the lane then, where nothing but the lane tells that the run was changed."""
CHANGES = [(name, twist) for name, (_, twists) in TWISTS.items() for twist in twists]


@pytest.fixture(scope="module")
def server() -> Iterator[ProviderServer]:
    """Serve all agents."""
    with ProviderServer() as server:
        yield server


@pytest.fixture(autouse=True)
def _nothing_comes_late(monkeypatch: pytest.MonkeyPatch) -> None:
    """Wait only shortly for other threads: no agent here leaves one behind."""
    monkeypatch.setattr(turnstile, "GRACE_SECONDS", 0.05)


class Recorded:
    """The tapes of the agents, each recorded when it is first asked for."""

    def __init__(self, folder: Path, url: str) -> None:
        self._folder = folder
        self.url = url
        self._ends: dict[str, type[BaseException] | None] = {}

    def tape(self, name: str) -> Path:
        """Return the tape of an agent."""
        path = self._folder / f"{name}.tape"
        if name not in self._ends:
            error = self._run(path, name, "", is_live=True)
            self._ends[name] = None if error is None else type(error)
        return path

    def error(self, name: str, twist: str, *, strict: bool = True) -> BaseException | None:
        """Replay an agent; return what was raised unless the replay is proven."""
        error = self._run(self.tape(name), name, twist, strict=strict)
        return None if error is None or type(error) is self._ends[name] else error

    def _run(
        self, path: Path, name: str, twist: str, *, is_live: bool = False, strict: bool = True
    ) -> BaseException | None:
        agent: Agent = TWISTS[name][0]
        scope = record(path) if is_live else replay(path, strict=strict)
        sys.stdin = io.TextIOWrapper(io.BytesIO(b"a\nb\nc\n"))
        try:
            with scope:
                agent(self.url, twist)
        except BaseException as error:
            return error
        finally:
            sys.stdin = sys.__stdin__
        return None


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory, server: ProviderServer) -> Recorded:
    """Return the tapes of the agents."""
    return Recorded(tmp_path_factory.mktemp("tapes"), server.url)


@pytest.mark.parametrize(("name", "twist"), CHANGES, ids=map(": ".join, CHANGES))
def test_a_changed_run_is_not_proven(recorded: Recorded, name: str, twist: str) -> None:
    """Whatever is changed, the replay ends with an error that is not the recorded one."""
    error = recorded.error(name, twist)
    assert error is not None
    if (name, twist) in LANES:
        assert isinstance(error, DivergenceError)
        divergence = error.divergence
        assert divergence.kind == "lane"
        assert (divergence.actual, divergence.recorded) == LANES[name, twist]


@pytest.mark.parametrize("name", TWISTS)
def test_an_unchanged_run_is_proven(recorded: Recorded, name: str) -> None:
    """The control."""
    assert recorded.error(name, "") is None


@pytest.mark.parametrize(("name", "twist"), list(LANES)[:6])
def test_without_strict_a_moved_exchange_is_proven_and_noted(
    recorded: Recorded, name: str, twist: str
) -> None:
    """The content is the recorded one, and so is the digest."""
    now, then = LANES[name, twist]
    agent = TWISTS[name][0]
    with replay(recorded.tape(name)) as run:
        agent(recorded.url, twist)
    assert run.digest == run.tape.digest
    assert any(note.endswith(f"{now} now, {then} then") for note in run.moved)
