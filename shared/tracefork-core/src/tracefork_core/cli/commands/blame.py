"""`tracefork blame`: find the step that made a run fail, by re-running forks of it."""

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

from tracefork_core.cli import fork_options, options, tape_names
from tracefork_core.cli.agent import hash_seed
from tracefork_core.cli.display import figures, screen
from tracefork_core.cli.display.text import printable
from tracefork_core.cli.repeated import ask_about_tools, confirmed
from tracefork_core.errors import UsageError

if TYPE_CHECKING:
    from tracefork_core.blaming.report import Report
    from tracefork_core.blaming.trials.budget import Budget
    from tracefork_core.blaming.trials.units import Estimate
    from tracefork_core.cli.report.page_file import Page

UNDECIDED = 1

app = typer.Typer(add_completion=False, rich_markup_mode=None)


@dataclass(frozen=True, slots=True)
class _Question:
    """What the blame looks for."""

    oracle: fork_options.OracleWords = ""
    by: Annotated[
        str | None,
        typer.Option(
            "--by", metavar="KIND", help="Compare steps of a kind first: task, or task,agent."
        ),
    ] = None
    credit: Annotated[
        bool, typer.Option("--credit", help="Find the step that saved a good run.")
    ] = False
    regrades: Annotated[
        int,
        typer.Option(
            "--regrades",
            metavar="N",
            help="Grade some finished runs N more times, to measure the oracle's noise.",
        ),
    ] = 0
    shares: Annotated[
        bool,
        typer.Option("--shares", help="Run more forks to share the blame among several steps."),
    ] = False
    seed: Annotated[int, typer.Option("--seed", metavar="N", help="Random seed of the search.")] = 0

    @property
    def kinds(self) -> list[str]:
        """The kinds of steps that --by names."""
        return [kind.strip() for kind in self.by.split(",")] if self.by else []


@dataclass(frozen=True, slots=True)
class _Work:
    """What the blame may spend, and where it stores its forks."""

    budget: Annotated[
        str | None,
        typer.Option(
            "--budget",
            metavar="$5",
            help="Spending limit: $5, '200 calls' or 10m; several with commas.",
        ),
    ] = None
    yes: Annotated[
        bool, typer.Option("--yes", "-y", help="Start without asking for confirmation.")
    ] = False
    workers: Annotated[
        int,
        typer.Option(
            "--workers", metavar="N", min=1, help="Number of forks to run at the same time."
        ),
    ] = 2
    rate: Annotated[
        float | None,
        typer.Option("--rate", metavar="N", help="Largest number of live calls per minute."),
    ] = None
    resume: Annotated[bool, typer.Option("--resume", help="Resume a blame that was stopped.")] = (
        False
    )
    status: Annotated[bool, typer.Option("--status", help="Only show the progress of a blame.")] = (
        False
    )
    folder: Annotated[
        Path | None,
        typer.Option(
            "--to",
            metavar="DIR",
            help="Folder of the journal and the branches (default: TAPE.blame).",
        ),
    ] = None


