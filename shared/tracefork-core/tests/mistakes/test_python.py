"""Invalid arguments of `record`, `replay`, `fork` and `blame` in Python."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx2
import pytest

import tracefork_core as tracefork
from tracefork_testkit import ProviderServer

from .conftest import golden, normalised

GIVEN: dict[str, Callable[[Any], object]] = {
    "record-into-a-folder": lambda here: enter(tracefork.record(here)),
    "record-over-a-tape": lambda here: enter(tracefork.record(here / "run.tape")),
    "replay-of-no-tape": lambda here: enter(tracefork.replay(here / "gone.tape")),
    "replay-of-a-folder": lambda here: enter(tracefork.replay(here)),
    "open-a-folder": tracefork.Tape.open,
    "a-mode-nobody-knows": lambda here: enter(
        tracefork.record(here / "x.tape", mode="secret")  # type: ignore[arg-type]
    ),
    "a-word-for-a-list-of-masks": lambda here: enter(
        tracefork.record(here / "x.tape", mask="TOKEN")
    ),
    "a-word-for-a-list-of-hosts": lambda here: enter(
        tracefork.replay(here / "run.tape", allow="localhost")
    ),
    "a-word-for-a-list-of-matchers": lambda here: enter(
        tracefork.replay(here / "run.tape", match="json")
    ),
    "a-fork-of-no-step": lambda here: enter(tracefork.fork(here / "run.tape", at="plan")),
    "a-fork-past-the-end": lambda here: enter(tracefork.fork(here / "run.tape", at=9)),
    "a-status-that-is-none": lambda _: tracefork.Fail(status=200),
    "a-generator-as-an-agent": lambda here: tracefork.record(here / "x.tape")(generates),
    "a-budget-that-is-none": lambda here: tracefork.blame(
        here / "run.tape", agent=dict, oracle=bool, budget="much"
    ),
}


def enter(scope: Any) -> None:
    """Enter a block that does nothing."""
    with scope:
        pass


def generates() -> Any:
    """A generator function, which no session can surround."""
    yield 1


@pytest.fixture
def run(tmp_path: Path, provider: ProviderServer, http: httpx2.Client) -> Path:
    """Return a folder with a tape of one exchange."""
    with tracefork.record(tmp_path / "run.tape"):
        http.get(f"{provider.url}/bytes/1")
    return tmp_path


def said(error: BaseException, folder: Path) -> list[str]:
    """Return an error as in the last lines of a traceback."""
    return normalised(f"{type(error).__name__}: {error}", (folder, "HERE"))


@pytest.mark.parametrize("name", GIVEN)
def test_an_invalid_argument_raises_a_usage_error_and_writes_nothing(run: Path, name: str) -> None:
    """The message says what is valid."""
    before = sorted(run.iterdir())
    with pytest.raises(tracefork.UsageError) as raised:
        GIVEN[name](run)
    golden(f"python-{name}", said(raised.value, run))
    assert sorted(run.iterdir()) == before


def test_an_open_block_cannot_be_entered_again(run: Path) -> None:
    """Each run is a block of its own."""
    scope = tracefork.record(run / "x.tape")
    with scope, pytest.raises(tracefork.UsageError) as raised:
        enter(scope)
    golden("python-a-block-entered-twice", said(raised.value, run))


def test_a_nested_replay_answers_only_its_own_block(run: Path, http: httpx2.Client) -> None:
    """So the outer replay misses its request and diverges."""
    outer = tracefork.replay(run / "run.tape")
    with pytest.raises(tracefork.DivergenceError) as raised, outer as replayed:
        with tracefork.replay(run / "run.tape"):
            http.get(replayed.tape.exchanges[0].url)
    golden("python-a-replay-in-a-replay", said(raised.value, run))


def test_errors_of_tracefork_are_runtime_errors(run: Path) -> None:
    """Retry policies for network errors and timeouts leave them alone."""
    with pytest.raises(RuntimeError):
        enter(tracefork.replay(run / "gone.tape"))
