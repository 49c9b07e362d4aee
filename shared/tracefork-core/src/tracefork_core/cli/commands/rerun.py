"""`tracefork rerun`: run an edited agent again, and pay only for what it asks differently."""

from __future__ import annotations

import os
import shlex
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tracefork_core.cli import fork_options, options, refused_write, tape_names
from tracefork_core.cli.agent import hash_seed
from tracefork_core.cli.agent.hard_exit import Outcome
from tracefork_core.cli.agent.recorded_command import remember
from tracefork_core.cli.display import figures, screen
from tracefork_core.cli.display.text import printable
from tracefork_core.cli.exits import FAILED
from tracefork_core.cli.repeated import ask_about_tools, confirmed
from tracefork_core.errors import StoppedError, UsageError, WriteError
from tracefork_core.tape import Exchange, Tape

if TYPE_CHECKING:
    from tracefork_core.blaming.trials.budget import Budget
    from tracefork_core.exchange.contract import Request
    from tracefork_core.run.fork import Forking

app = typer.Typer(add_completion=False, rich_markup_mode=None)

_SHOWN = 5
"""How many live calls are listed, each with its first difference."""


@dataclass(frozen=True, slots=True)
class _Spending:
    """What the run may ask for."""

    yes: Annotated[
        bool, typer.Option("--yes", "-y", help="Do not ask before the first live call.")
    ] = False
    budget: Annotated[
        str | None,
        typer.Option("--budget", metavar="LIMIT", help="Stop at a limit: 20 calls, 10m."),
    ] = None
    offline: Annotated[
        bool, typer.Option("--offline", help="Ask for nothing: show the first live call.")
    ] = False

    def read(self) -> Budget:
        """Return the budget.

        Raises:
            UsageError: it is none, or one of dollars or tokens.
        """
        from tracefork_core.blaming.trials.budget import Budget

        limits = Budget.read(self.budget) if self.budget else Budget()
        if limits.usd is not None or limits.tokens is not None:
            raise UsageError(
                "tracefork: rerun counts calls and time, because the price of a call is known when "
                f"it has ended (got {self.budget!r}). Type --budget '20 calls' or --budget 10m."
            )
        return limits


@app.command(cls=options.TapeAndAgent)
@options.grouped
def rerun(
    ctx: typer.Context,
    tape: options.TapeName,
    agent_words: options.AgentOrApp,
    *,
    spending: _Spending,
    branch: fork_options.BranchOptions,
    as_json: options.AsJson = False,
) -> int:
    """Run an edited agent again; only what it asks differently is live.

    A request that equals a recorded one is answered from the tape at no cost. Any other is live,
    after you confirmed the first. All of it is recorded on a branch: a tape beside the first one.
    """
    limits = spending.read()
    path = tape_names.find(tape)
    agent, folder = agent_words.read_for(path, ctx)
    with Tape.open(path) as opened:
        hash_seed.restore(opened.hash_seed)  # This may restart the process.
    from tracefork_core.run.rerun import rerun as rerunning

    tools = ask_about_tools(path, allowed=branch.allow_writes)
    to, here = tape_names.to_write(branch.output) if branch.output else None, Path.cwd()
    os.chdir(folder)
    agent.prepare()
    first = _First(spending, limits)
    scope = rerunning(
        path,
        before_live=first,
        writes=branch.writes(),
        reads=branch.reads or [],
        rerun_tools=tools,
        to=to,
        overwrite=branch.overwrite,
        mask=branch.mask or [],
        scope="process",
    )
    began = time.perf_counter()

    def report(outcome: Outcome[Forking]) -> int:
        with screen.stdout_kept(as_json):
            run, status, refused = refused_write.ended(outcome, scope)
        assert run.receipt is not None
        remember(run.path, run.receipt.digest, agent, folder, is_branch=True)
        os.chdir(here)
        if first.stopped is not None:
            status = 0 if spending.offline else FAILED
        after = f"tracefork diff {shlex.quote(tape_names.shown(run.path))}"
        if first.stopped is not None:
            typed = f" {agent.words}" if agent_words.given else ""
            again = f"{shlex.quote(tape_names.shown(path))}{typed}{branch.words}"
            after = f"tracefork rerun {again} --yes"
        seconds = time.perf_counter() - began
        _report(run, first, refused, seconds, after, status=status, as_json=as_json)
        return status

    return report(
        lambda: agent.run_under(
            scope, show=True, told=report, is_stopped=lambda _: first.stopped is not None
        )
    )