@app.command(cls=options.TapeAndAgent)
@options.grouped
def blame(
    ctx: typer.Context,
    tape: options.TapeName,
    agent_words: options.AgentWords,
    question: _Question,
    work: _Work,
    live: fork_options.TailOptions,
    page: options.HtmlOptions,
    stream: Annotated[
        bool, typer.Option("--stream", help="Print the progress and the report as lines of JSON.")
    ] = False,
    as_json: options.AsJson = False,
) -> int:
    """Find the step that made a run fail, by re-running forks of it.

    Each fork keeps some of the recorded answers and asks the rest live, and the oracle grades how
    it ends. The outcomes decide which fork runs next, so that few are needed. The expected cost is
    shown before any money is spent. Every finished fork is in a journal, so a blame that was
    stopped can be resumed.
    """
    from tracefork_core.blaming.trials.trial_journal import free, latest

    path = tape_names.find(tape)
    there = latest(path) if work.status or work.resume else free(path)
    folder = (work.folder or there).absolute()
    if page.html and (work.status or stream):
        raise UsageError("tracefork: --html excludes --status and --stream.")
    target = page.target(f"{path.stem}-blame")
    if work.status:
        return _show_status(folder, as_json=as_json)
    agent, home = agent_words.read_for(path, ctx)
    if not question.oracle:
        raise UsageError(
            "tracefork: blame needs --oracle, which tells a good run from a bad one: exit, "
            "regex:PATTERN, not-regex:PATTERN, equals:TEXT, json:/pointer=VALUE, judge:RUBRIC.md "
            "or PKG.MOD:FN."
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
    rerun = ask_about_tools(path, allowed=live.allow_writes)
    if not work.yes:
        _ask(expected, limits)
    os.environ.update(hash_seed.with_seed(os.environ, seed_then))
    with (
        screen.stdout_kept(),  # Threads that an agent leaves behind may print.
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
            reads=live.reads or [],
            rerun_tools=rerun,
            tail=live.tail(),
            mask=live.mask or [],
            folder=folder,
            resume=work.resume,
            watch=watch,
        )
    os.chdir(here)
    written = None if target is None else _page(target, path, report)
    return _tell(report, live.words, written, as_json=as_json, stream=stream)


def _read(path: Path, kinds: Sequence[str]) -> tuple[Estimate, str | None]:
    """Return the expected cost of a blame of a tape, and the hash seed of its recording.

    Raises:
        UsageError: the tape has no steps of these kinds.
        ReplayError: the tape holds no bodies.
    """
    from tracefork_core.blaming.parts import parts_by
    from tracefork_core.blaming.trials.units import Run, estimate
    from tracefork_core.run.replay import answering

    with answering(path) as tape:
        run = Run.of(tape)
        parts_by(tape, kinds)  # An unknown kind is refused before the user has to confirm.
        return estimate(run), tape.hash_seed


def _ask(expected: Estimate, limits: Budget) -> None:
    """Ask the user to confirm the expected cost.

    Raises:
        UsageError: there is no terminal to confirm on, or the user declined.
    """
    words = f"about {expected.calls} live calls ({_cost(expected.usd)})"
    if limits.words:
        words += f", at most {limits.words}"
    if sys.stdin is None or not sys.stdin.isatty():
        raise UsageError(
            f"tracefork: this blame will make {words}. There is no terminal to confirm on; "
            "pass --yes."
        )
    screen.stderr().print(f"· {words}", style=screen.DIM)
    if not confirmed("Start?"):
        raise UsageError(
            "tracefork: nothing was run. Start it again with another --budget, or with --yes."
        )


@contextmanager
def _resumable() -> Iterator[None]:
    """Show how to resume a blame that the user interrupts."""
    try:
        yield
    except KeyboardInterrupt:
        words = "· stopped; finished forks are kept. To resume: the same command with --resume"
        screen.stderr().print(words, soft_wrap=True)
        raise


def _page(target: Path, path: Path, report: Report) -> Page:
    from tracefork_core.cli.report import assembly, family, page_file
    from tracefork_core.cli.report.packing import Parts

    parts = Parts()
    document = assembly.of_family(family.of_tape(path), parts, blame=report)
    return page_file.write(target, document, parts)


def _tell(report: Report, writes: str, page: Page | None, *, as_json: bool, stream: bool) -> int:
    from tracefork_core.cli.display.blame_report import document, print_report

    code = UNDECIDED if report.result.verdict.kind == "undecided" else 0
    if report.result.verdict.kind == "passed":
        code = UsageError.exit_code
    if stream:
        screen.say_line({"report": document(report, code)})
    elif as_json:
        screen.say_json({**document(report, code), **(page.fields() if page else {})})
    else:
        print_report(screen.stdout(), report, writes)
        if page is not None:
            page.print()
            page.print_next()
    return code


def _cost(usd: float | None) -> str:
    return "price unknown" if usd is None else figures.money(Decimal(str(usd)))


def _show_status(folder: Path, *, as_json: bool) -> int:
    """Show the progress of a blame, from its journal."""
    from tracefork_core.blaming.engine.verdict import ledger
    from tracefork_core.blaming.trials.trial_journal import JOURNAL, read

    journal = read(folder / JOURNAL)
    took, standing = ledger(journal.trials), journal.standing
    age = time.time() - (folder / JOURNAL).stat().st_mtime
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
            words += f" · most likely: exchange {standing.unit} ({standing.chance:.0%})"
    screen.stdout().print(words, soft_wrap=True)
    return 0
