"""`tracefork shrink`: find the smallest run that still fails."""

from __future__ import annotations

import os
import shlex
import time
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import msgspec
import typer

from tracefork_core.cli import fork_options, options, tape_names
from tracefork_core.cli.agent import hash_seed
from tracefork_core.cli.agent.recorded_command import remember
from tracefork_core.cli.display import figures, screen
from tracefork_core.cli.display.text import printable
from tracefork_core.cli.exits import INTERRUPTED
from tracefork_core.cli.repeated import ask_about_tools
from tracefork_core.errors import UsageError
from tracefork_core.tape import Tape

if TYPE_CHECKING:
    from tracefork_core.blaming.shrinking.attempts import Attempts
    from tracefork_core.blaming.shrinking.result import Shrinking
    from tracefork_core.blaming.shrinking.shrink import Tell
    from tracefork_core.cli.display.progress import Tell as Show

UNDECIDED = 1

app = typer.Typer(add_completion=False, rich_markup_mode=None)


@app.command(cls=options.TapeAndAgent)
@options.grouped
def shrink(
    ctx: typer.Context,
    tape: options.TapeName,
    agent_words: options.AgentWords,
    oracle: fork_options.OracleWords = "exit",
    at: Annotated[
        str | None,
        typer.Option(
            "--at",
            metavar="N|STEP",
            help="The call to leave messages, tools and lines out of (default: the last).",
        ),
    ] = None,
    budget: Annotated[
        str | None,
        typer.Option(
            "--budget",
            metavar="'20 calls'",
            help="Allow live calls: $5, '20 calls' or 10m; several with commas.",
        ),
    ] = None,
    confirm: Annotated[
        int,
        typer.Option(
            "--confirm", metavar="K", min=1, help="How often the same live run must fail."
        ),
    ] = 3,
    request: Annotated[
        Path | None,
        typer.Option(
            "--request", metavar="FILE", help="Also write the smallest request of the live call."
        ),
    ] = None,
    *,
    branch: fork_options.BranchOptions,
    as_json: options.AsJson = False,
) -> int:
    """Find the smallest run that still fails.

    Model calls are left out, and the agent gets the recorded answers that are left, at no cost.
    With --budget the last call is live in each try: the model has to fail again. Messages, tools
    and lines are then left out of it, too. The result is a branch, which replays by itself.
    """
    path = tape_names.find(tape)
    agent, folder = agent_words.read_for(path, ctx)
    from tracefork_core.blaming.oracles.oracles import read_oracle
    from tracefork_core.blaming.shrinking.shrink import shrink as shrinking
    from tracefork_core.blaming.trials.budget import Budget
    from tracefork_core.cli.agent.callable_agent import Program
    from tracefork_core.cli.display.progress import progress

    limits, here = Budget.read(budget) if budget else None, Path.cwd()
    if request is not None and limits is None:
        raise UsageError("tracefork: --request needs live calls. Add --budget '20 calls'.")
    output = branch.output or path.with_name(f"{path.stem}.small{path.suffix}")
    output = tape_names.to_write(output)
    rerun = ask_about_tools(path, allowed=branch.allow_writes)
    with Tape.open(path) as opened:
        os.environ.update(hash_seed.with_seed(os.environ, opened.hash_seed))
    os.chdir(folder)
    agent.prepare()
    grades = read_oracle(oracle, here)
    with screen.stdout_kept(), progress() as show:
        result = shrinking(
            path,
            Program(agent, folder),
            grades,
            output,
            at=at,
            budget=limits,
            confirm=confirm,
            fresh=agent.form != "function",
            writes=branch.writes(),
            reads=branch.reads or [],
            rerun_tools=rerun,
            mask=branch.mask or [],
            overwrite=branch.overwrite,
            tell=_following(show),
        )
    os.chdir(here)
    if request is not None and result.request is not None:
        request.write_text(result.request + "\n", encoding="utf-8")
    if result.branch is not None:
        with Tape.open(output) as small:
            remember(output, small.digest, agent, folder, branch.mask or [], is_branch=True)
    code = UNDECIDED if result.doubt or result.branch is None else 0
    code = INTERRUPTED if result.is_interrupted else code
    following = _next(tape_names.shown(path), output, result, has_budget=limits is not None)
    if as_json:
        document = {"command": "shrink", "exit": code, **msgspec.to_builtins(result)}
        screen.say_json({**document, "next": following})
    else:
        _print(result, following, has_budget=limits is not None)
    return code


def _following(show: Show) -> Tell:
    from tracefork_core.cli.display.progress import left as time_left

    def tell(kind: str, kept: int, left: int, attempts: Attempts) -> None:
        words = f"{kind}: {kept} left · {figures.several(attempts.trials, 'fork')}"
        words += f" · {figures.several(attempts.calls, 'live call')}"
        words += f" · {_cost(attempts.usd)}"
        began = time.monotonic() - attempts.seconds
        words += time_left(began, attempts.trials, attempts.trials + left)
        show(words)

    return tell


def _next(shown: str, output: Path, result: Shrinking, *, has_budget: bool) -> str:
    if result.branch is None:
        return f"tracefork blame {shlex.quote(shown)} --oracle …"
    small = shlex.quote(tape_names.shown(output))
    more = "" if has_budget else " · add --budget '20 calls' to shrink the messages of a call"
    return f"tracefork replay {small} · tracefork diff {small}{more}"


def _print(result: Shrinking, following: str, *, has_budget: bool) -> None:
    from rich.text import Text

    console = screen.stdout()
    if result.branch is None:
        console.print("○ nothing was left out", soft_wrap=True)
    else:
        name = printable(tape_names.shown(Path(result.branch)))
        console.print(Text("● wrote ", screen.GOOD).append(name, "bold"), soft_wrap=True)
    for part in result.parts:
        words = f"  {part.kind:<12}{part.kept} of {part.before}"
        words += " · each one is needed" if part.minimal and not part.undecided else ""
        words += f" · {part.undecided} undecided" if part.undecided else ""
        console.print(words + ("" if part.minimal else " · not finished"), soft_wrap=True)
    took = f"{figures.several(result.forks, 'fork')} · "
    took += f"{figures.several(result.calls, 'live call')} · {_cost(result.usd)}"
    console.print(f"  {took} · {figures.duration(result.seconds)}", style=screen.DIM)
    if result.branch is not None and not has_budget:
        console.print("  the agent fails with these recorded answers; no model was asked again")
    for reason in result.reasons:
        console.print(f"  undecided: {printable(reason)}", style=screen.DIM, soft_wrap=True)
    if result.stopped:
        console.print(f"  stopped: {printable(result.stopped)}", soft_wrap=True)
    if result.doubt:
        console.print(f"! undecided: {printable(result.doubt)}", style=screen.WARN, soft_wrap=True)
    line = Text("  next: ", screen.DIM).append(printable(following), "default")
    console.print(line, soft_wrap=True)


def _cost(usd: float | None) -> str:
    return "price unknown" if usd is None else f"${usd:g}" if not usd else _money(usd)


def _money(usd: float) -> str:
    return figures.money(Decimal(str(usd)))
