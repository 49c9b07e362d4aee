"""`tracefork race`: replay in other orders, to find results that depend on the order."""

from __future__ import annotations

import os
import shlex
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tracefork_core.cli import fork_options, options, tape_names
from tracefork_core.cli.agent import hash_seed
from tracefork_core.cli.display import screen
from tracefork_core.cli.display.progress import left, progress
from tracefork_core.cli.race.race_result import Result, Taped
from tracefork_core.cli.repeated import ask_about_tools

if TYPE_CHECKING:
    from tracefork_core.cli.race.race_runs import Run, Runs
    from tracefork_core.cli.race.race_worker import Job
    from tracefork_core.run.racing import Found, Order, Outcome

_SEEDS = 20

app = typer.Typer(add_completion=False, rich_markup_mode=None)


@app.command(cls=options.TapeAndAgent)
@options.grouped
def race(
    ctx: typer.Context,
    tape: options.TapeName,
    agent_words: options.AgentWords,
    seeds: Annotated[
        int, typer.Option("--seeds", min=1, metavar="N", help="Try N random orders.")
    ] = _SEEDS,
    *,
    compared: options.ReplayOptions,
    allow_writes: fork_options.AllowWrites = False,
    as_json: options.AsJson = False,
) -> int:
    """Find results that depend on the order in which answers arrive.

    Answers that overlapped in the recording are delivered in other orders, each time in a fresh
    process, offline and at no cost. An order that changes a request, the output or the end of the
    agent shows a race, and the smallest such reordering is searched for. The exit code is 0 if no
    race was found, else 1.
    """
    from tracefork_core.cli.race.race_report import document, print_report
    from tracefork_core.cli.race.race_worker import Job

    path = tape_names.find(tape)
    agent, folder = agent_words.read_for(path, ctx)
    ask_about_tools(path, allowed=allow_writes)
    job = Job(
        str(path),
        agent.form,
        agent.target,
        agent.args,
        match=compared.matchers,
        allow=compared.allow or [],
        mask=compared.mask or [],
        clock=not compared.no_clock,
        entropy=not compared.no_entropy,
        subprocesses=not compared.no_subprocess,
    )
    again = [shlex.quote(word) for word in [*compared.words, tape_names.shown(path)]]
    if agent_words.given:
        again.append(agent.words)
    result = _race(job, folder, seeds, " ".join(again))
    if as_json:
        screen.say_json(document(agent, result))
    else:
        print_report(agent, result)
    return result.exit


def _race(job: Job, folder: Path, seeds: int, again: str) -> Result:
    from tracefork_core.cli.race.race_runs import Runs
    from tracefork_core.run.racing import search

    began = time.monotonic()
    taped, hash_seed_then = _read(Path(job.tape))
    overlap = taped.overlap
    with tempfile.TemporaryDirectory(prefix="tracefork-race-") as place, progress() as tell:
        environment = hash_seed.with_seed(os.environ, hash_seed_then)
        runs = Runs(job, folder, Path(place), environment)

        def result(failure: Run | None = None, found: Found | None = None) -> Result:
            seconds = time.monotonic() - began
            compared = runs.prints_compared
            return Result(taped, runs.done, seconds, again, failure, compared, found)

        tell("replaying in the recorded order")
        first = runs.run(None)
        if taped.failure(first):
            return result(failure=first)
        if not (overlap.pairs or overlap.waits):
            return result()
        runs.first = first
        second = runs.run(None)
        if taped.failure(second):
            return result(failure=second)
        runs.prints_compared = first.printed == second.printed
        attempt = _Attempt(runs, seeds, tell)
        return result(found=search(overlap.completed, overlap.pairs, attempt, range(seeds)))


class _Attempt:
    """Runs the agent in an order, and reports the progress."""

    def __init__(self, runs: Runs, seeds: int, tell: Callable[[str], None]) -> None:
        self._runs = runs
        self._seeds = seeds
        self._tell = tell
        self._began = time.monotonic()
        self._tried = self._changed = self._steps = 0

    def __call__(self, order: Order) -> Outcome:
        if isinstance(order, int) or not self._tried:
            eta = left(self._began, self._tried, self._seeds + 1)
            number = f"order {self._tried + 1} of {self._seeds + 1}"
            self._tell(f"{number} · {self._changed} changed the outcome{eta}")
            self._tried += 1
        else:
            self._steps += 1
            self._tell(f"searching for the smallest reordering · run {self._steps}")
        outcome = self._runs.attempt(order)
        self._changed += outcome.changed
        return outcome


def _read(path: Path) -> tuple[Taped, str | None]:
    """Return what a race must know of a tape, and the hash seed of its recording."""
    from tracefork_core.cli.race.race_report import exchange_words
    from tracefork_core.run.racing import overlap_of
    from tracefork_core.tape import Tape

    with Tape.open(path) as tape:
        receipt = tape.receipt
        outcome, status = (receipt.outcome, receipt.status) if receipt else (None, None)
        overlap = overlap_of(tape)
        words = {
            exchange.n: exchange_words(exchange)
            for exchange in tape.exchanges
            if exchange.n in overlap.exchanges
        }
        taped = Taped(path, outcome, len(tape.exchanges), overlap, words, status)
        return taped, tape.hash_seed