class _First:
    """Asks before the first live call, and stops the run where none is allowed.

    Attributes:
        stopped: says of the call that was not made where it differs; None if all were made.
    """

    def __init__(self, spending: _Spending, limits: Budget) -> None:
        self._spending = spending
        self._limits = limits
        self._calls = 0
        self._began = time.monotonic()
        self._is_allowed = spending.yes
        self.stopped: str | None = None

    def __call__(self, request: Request, place: Exchange | None) -> None:
        """Allow a live call.

        Raises:
            StoppedError: it is not made.
            UsageError: there is no terminal to confirm it on.
        """
        from tracefork_core.run.rerun_changes import difference

        words = difference(request.url, request.body, place)
        if self._spending.offline:
            self._stop(words)
        if self._is_used_up():
            self._stop(f"{words}, because the budget is used up")
        self._calls += 1
        if self._is_allowed:
            return
        if sys.stdin is None or not sys.stdin.isatty():
            raise UsageError(
                f"tracefork: the tape does not answer this request: {words}. Nothing was asked. "
                "Pass --yes to ask for it, or --offline to look at it."
            )
        screen.note(screen.stderr(), f"· not on the tape: {words}", screen.WARN)
        if not confirmed("Ask for it, and for what follows?"):
            self._stop(words)
        self._is_allowed = True

    def _is_used_up(self) -> bool:
        calls, seconds = self._limits.calls, self._limits.seconds
        is_late = seconds is not None and time.monotonic() - self._began > seconds
        return is_late or self._calls == calls

    def _stop(self, words: str) -> None:
        self.stopped = words
        raise StoppedError(f"tracefork: the run stopped before a live call: {words}.")


def _report(
    run: Forking,
    first: _First,
    refused: WriteError | None,
    seconds: float,
    after: str,
    *,
    status: int,
    as_json: bool,
) -> None:
    from rich.text import Text

    from tracefork_core.cli.display.account import dollars, live_cost
    from tracefork_core.run.rerun_changes import asked_live, not_asked

    assert run.receipt is not None
    with Tape.open(run.path) as branch:
        spent, shown = live_cost(branch), tape_names.shown(run.path)
        asked = asked_live(branch)
        left = [one.n for one in not_asked(branch)]
        exchanges = len(branch.exchanges)
    stopped = first.stopped
    if refused is not None:
        after, stopped = refused_write.onwards(shown, exchanges), refused_write.message(refused)
    if as_json:
        screen.say_json(
            {
                "command": "rerun",
                "exit": status,
                "tape": str(run.path),
                "digest": run.digest,
                "outcome": run.receipt.outcome,
                "reused": run.replayed,
                "live": run.live,
                "asked": asked,
                "not_asked_again": left,
                "stopped": stopped,
                "cost_usd": dollars(spent),
                "seconds": seconds,
                "next": after,
            }
        )
        return
    console = screen.stderr()
    facts = [f"{run.replayed} reused", f"{run.live} asked", figures.duration(seconds)]
    head = Text("● rerun ", screen.GOOD).append(printable(shown), "bold")
    console.print(head.append(f" · {' · '.join(facts)}", "default"), soft_wrap=True)
    cost = "$0 · " if not run.live else "" if spent is None else f"{figures.money(spent)} · "
    console.print(f"  {cost}digest {figures.digest(run.receipt.digest)}")
    for words in asked[:_SHOWN]:
        screen.note(console, f"  asked: {words}")
    if len(asked) > _SHOWN:
        console.print(f"  asked: {len(asked) - _SHOWN} more")
    if refused is not None:
        screen.say_error(refused_write.message(refused))
    elif first.stopped is not None:
        screen.note(console, f"  stopped before {first.stopped}")
    elif left:
        console.print(f"  not asked again: {', '.join(map(str, left[:20]))}", soft_wrap=True)
    if run.receipt.outcome != "ok" and stopped is None:
        console.print(f"  the agent ended with {run.receipt.outcome}")
    console.print(Text("  next: ", screen.DIM).append(after, "default"), soft_wrap=True)
