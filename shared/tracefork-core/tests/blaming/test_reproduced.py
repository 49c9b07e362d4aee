"""A report can be reproduced byte for byte, except for times, without a price list installed."""

from __future__ import annotations

import json
import sys
from concurrent.futures import ThreadPoolExecutor
from importlib.metadata import version
from pathlib import Path

import pytest
from msgspec.structs import replace

from tracefork_core.blaming.blame import blame
from tracefork_core.blaming.engine.probe import Probe, Trial
from tracefork_core.blaming.report import Report
from tracefork_core.blaming.trials.trial_journal import JOURNAL, read
from tracefork_core.cli.display.blame_report import document
from tracefork_core.errors import UsageError
from tracefork_core.providers import hosts, prices
from tracefork_core.version import __version__

from . import drawing
from .drawn import SHORT, Drawing


def untimed(report: Report) -> str:
    """Return the JSON report without the times of forks."""
    found = document(report, 0)
    for part in (found["ledger"], *found["draws"]):  # type: ignore[misc]
        del part["seconds"]
    return json.dumps(found)


class Grades:
    """An oracle whose repr contains its memory address."""

    def __call__(self, answer: object) -> bool:
        return drawing.good(answer)


def test_two_documents_of_one_seed_are_one_text(tape: Path) -> None:
    """This holds for forks in sequence, forks in parallel, and forks read from the journal.

    Another seed gives another document.
    """

    def blamed(folder: str, seed: int = 0, *, threads: int = 1, resume: bool = False) -> Report:
        with ThreadPoolExecutor(threads) as executor:
            return blame(
                tape,
                drawing.agent,
                Grades(),
                settings=SHORT,
                budget="24 calls",
                seed=seed,
                regrades=3,
                executor=executor,
                folder=tape.parent / folder,
                resume=resume,
            )

    report = blamed("alone")
    alone = untimed(report)
    assert untimed(blamed("together", threads=4)) == alone
    assert untimed(blamed("alone", resume=True)) == alone
    assert untimed(blamed("other", seed=1)) != alone
    one, other = (
        replace(report, draws=(Trial(0, Probe(frozenset(held)), failed=True),))
        for held in ((0, 8), (8, 0))
    )
    assert untimed(one) == untimed(other)


def test_a_resumed_report_uses_the_prices_in_the_journal(
    tape: Path, desk: Drawing, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Resumed without a price list installed, it still has its original costs.

    A blame started there has no prices, and takes no budget in dollars.
    """
    monkeypatch.setitem(hosts._PROVIDERS, "127.0.0.1", "openai")

    def blamed(folder: str, budget: str = "$0.0006", *, resume: bool = False) -> Report:
        place = tape.parent / folder
        return blame(tape, drawing.agent, drawing.good, budget=budget, folder=place, resume=resume)

    priced = blamed("priced")
    assert priced.result.ledger.usd
    made = desk.live
    monkeypatch.setitem(sys.modules, "genai_prices", None)
    monkeypatch.setattr(prices, "lists", lambda: None)
    monkeypatch.setattr(prices, "_lists", lambda: None)
    again = blamed("priced", resume=True)
    assert (desk.live, again.prices) == (made, (*priced.prices, None))
    assert untimed(again) == untimed(priced)
    found = read(tape.parent / "priced" / JOURNAL)
    versions = document(priced, 0)["versions"]
    assert versions == {"tracefork-core": __version__, "genai-prices": version("genai-prices")}
    assert sum(trial.usd or 0.0 for trial in found.trials) == pytest.approx(
        priced.result.ledger.usd
    )
    assert found.prices[0].units == tuple(unit.usd for unit in priced.units)
    with pytest.raises(UsageError, match="known price"):
        blamed("unpriced", resume=True)
    unknown = blamed("unpriced", "12 calls")
    assert unknown.result.ledger.usd is None
    assert [unit.usd for unit in unknown.units] == [None] * drawing.STEPS
