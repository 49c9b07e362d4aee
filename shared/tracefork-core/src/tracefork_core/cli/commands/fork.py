"""`tracefork fork`: replay a run up to a step, change it, and run live from there."""

from __future__ import annotations

import json
import os
import shlex
import time
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tracefork_core.cli import fork_options, options, refused_write, tape_names
from tracefork_core.cli.agent import hash_seed
from tracefork_core.cli.agent.hard_exit import Outcome
from tracefork_core.cli.agent.recorded_command import remember
from tracefork_core.cli.display import figures, screen
from tracefork_core.cli.display.text import printable
from tracefork_core.cli.repeated import ask_about_tools
from tracefork_core.errors import UsageError
from tracefork_core.run.fork_point import start_of
from tracefork_core.tape import Tape

if TYPE_CHECKING:
    from tracefork_core.cli.agent.agent import Agent
    from tracefork_core.errors import WriteError
    from tracefork_core.run.fork import Forking
    from tracefork_core.session.interventions import Intervention

app = typer.Typer(add_completion=False, rich_markup_mode=None)


@dataclass(frozen=True, slots=True)
class ForkChange(fork_options.QuestionEdit):
    """The change at the fork point; only one may be given."""

    text: Annotated[
        str | None, typer.Option("--text", metavar="TEXT", help="Make the model answer this text.")
    ] = None
    replace: Annotated[
        Path | None,
        typer.Option(
            "--replace",
            metavar="FILE",
            help="Answer with the content of a file: JSON, or any bytes.",
        ),
    ] = None
    fail: Annotated[
        str | None,
        typer.Option(
            "--fail",
            metavar="429|ReadTimeout",
            help="Answer with an error: an HTTP status, or the name of an exception.",
        ),
    ] = None
    drop: Annotated[bool, typer.Option("--drop", help="Answer with an empty response.")] = False
    once: Annotated[
        bool,
        typer.Option(
            "--once",
            help="Change this question alone. Without it, --model, --temperature and --system hold "
            "from here on, wherever the same model or prompt is asked.",
        ),
    ] = False

    @property
    def onwards(self) -> bool:
        """Whether the change of a question holds for later ones alike."""
        holds = self.model is not None or self.temperature is not None or self.system is not None
        return holds and not self.once

    def intervention(self) -> Intervention | None:
        """Return the change; None asks the recorded question once more.

        Raises:
            UsageError: several changes were given, or the file cannot be read.
        """
        from tracefork_core.session.interventions import Drop, Fail, Replace

        edit = self.edit()
        changes: list[Intervention] = [] if edit is None else [edit]
        if self.text is not None:
            changes.append(Replace(self.text))
        if self.replace is not None:
            changes.append(_replacement(self.replace))
        if self.fail is not None:
            is_status = self.fail.isascii() and self.fail.isdecimal()
            changes.append(Fail(status=int(self.fail)) if is_status else Fail(kind=self.fail))
        if self.drop:
            changes.append(Drop())
        if len(changes) > 1:
            raise UsageError(
                "tracefork: a fork makes one change. Give one of --text, --replace, --fail and "
                "--drop, or edit the question (--model, --temperature, --system, --prompt)."
            )
        return changes[0] if changes else None


@dataclass(frozen=True, slots=True)
class ForkBranch(fork_options.BranchOptions):
    """What happens after the fork point, and the tape that records it."""

    hold: Annotated[
        list[str] | None,
        typer.Option("--hold", metavar="N", help="Keep the recorded answer of exchange N."),
    ] = None
    redraw: Annotated[
        bool,
        typer.Option(
            "--redraw", help="Use the real clock and new random values after the fork point."
        ),
    ] = False
    reuse: Annotated[
        bool, typer.Option("--reuse", help="Keep the recorded answer of every unchanged request.")
    ] = False


@app.command(cls=options.TapeAndAgent)
@options.grouped
def fork(
    ctx: typer.Context,
    tape: options.TapeName,
    agent_words: options.AgentOrApp,
    at: fork_options.At = "",
    *,
    change: ForkChange,
    branch: ForkBranch,
    as_json: options.AsJson = False,
) -> int:
    """Replay up to a step, change it, and run live from there.

    Every request before --at is answered from the tape at no cost, and must be the recorded one.
    At --at one thing is changed, or the question is asked again. The rest runs live. All of it is
    recorded on a branch: a tape beside the first one, which replays by itself.
    """
    path = tape_names.find(tape)
    if not at:
        raise _no_point(path)
    agent, folder = agent_words.read_for(path, ctx)
    return run(agent, path, at, change, branch, folder=folder, as_json=as_json)


