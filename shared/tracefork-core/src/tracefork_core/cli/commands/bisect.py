"""`tracefork bisect`: find the failing step by halving, if outcomes are repeatable."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
import typer

from tracefork_core.cli import fork_options, options, tape_names
from tracefork_core.cli.agent import hash_seed
from tracefork_core.cli.display import figures, screen
from tracefork_core.cli.display.text import printable
from tracefork_core.cli.repeated import ask_about_tools
from tracefork_core.tape import Tape

if TYPE_CHECKING:
    from tracefork_core.blaming.bisect import Bisected
    from tracefork_core.blaming.engine.probe import Trial

NO_STEP = 1

app = typer.Typer(add_completion=False, rich_markup_mode=None)


@app.command(cls=options.TapeAndAgent)
@options.grouped
def bisect(
    ctx: typer.Context,
    tape: options.TapeName,
    agent_words: options.AgentWords,
    oracle: fork_options.OracleWords = "exit",
    *,
    live: fork_options.TailOptions,
    as_json: options.AsJson = False,
) -> int:
    """Find the failing step by halving, if outcomes are repeatable.

    Like `git bisect`: each fork keeps the first answers and asks the rest live. After about log2(n)
    forks this names the first answer that makes the run fail when it is kept. A program that exits
    with 125 skips a position. If the same fork may pass or fail by chance, use `tracefork blame`.
    """
    path = tape_names.find(tape)
    agent, folder = agent_words.read_for(path, ctx)
    from tracefork_core.blaming.bisect import bisect as bisecting
    from tracefork_core.blaming.oracles.oracles import read_oracle
    from tracefork_core.cli.agent.callable_agent import Program

    rerun = ask_about_tools(path, allowed=live.allow_writes)
    with Tape.open(path) as opened:
        kept = opened.hash_seed
    here = Path.cwd()
    os.chdir(folder)
    agent.prepare()
    grades = read_oracle(oracle, here)
    os.environ.update(hash_seed.with_seed(os.environ, kept))
    with screen.stdout_kept():  # Threads that an agent leaves behind may print.
        result = bisecting(
            path,
            Program(agent, folder),
            grades,
            fresh=agent.form != "function",
            writes=live.writes(),
            reads=live.reads or [],
            rerun_tools=rerun,
            tail=live.tail(),
            mask=live.mask or [],
            tell=_tell,
        )
    code = NO_STEP if result.unit is None else 0
    if as_json:
        screen.say_json({"command": "bisect", "exit": code, **msgspec.to_builtins(result)})
    else:
        _print(result)
    return code


def _tell(kept: int, trial: Trial) -> None:
    outcome = {True: "bad", False: "good", None: f"skipped: {trial.undefined}"}[trial.failed]
    line = f"· {figures.several(kept, 'answer')} kept: {outcome}"
    screen.stderr().print(printable(line), style=screen.DIM, soft_wrap=True)


def _print(found: Bisected) -> None:
    took = f"{figures.several(found.forks, 'fork')} · {figures.several(found.calls, 'live call')}"
    console = screen.stdout()
    if found.unit is None:
        console.print(f"○ A fresh run fails too, so no recorded step is to blame. {took}")
        return
    name = printable(found.names[found.unit].words)
    words = f"exchange {found.unit} ({name})"
    if found.first is not None and found.first < found.unit:
        words = f"one of exchanges {found.first} to {found.unit}: positions between were skipped"
    console.print(f"● The run began to fail at {words}. {took}", soft_wrap=True)
