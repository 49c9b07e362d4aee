"""Measure blame for an outcome that a coin decides: the correct verdict names no step."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

from bench import Bench, Samples
from peers import IN_MEMORY
from recorders import CORE, Recorder
from scripted import body, client, converse, transport
from table import Measurement, Row, Spread

TITLE = "Blame for an outcome that is a coin"
_CHANCES = (0.1, 0.3, 0.5)
CASES = tuple(
    f"fails {100 * chance:.0f} %{what}" for chance in _CHANCES for what in ("", ", calls")
)
_FORKS_EACH = 20
_MOST = 5
"""The largest share of runs, in percent, in which an innocent step may be named."""
_QUESTIONS = [f"Step {step}." for step in range(6)]
_LAST = len(_QUESTIONS) - 1


def measure(bench: Bench) -> Measurement:
    """Measure in how many failed runs an innocent step is blamed."""
    runs = 2 if bench.quick else 8
    rows: list[Row] = []
    for chance in _CHANCES[1:2] if bench.quick else _CHANCES:
        found = {
            who: bench.ask(who, task, chance=chance, runs=runs, path=bench.path())
            for who, task in ((CORE, blame), (IN_MEMORY, blame_of_peer))
            if bench.present(who)
        }
        case = f"fails {100 * chance:.0f} %"
        rows.extend(_accused(case, who, runs, one) for who, one in found.items())
        for who, one in found.items():
            took = f"{sum(one['seconds']):,.1f} s of CPU in all"
            rows.append(Row(f"{case}, calls", who, Spread.of(one["calls"]), "calls", took))
    return Measurement(
        TITLE,
        f"A run of {len(_QUESTIONS)} steps fails by a coin that its last answer tosses, whatever "
        "was said before. Only failed runs are blamed. Wrong: an earlier step is named. "
        f"Calls: the live calls of one blame. The peer forks each step {_FORKS_EACH} times and "
        "decides by its own rule; tracefork stops when it is certain.",
        rows,
    )


def _accused(case: str, who: str, runs: int, found: Samples) -> Row:
    accused = int(sum(found["accused"]))
    share = Spread.of([100 * accused / runs])
    compared = f"{accused} of {runs} runs"
    if who != CORE:
        return Row(case, who, share, "% wrong", compared)
    return Row(case, who, share, "% wrong", compared, f"≤ {_MOST} %", share.median <= _MOST)


def blame(recorder: Recorder, chance: float, runs: int, path: str) -> Samples:
    """Blame failed runs; return for each whether an innocent step was named, and its calls."""
    import tracefork_core

    found: Samples = {"accused": [], "calls": [], "seconds": []}
    for seed in range(runs):
        tape, asked = Path(f"{path}-{seed}.tape"), client(_tossing(random.Random(seed), chance))
        failed = False
        while not failed:
            with tracefork_core.record(tape, overwrite=True):
                failed = converse(asked, _QUESTIONS) == "FAIL"
        began = time.process_time()
        report = tracefork_core.blame(
            tape, partial(converse, asked, _QUESTIONS), lambda said: said != "FAIL", seed=seed
        )
        found["seconds"].append(time.process_time() - began)
        found["accused"].append(float(bool(set(report.result.verdict.units) - {_LAST})))
        found["calls"].append(float(report.result.ledger.live_calls))
    return found


def blame_of_peer(recorder: Recorder, chance: float, runs: int, path: str) -> Samples:
    """Do the same with the published peer."""
    from tracefork import BlameEngine, StringMatchOracle  # type: ignore[import-not-found]
    from tracefork import Recorder as PeerRecorder

    found: Samples = {"accused": [], "calls": [], "seconds": []}
    oracle = StringMatchOracle(success_re="SUCCESS", failure_re="FAIL")
    for seed in range(runs):
        asked: list[int] = []
        tossing = _tossing(random.Random(seed), chance, asked)
        failed = False
        while not failed:
            with PeerRecorder(client(tossing)) as recording:
                failed = converse(recording.client, _QUESTIONS) == "FAIL"
        asked.clear()
        began = time.process_time()
        report = BlameEngine.rank(
            recording.tape,
            lambda client: converse(client, _QUESTIONS),
            oracle,
            perturb_factory=lambda _, say=tossing: (body("something else"), transport(say)),
            k=_FORKS_EACH,
            budget_usd=1e9,
        )
        found["seconds"].append(time.process_time() - began)
        found["accused"].append(float(bool(set(report.responsible_set) - {_LAST})))
        found["calls"].append(float(len(asked)))
    return found


def _tossing(
    tosses: random.Random, chance: float, asked: list[int] | None = None
) -> Callable[[int], str]:
    """Return a model whose last answer is a coin; it adds the steps it answers to `asked`."""

    def say(step: int) -> str:
        if asked is not None:
            asked.append(step)
        if step < _LAST:
            return f"Step {step} is done."
        return "FAIL" if tosses.random() < chance else "SUCCESS"

    return say
