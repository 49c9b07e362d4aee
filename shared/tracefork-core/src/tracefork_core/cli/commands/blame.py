"""`tracefork blame`: put a failed run on trial, and say which step doomed it."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tracefork_core.cli import options, tape_names
from tracefork_core.cli.agent import hash_seed
from tracefork_core.cli.display import figures, screen
from tracefork_core.cli.display.text import printable
from tracefork_core.errors import UsageError

if TYPE_CHECKING:
    from tracefork_core.blaming.report import Report
    from tracefork_core.blaming.trials.budget import Budget
    from tracefork_core.blaming.trials.units import Estimate

UNDECIDED = 1

app = typer.Typer(add_completion=False, rich_markup_mode=None)


@dataclass(frozen=True, slots=True)
class _Question:
    """What is asked of the run."""

    oracle: options.OracleWords = ""
    by: Annotated[
        str | None,
        typer.Option("--by", metavar="KIND", help="First by steps of a kind: task, or task,agent."),
    ] = None
    credit: Annotated[
        bool, typer.Option("--credit", help="Of a good run: which step saved it.")
    ] = False
    regrades: Annotated[
        int, typer.Option("--regrades", metavar="N", help="Grade some ends again, so often.")
    ] = 0
    shares: Annotated[
        bool, typer.Option("--shares", help="Share the blame among several that are named.")
    ] = False
    seed: Annotated[int, typer.Option("--seed", metavar="N", help="Of what is tried.")] = 0

    @property
    def kinds(self) -> list[str]:
        """The kinds of steps that --by names."""
        return [kind.strip() for kind in self.by.split(",")] if self.by else []


@dataclass(frozen=True, slots=True)
class _Work:
    """What the blame may spend, and where it keeps its forks."""

    budget: Annotated[
        str | None,
        typer.Option("--budget", metavar="$5", help="At most: $5, '200 calls', 10m; or several."),
    ] = None
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Spend it without asking.")] = False
    workers: Annotated[
        int, typer.Option("--workers", metavar="N", min=1, help="Forks at the same time.")
    ] = 2
    rate: Annotated[
        float | None,
        typer.Option("--rate", metavar="N", help="At most N live calls a minute."),
    ] = None
    resume: Annotated[bool, typer.Option("--resume", help="Go on with a blame.")] = False
    status: Annotated[
        bool, typer.Option("--status", help="Only look at a blame that is under way.")
    ] = False
    folder: Annotated[
        Path | None,
        typer.Option("--to", metavar="DIR", help="Where journal and branches go."),
    ] = None


@app.command(cls=options.TapeAndAgent)
@options.grouped
def blame(
    ctx: typer.Context,
    tape: options.TapeName,
    agent_words: options.AgentWords,
    question: _Question,
    work: _Work,
    live: options.TailOptions,
    stream: Annotated[
        bool, typer.Option("--stream", help="Print progress and report as lines of JSON.")
    ] = False,
    as_json: options.AsJson = False,
) -> int:
    """Put a failed run on trial: forks of it are run, and which step doomed it is said.

    Each fork keeps some of the recorded answers and asks the rest live, in a process of its own.
    Which ones are tried is decided as they come in, to need few. What it may take is told before
    anything is spent; every fork is journaled, so nothing is lost when it is stopped.
    """
    from tracefork_core.blaming.trials.trial_journal import beside

    path = tape_names.find(tape)
    folder = (work.folder or beside(path)).absolute()
    if work.status:
        return _look_on(folder, as_json=as_json)
    agent, home = agent_words.read_for(path, ctx)
    if not question.oracle:
        raise UsageError(
            "tracefork: blame for what? --oracle says what a good run is: exit, regex:PATTERN, "
            "not-regex:PATTERN, equals:TEXT, json:/pointer=VALUE, judge:RUBRIC.md, PKG.MOD:FN."
        )
    from tracefork_core.blaming.blame import blame as blaming
    from tracefork_core.blaming.oracles.oracles import read_oracle
    from tracefork_core.blaming.trials.budget import Budget
    from tracefork_core.cli.agent.callable_agent import Program
    from tracefork_core.cli.display.blame_progress import following

    limits, here = Budget.read(work.budget) if work.budget else Budget(), Path.cwd()
    expected, seed_then = _read(path, question.kinds)
    os.chdir(home)
    agent.prepare()
    grades = read_oracle(question.oracle, here)
    if not work.yes:
        _ask(expected, limits)
    os.environ.update(hash_seed.with_seed(os.environ, seed_then))
    with (
        screen.stdout_kept(),  # Whatever an agent leaves behind may print.
        _resumable(),
        following(streamed=stream, expected=expected.calls) as watch,
    ):
        report = blaming(
            path,
            Program(agent, home),
            grades,
            budget=limits,
            credit=question.credit,
            shares=question.shares,
            by=question.kinds,
            regrades=question.regrades,
            seed=question.seed,
            workers=work.workers,
            rate=work.rate,
            fresh=agent.form != "function",
            writes=live.writes(),
            tail=live.tail(),
            mask=live.mask or [],
            folder=folder,
            resume=work.resume,
            watch=watch,
        )
    os.chdir(here)
    return _tell(report, as_json=as_json, stream=stream)


def _read(path: Path, kinds: Sequence[str]) -> tuple[Estimate, str | None]:
    """Return what a blame of a tape may take, and the hash seed of the recording.

    Raises:
        UsageError: the tape has no steps of these kinds.
        ReplayError: the tape holds no bodies.
    """
    from tracefork_core.blaming.parts import parts_by
    from tracefork_core.blaming.trials.units import Run, estimate
    from tracefork_core.run.replay import answering

    with answering(path) as tape:
        run = Run.of(tape)
        parts_by(tape, kinds)  # Refuses before anybody is asked.
        return estimate(run), tape.hash_seed


def _ask(about: Estimate, limits: Budget) -> None:
    """Say what it will take, and ask before it is spent.

    Raises:
        UsageError: nobody is there to be asked.
        KeyboardInterrupt: they say no.
    """
    words = f"about {about.calls} live calls, {_cost(about.usd)}"
    if limits.words:
        words += f"; at most {limits.words}"
    if sys.stdin is None or not sys.stdin.isatty():
        raise UsageError(
            f"tracefork: this blame makes {words}. Nobody is there to be asked: say --yes."
        )
    screen.stderr().print(f"· {words}", style=screen.DIM)
    typer.confirm("Spend it?", abort=True, err=True)


@contextmanager
def _resumable() -> Iterator[None]:
    """Say how to go on with what is stopped by hand."""
    try:
        yield
    except KeyboardInterrupt:
        words = "· stopped; each fork that ended is kept. Go on: the same command with --resume"
        screen.stderr().print(words, soft_wrap=True)
        raise


def _tell(report: Report, *, as_json: bool, stream: bool) -> int:
    from tracefork_core.cli.display.blame_report import document, print_report

    code = UNDECIDED if report.result.verdict.kind == "undecided" else 0
    if report.result.verdict.kind == "passed":
        code = UsageError.exit_code
    if stream:
        screen.say_line({"report": document(report, code)})
    elif as_json:
        screen.say_json(document(report, code))
    else:
        print_report(screen.stdout(), report)
    return code


def _cost(usd: float | None) -> str:
    return "price not known" if usd is None else figures.money(Decimal(str(usd)))


def _look_on(place: Path, *, as_json: bool) -> int:
    """Show how far a blame is, from its journal."""
    from tracefork_core.blaming.engine.verdict import ledger
    from tracefork_core.blaming.trials.trial_journal import JOURNAL, read

    found = read(place / JOURNAL)
    took, standing = ledger(found.trials), found.standing
    age = time.time() - (place / JOURNAL).stat().st_mtime
    if as_json:
        screen.say_json(
            {
                "command": "blame",
                "exit": 0,
                "forks": took.forks,
                "live_calls": took.live_calls,
                "usd": took.usd,
                "phase": standing.phase if standing else None,
                "unit": standing.unit if standing else None,
                "chance": standing.chance if standing else None,
                "seconds_ago": age,
            }
        )
        return 0
    words = f"{figures.several(took.forks, 'fork')} · "
    words += f"{figures.several(took.live_calls, 'live call')}"
    words += f" · {_cost(took.usd)} · last written {figures.duration(age)} ago"
    if standing is not None:
        words += f" · {printable(standing.phase)}"
        if standing.unit is not None:
            words += f" · likeliest: exchange {standing.unit} ({standing.chance:.0%})"
    screen.stdout().print(words, soft_wrap=True)
    return 0