def run(
    agent: Agent,
    path: Path,
    at: str,
    change: ForkChange,
    branch: ForkBranch,
    *,
    folder: Path | None = None,
    as_json: bool,
) -> int:
    """Fork a tape with an agent, report it, and return the exit code.

    The agent runs in `folder`, by default in this one.
    """
    from tracefork_core.run.fork import fork as forking

    intervention = change.intervention()
    if not at:
        raise _no_point(path)
    with Tape.open(path) as opened:
        start_of(opened, at)  # Refused before the user has to confirm.
        hash_seed.restore(opened.hash_seed)  # This may restart the process.
    rerun = ask_about_tools(path, allowed=branch.allow_writes)
    to, here = tape_names.to_write(branch.output) if branch.output else None, Path.cwd()
    folder = folder or here
    os.chdir(folder)
    agent.prepare()
    scope = forking(
        path,
        at,
        intervention,
        hold=branch.hold or (),
        redraw=branch.redraw,
        onwards=change.onwards,
        reuse=branch.reuse,
        writes=branch.writes(),
        reads=branch.reads or [],
        rerun_tools=rerun,
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
        seconds = time.perf_counter() - began
        _report(run, refused, seconds, status=status, as_json=as_json)
        return status

    return report(lambda: agent.run_under(scope, show=True, told=report))


def _no_point(path: Path) -> UsageError:
    return UsageError(
        "tracefork: fork needs a fork point: --at with the number of an exchange, or a step. "
        f"To see them: `tracefork show {shlex.quote(tape_names.shown(path))}`"
    )


def _replacement(path: Path) -> Intervention:
    from tracefork_core.session.interventions import Replace

    try:
        data = path.read_bytes()
    except OSError as error:
        raise UsageError(f"tracefork: cannot read {path} (--replace): {error.strerror}.") from error
    if path.suffix.lower() != ".json":
        return Replace(body=data)
    try:
        return Replace(document=json.loads(data))
    except ValueError as error:
        raise UsageError(f"tracefork: {path} (--replace) is not valid JSON: {error}.") from error


def _report(
    run: Forking, refused: WriteError | None, seconds: float, *, status: int, as_json: bool
) -> None:
    from tracefork_core.cli.display.account import dollars, live_cost

    assert run.receipt is not None
    with Tape.open(run.path) as branch:
        spent, shown = live_cost(branch), tape_names.shown(run.path)
        parent = branch.origin.name if branch.origin else ""
        onwards = refused_write.onwards(shown, len(branch.exchanges))
    quoted = shlex.quote(shown)
    compared = f"tracefork diff {quoted} · tracefork tree {quoted}"
    following = onwards if refused else compared
    if as_json:
        screen.say_json(
            {
                "command": "fork",
                "exit": status,
                "tape": str(run.path),
                "parent": parent,
                "at": run.at,
                "digest": run.digest,
                "outcome": run.receipt.outcome,
                "stop": refused_write.message(refused) if refused else None,
                "replayed": run.replayed,
                "given": run.given,
                "live": run.live,
                "cost_usd": dollars(spent),
                "seconds": seconds,
                "next": following,
            }
        )
        return
    _print(run, refused, shown, spent, seconds, following)


def _print(
    run: Forking,
    refused: WriteError | None,
    shown: str,
    spent: Decimal | None,
    seconds: float,
    following: str,
) -> None:
    from rich.text import Text

    assert run.receipt is not None
    console = screen.stderr()
    given = [f"{run.given} given"] if run.given else []
    facts = [f"{run.replayed} replayed", *given, f"{run.live} live", figures.duration(seconds)]
    head = Text("● forked ", screen.GOOD).append(printable(shown), "bold")
    console.print(head.append(f" at {run.at} · {' · '.join(facts)}", "default"), soft_wrap=True)
    cost = "$0 · " if not run.live else "" if spent is None else f"{figures.money(spent)} · "
    console.print(f"  {cost}digest {figures.digest(run.receipt.digest)}")
    if refused is not None:
        screen.say_error(refused_write.message(refused))
    elif run.receipt.outcome != "ok":
        console.print(f"  the agent ended with {run.receipt.outcome}")
    console.print(Text("  next: ", screen.DIM).append(following, "default"), soft_wrap=True)
