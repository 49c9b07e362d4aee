"""A test is recorded the first time it runs, and replayed from then on."""

from __future__ import annotations

from pathlib import Path

import httpx2
import pytest

from tracefork_core import DivergenceError, Tape, UsageError, use_tape
from tracefork_testkit import ProviderServer


@pytest.fixture(autouse=True)
def _own_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """These tests run on build servers too."""
    monkeypatch.delenv("CI", raising=False)
    monkeypatch.delenv("TRACEFORK_TAPE_MODE", raising=False)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A tape in a folder that is not there yet."""
    return tmp_path / "tapes" / "refund.tape"


class Agent:
    """Counts what is asked of the server."""

    def __init__(self, server: ProviderServer, http: httpx2.Client) -> None:
        self._server = server
        self._http = http

    def __call__(self, size: int = 9) -> bytes:
        return self._http.get(f"{self._server.url}/bytes/{size}").content

    @property
    def asked(self) -> int:
        return len(self._server.requests)


@pytest.fixture
def agent(provider: ProviderServer, http: httpx2.Client) -> Agent:
    """Something that asks a server."""
    return Agent(provider, http)


def fail(agent: Agent, size: int) -> None:
    """Ask, and then raise an error of the test's."""
    agent(size)
    raise ZeroDivisionError


def test_the_first_run_is_recorded_and_the_next_is_replayed(agent: Agent, path: Path) -> None:
    """No other file is left beside the tape."""
    with use_tape(path):
        first = agent()
    with use_tape(path):
        assert agent() == first
    assert agent.asked == 1
    assert list(path.parent.iterdir()) == [path]


async def test_an_async_block_is_the_same(agent: Agent, path: Path) -> None:
    """`async with` records and replays, too."""
    for _ in range(2):
        async with use_tape(path):
            agent()
    assert agent.asked == 1


def test_a_run_that_asks_for_something_else_diverges(agent: Agent, path: Path) -> None:
    """It does not record again by itself: the tape is what was looked at."""
    with use_tape(path):
        agent()
    with pytest.raises(DivergenceError), use_tape(path):
        agent(10)
    with pytest.raises(DivergenceError), use_tape(path):
        pass
    assert agent.asked == 1


def test_a_failed_first_run_leaves_no_tape(agent: Agent, path: Path) -> None:
    """Else the next run would replay the failure."""
    with pytest.raises(ZeroDivisionError), use_tape(path):
        fail(agent, 9)
    assert list(path.parent.iterdir()) == []


def test_rewrite_records_again_and_a_failure_leaves_the_tape_before(
    agent: Agent, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The variable has precedence over the argument."""
    with use_tape(path):
        agent()
    monkeypatch.setenv("TRACEFORK_TAPE_MODE", "rewrite")
    with pytest.raises(ZeroDivisionError), use_tape(path, mode="none"):
        fail(agent, 10)
    with Tape.open(path) as tape:
        assert tape.exchanges[0].request.url.endswith("/bytes/9")
    with use_tape(path, mode="none"):
        agent(10)
    with Tape.open(path) as tape:
        assert tape.exchanges[0].request.url.endswith("/bytes/10")
    assert agent.asked == 3


def test_a_build_server_records_only_where_it_is_told_to(
    agent: Agent, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else a test without a committed tape would pass there, by asking a model each time."""
    monkeypatch.setenv("CI", "true")
    for when in (None, "once", "rewrite"):
        with pytest.raises(UsageError, match="CI is set"), use_tape(path, mode=when):
            agent()
    with pytest.raises(UsageError, match="there is no tape"), use_tape(path, mode="none"):
        agent()
    assert agent.asked == 0
    monkeypatch.setenv("TRACEFORK_TAPE_MODE", "once")
    with use_tape(path):
        agent()
    monkeypatch.delenv("TRACEFORK_TAPE_MODE")
    with use_tape(path):
        agent()
    assert agent.asked == 1


def test_a_wrong_value_is_named(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The error lists the right ones."""
    monkeypatch.setenv("TRACEFORK_TAPE_MODE", "sometimes")
    with pytest.raises(UsageError, match="none, once, new, rewrite or rerun"), use_tape(path):
        pass


def test_a_block_is_open_once_at_a_time(path: Path) -> None:
    """A second entry would lose the first session."""
    block = use_tape(path)
    with block:
        with pytest.raises(UsageError, match="open already"):
            block.__enter__()
    with block:
        pass
