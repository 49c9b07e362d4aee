"""`tracefork replay`: run an agent again from its tape, with the network closed."""

from __future__ import annotations

import os
import time
import warnings
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tracefork_core.cli import options, tape_names
from tracefork_core.cli.agent import hash_seed
from tracefork_core.cli.agent.agent import Agent
from tracefork_core.cli.agent.app import compared_response
from tracefork_core.cli.agent.ending import failure
from tracefork_core.cli.agent.hard_exit import Outcome
from tracefork_core.cli.display import screen
from tracefork_core.cli.display.replay_report import (
    Recorded,
    Verdict,
    document,
    print_verdict,
    read_recorded,
    tell_diverged,
)
from tracefork_core.cli.exits import DIFFERENT, FAILED, SAME
from tracefork_core.cli.modes.mode import Mode, ModeOptions
from tracefork_core.cli.modes.mode_run import ModeRun
from tracefork_core.errors import DivergenceError, SurroundingsWarning, UsageError
from tracefork_core.tape.imported import UNKNOWN

if TYPE_CHECKING:
    from tracefork_core.cli.agent.ending import Ending
    from tracefork_core.run.replay import Replaying
    from tracefork_core.run.scope import Scope


app = typer.Typer(add_completion=False, rich_markup_mode=None)


@app.command(cls=options.TapeAndAgent)
@options.grouped
def replay(
    ctx: typer.Context,
    tape: options.TapeName,
    agent_words: options.AgentOrApp,
    compared: options.ReplayOptions,
    modes: ModeOptions,
    boundary: options.Boundary = None,
    speed: Annotated[
        float | None,
        typer.Option(
            "--speed",
            metavar="X",
            help="Keep the recorded pace, X times as fast (default: no waiting).",
        ),
    ] = None,
    order: Annotated[
        str | None,
        typer.Option(
            "--order",
            metavar="SEED|N,N,…",
            help="Deliver overlapping answers in another order, to show races.",
        ),
    ] = None,
    strict: options.Strict = False,
    check: Annotated[
        bool,
        typer.Option(
            "--check", help="TAPE is a folder of `tracefork ci`: replay all of it, bit for bit."
        ),
    ] = False,
    as_json: options.AsJson = False,
) -> int:
    """Run an agent again, with every answer taken from its tape.

    The network is closed. The exit code is 0 only if the agent made every recorded request, and
    ended as it did when it was recorded. Without an agent, this runs the command that recorded the
    tape on this machine, in the folder where it ran then. With --app, the app of a service handles
    the recorded request again, and its response must be the recorded one.
    """
    if check:
        return _check(Path(tape).absolute(), agent_words, strict=strict, as_json=as_json)
    path = tape_names.find(tape)
    modes.check()
    if modes.chosen == Mode.DRY_RUN:
        return _dry_run(path, modes, agent_words, as_json=as_json)
    as_asked = options.order_of(order)
    agent, folder = agent_words.read_for(path, ctx)
    recorded = read_recorded(path, compared.mask or [])
    hash_seed.restore(recorded.hash_seed)  # This may restart the process.
    from tracefork_core.chance.guard.boundary import as_mode as as_boundary
    from tracefork_core.run.replay import replay as replaying

    mode = ModeRun.of(path, modes, folder) if modes.mode or modes.bundle else None
    if mode is not None and not compared.allow:
        mode.close_network()
    if not agent_words.given:
        note = f"· running as recorded: {agent.words} (in {folder})"
        screen.stderr().print(note, style=screen.DIM, soft_wrap=True)
    here = Path.cwd()
    os.chdir(folder)
    agent.prepare()
    warnings.simplefilter("ignore", SurroundingsWarning)  # The report below has the same.
    scope = replaying(
        path,
        match=compared.matchers,
        clock=not compared.no_clock,
        entropy=not compared.no_entropy,
        allow=compared.allow or [],
        subprocesses=not compared.no_subprocess,
        boundary=as_boundary(boundary),
        mask=compared.mask or [],
        speed=speed,
        order=as_asked,
        strict=strict,
        scope="process",
    )
    typed = agent.words if agent_words.given or folder == here else ""
    with mode.verifying() if mode else nullcontext():
        return perform(scope, recorded, agent, compared.matchers, typed, mode, as_json=as_json)


