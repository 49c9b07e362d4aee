"""The progress of a blame is a bar on a terminal, and lines elsewhere."""

from __future__ import annotations

import io
import json
import re
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import httpx2
import pytest
from rich.console import Console

from tracefork_core import record
from tracefork_core.blaming import blame as blaming
from tracefork_core.blaming.engine.evidence import Standing
from tracefork_core.blaming.trials.runner import Progress
from tracefork_core.cli.commands import blame
from tracefork_core.cli.display import progress, screen
from tracefork_core.cli.display.blame_progress import following
from tracefork_core.cli.display.progress import progress as showing
from tracefork_core.cli.display.progress import tell_runs
from tracefork_core.cli.main import main
from tracefork_testkit import ProviderServer

BEGUN = Progress(None, 0, 0, 0.0, None, None, 0.0)
SURE = replace(BEGUN, standing=Standing("certify", 3, 0.706), forks=31, calls=140, seconds=20.0)
PAID = replace(SURE, usd=1.25, left=3.75, share=0.25)


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> io.StringIO:
    """Write to a terminal, and return what is written."""
    written = io.StringIO()
    console = Console(file=written, force_terminal=True, width=120, color_system=None)
    monkeypatch.setattr(screen, "stderr", lambda: console)
    return written


def shown(terminal: io.StringIO, *states: Progress, expected: int | None = None) -> list[str]:
    """Return the last lines on a terminal."""
    with following(expected=expected) as watch:
        for state in states:
            watch(state)
    lines = re.split(r"[\r\n]|\x1b\[[0-9?]*[a-zA-Z]", terminal.getvalue())
    return [line.strip() for line in lines if line.strip()][-2:]


def test_a_bar_shows_how_much_of_the_budget_is_used(terminal: io.StringIO) -> None:
    """It also shows forks, calls, dollars, the likeliest step, and the longest time left."""
    bar, words = shown(terminal, BEGUN, replace(BEGUN, share=0.0), PAID)
    assert re.fullmatch(r"━{8}[╸ ━]* +25 % of the budget", bar)
    assert words == (
        "certify · 31 forks · 140 live calls · $1.25 spent, $3.75 left · "
        "likely: exchange 3 (71%) · 20.0 s · at most 1:00 left"
    )
    bar, words = shown(terminal, BEGUN, replace(BEGUN, share=0.0), replace(PAID, share=1.2))
    assert bar.endswith("100 % of the budget")
    assert words.endswith("· at most 0:00 left")


def test_without_a_budget_the_bar_shows_the_certainty(terminal: io.StringIO) -> None:
    """The usual duration gives the time left, until it has passed.

    In a resumed blame, the forks of the journal took no time.
    """
    read_again = replace(BEGUN, forks=11, calls=40)
    begun = replace(read_again, seconds=2.0)
    bar, words = shown(terminal, read_again, begun, replace(SURE, seconds=22.0), expected=240)
    assert bar.endswith("71 % sure that exchange 3 is decisive")
    assert words.endswith("22.0 s · about 0:20 left")
    _, words = shown(terminal, BEGUN, SURE, expected=100)
    assert words.endswith("· 20.0 s")


def test_before_anything_is_known_there_is_no_bar(terminal: io.StringIO) -> None:
    """Any share would be invented."""
    (words,) = shown(terminal, BEGUN)[-1:]
    assert "0 forks · 0 live calls" in words
    assert "%" not in terminal.getvalue()


def test_work_of_a_known_size_shows_its_share(
    terminal: io.StringIO, capsys: pytest.CaptureFixture[str]
) -> None:
    """Bench and validate show the runs done, of all. Other output is not disturbed."""
    with showing() as tell:
        print("an agent's")
        tell_runs(tell, time.monotonic() - 3, "echo n=8 seed 1", 3, 12)
    assert "25 % of the runs" in terminal.getvalue()
    assert "echo n=8 seed 1 · 3 of 12 runs · about 0:09 left" in terminal.getvalue()
    assert capsys.readouterr().out == "an agent's\n"


def test_without_a_terminal_the_progress_is_lines(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """There is no bar in a log, and a stream is only JSON on stdout."""
    monkeypatch.setattr(progress, "_EVERY", 0.0)
    with following() as watch:
        watch(PAID)
    lines = capsys.readouterr()
    assert lines.out == ""
    assert lines.err.startswith("· certify · 31 forks")
    assert "━" not in lines.err
    with following(streamed=True) as watch:
        watch(PAID)
    streamed = capsys.readouterr()
    assert (json.loads(streamed.out)["progress"]["share"], streamed.err) == (0.25, "")


def test_an_interrupted_blame_shows_how_to_resume(
    tape: Path,
    provider: ProviderServer,
    http: httpx2.Client,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Any other error does not show that."""

    def stopped(*words: object, watch: Callable[[Progress], None], **options: object) -> None:
        watch(BEGUN)
        watch(replace(SURE, calls=10))
        raise KeyboardInterrupt

    with record(tape):
        http.get(f"{provider.url}/bytes/3")
    (tape.parent / "agent.py").touch()
    monkeypatch.chdir(tape.parent)
    monkeypatch.setenv("PYTHONHASHSEED", "0")
    monkeypatch.setattr(progress, "_EVERY", 0.0)
    monkeypatch.setattr(blaming, "blame", stopped)
    assert main(["blame", str(tape), "agent.py", "--oracle", "exit", "--yes"]) == 130
    said = capsys.readouterr().err
    assert "20.0 s · about 0:20 left" in said
    assert "--resume" in said
    with pytest.raises(ValueError, match="x"), blame._resumable():
        raise ValueError("x")
    assert capsys.readouterr().err == ""