def _dry_run(
    path: Path, modes: ModeOptions, agent_words: options.AgentOrApp, *, as_json: bool
) -> int:
    """Check a tape without running anything, and write its evidence if that was asked for."""
    from tracefork_core.cli.modes import modes_report
    from tracefork_core.cli.modes.dry_run import dry_run
    from tracefork_core.cli.modes.mode_run import write_evidence

    if agent_words.given:
        raise UsageError("tracefork: --mode dry-run runs nothing. Leave the agent out.")
    found = dry_run(path)
    more = modes_report.Compared(Mode.DRY_RUN, found.actions, found.patch).document()
    checked = {"problems": found.problems, "unknown": found.unknown, **more}
    if modes.bundle is not None:
        write_evidence(path, modes.bundle, {"exit": found.exit, **checked})
    if as_json:
        head = {"command": "replay", "exit": found.exit, "tape": str(path)}
        screen.say_json({**head, "tape_digest": found.digest, **checked})
    else:
        modes_report.print_dry_run(found, tape_names.shown(path))
    return found.exit


def _check(folder: Path, agent_words: options.AgentOrApp, *, strict: bool, as_json: bool) -> int:
    """Replay all tapes that the manifest of a folder lists."""
    from tracefork_core.cli.commands import ci
    from tracefork_core.cli.gate import manifest

    if agent_words.given:
        raise UsageError(
            "tracefork: --check takes a folder alone; its manifest names the agents. "
            "`tracefork ci record SCRIPT.py` adds one."
        )
    gate = ci.check_folder(folder, manifest.read(folder), strict=strict, exact=True)
    return ci.tell(gate, "replay", as_json=as_json)


def perform(
    scope: Scope[Replaying],
    recorded: Recorded,
    agent: Agent,
    matchers: list[str],
    typed: str,
    mode: ModeRun | None = None,
    *,
    as_json: bool,
) -> int:
    """Run the agent, report the verdict, and return the exit code.

    `typed` is the agent as it was typed after the tape, if it was.
    """
    began = time.perf_counter()

    def report(outcome: Outcome[Replaying]) -> int:
        try:
            with screen.stdout_kept(as_json):
                run, ending = outcome()
        except DivergenceError as error:
            return tell_diverged(error, recorded, agent, typed, as_json=as_json)
        seconds = time.perf_counter() - began
        verdict = _judge(recorded, run, ending, agent, matchers, seconds)
        if mode is not None:
            verdict = mode.judged(verdict)
        if as_json:
            more = mode.document() if mode else {}
            screen.say_json({**document(recorded, verdict), **more})
        else:
            print_verdict(recorded, verdict)
        return verdict.exit

    def is_stopped(run: Replaying) -> bool:
        return run.stop is not None

    return report(lambda: agent.run_under(scope, show=True, told=report, is_stopped=is_stopped))


def _judge(
    recorded: Recorded,
    run: Replaying,
    ending: Ending,
    agent: Agent,
    matchers: list[str],
    seconds: float,
) -> Verdict:
    """Compare how the agent ended with how it ended when it was recorded."""
    asked, then = run.exchanges + run.auxiliary_left, recorded.outcome
    if then == UNKNOWN:  # Of an imported run. An agent that fails now is told like any other.
        then = "ok"
    # Where a fork was stopped, what the agent made of that is no end of its own.
    problem = None
    if run.stop is None:
        problem = failure(
            ending.outcome, ending.status, asked, recorded.exchanges, then, recorded.status
        )
    proven = run.digest == recorded.digest or run.auxiliary_left or run.not_proven
    if problem is None and not proven and not matchers:
        problem = FAILED, f"the digest of this replay is {run.digest}, not that of the tape"
    response = compared_response(recorded.path, recorded.mask, agent)
    if problem is None and response is not None and (differs := response.difference):
        problem = DIFFERENT, differs
    code, reason = problem or (SAME, None)
    return Verdict(code, run, ending, matchers, seconds, reason, response)
