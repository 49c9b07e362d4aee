"""`tracefork replay`: run an agent again from its tape, with the network closed."""

from __future__ import annotations

import os
import shlex
import time
import warnings
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tracefork_core.cli import options, tape_names
from tracefork_core.cli.agent import hash_seed
from tracefork_core.cli.agent.agent import Agent
from tracefork_core.cli.agent.app import Response, compared_response
from tracefork_core.cli.agent.ending import failure
from tracefork_core.cli.agent.hard_exit import Outcome
from tracefork_core.cli.display import figures, screen
from tracefork_core.cli.display.card import print_differences
from tracefork_core.cli.display.text import printable
from tracefork_core.cli.exits import DIFFERENT, FAILED, INTERRUPTED, SAME
from tracefork_core.errors import DivergenceError, SurroundingsWarning, UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tracefork_core.cli.agent.ending import Ending
    from tracefork_core.cli.display.account import Account
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
    as_asked = options.order_of(order)
    agent, folder = agent_words.read_for(path, ctx)
    recorded = _read(path, compared.mask or [])
    hash_seed.restore(recorded.hash_seed)  # This may restart the process.
    from tracefork_core.chance.guard.boundary import as_mode as as_boundary
    from tracefork_core.run.replay import replay as replaying

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
    return _perform(scope, recorded, agent, compared.matchers, typed, as_json=as_json)


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


def _perform(
    scope: Scope[Replaying],
    recorded: _Recorded,
    agent: Agent,
    matchers: list[str],
    typed: str,
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
            return _diverged(error, recorded, agent, typed, as_json=as_json)
        seconds = time.perf_counter() - began
        verdict = _judge(recorded, run, ending, agent, matchers, seconds)
        if as_json:
            screen.say_json(_document(recorded, verdict))
        else:
            _print(recorded, verdict)
        return verdict.exit

    def is_stopped(run: Replaying) -> bool:
        return run.stop is not None

    return report(lambda: agent.run_under(scope, show=True, told=report, is_stopped=is_stopped))


_RESULTS = {SAME: "same", DIFFERENT: "different", FAILED: "failed", INTERRUPTED: "interrupted"}


@dataclass(frozen=True, slots=True)
class _Recorded:
    """What a tape says about its recording; `outcome` is None if the recording was cut off."""

    path: Path
    shown: str
    exchanges: int
    digest: str
    outcome: str | None
    status: int | None
    hash_seed: str | None
    mask: tuple[str, ...]

    @property
    def complete(self) -> bool:
        return self.outcome is not None


@dataclass(frozen=True, slots=True)
class _Verdict:
    """The result of a replay that did not diverge."""

    exit: int
    run: Replaying
    ending: Ending
    matchers: list[str]
    seconds: float
    reason: str | None
    response: Response | None


def _read(path: Path, mask: Sequence[str]) -> _Recorded:
    from tracefork_core.tape import Tape

    with Tape.open(path) as tape:
        return _Recorded(
            path,
            tape_names.shown(path),
            len(tape.exchanges),
            tape.digest,
            tape.receipt.outcome if tape.receipt else None,
            tape.receipt.status if tape.receipt else None,
            tape.hash_seed,
            tuple(mask),
        )


def _judge(
    recorded: _Recorded,
    run: Replaying,
    ending: Ending,
    agent: Agent,
    matchers: list[str],
    seconds: float,
) -> _Verdict:
    """Compare how the agent ended with how it ended when it was recorded."""
    asked, then = run.exchanges + run.auxiliary_left, recorded.outcome
    # Where a fork was stopped, what the agent made of that is no end of its own.
    problem = None
    if run.stop is None:
        problem = failure(
            ending.outcome, ending.status, asked, recorded.exchanges, then, recorded.status
        )
    proven = run.digest == recorded.digest or run.auxiliary_left
    if problem is None and not proven and not matchers:
        problem = FAILED, f"the digest of this replay is {run.digest}, not that of the tape"
    response = compared_response(recorded.path, recorded.mask, agent)
    if problem is None and response is not None and (differs := response.difference):
        problem = DIFFERENT, differs
    code, reason = problem or (SAME, None)
    return _Verdict(code, run, ending, matchers, seconds, reason, response)


def _diverged(
    error: DivergenceError, recorded: _Recorded, agent: Agent, typed: str, *, as_json: bool
) -> int:
    from tracefork_core.cli.display.card import card_document, print_card

    divergence = replace(error.divergence, tape=recorded.shown)
    if as_json:
        screen.say_json(
            {
                "command": "replay",
                "exit": DIFFERENT,
                "result": "different",
                "tape": str(recorded.path),
                "of": recorded.exchanges,
                "tape_digest": recorded.digest,
                "complete": recorded.complete,
                "agent": agent.words,
                "divergence": card_document(divergence, typed),
            }
        )
    else:
        print_card(screen.stderr(), divergence, agent=typed)
        if (response := compared_response(recorded.path, recorded.mask, agent)) is not None:
            _print_response(response)
    return DIFFERENT


def _saved(recorded: _Recorded) -> Account | None:
    from tracefork_core.cli.display.account import saved
    from tracefork_core.tape import Tape

    with Tape.open(recorded.path) as tape:
        return saved(tape)


def _document(recorded: _Recorded, verdict: _Verdict) -> dict[str, object]:
    from tracefork_core.cli.display.account import dollars

    run, account = verdict.run, _saved(recorded)
    return {
        "command": "replay",
        "exit": verdict.exit,
        "result": _RESULTS[verdict.exit],
        "reason": verdict.reason,
        "tape": str(recorded.path),
        "exchanges": run.exchanges,
        "of": recorded.exchanges,
        "digest": run.digest,
        "tape_digest": recorded.digest,
        "bit_exact": _is_exact(recorded, run),
        "complete": recorded.complete,
        "sockets": run.sockets,
        "subprocesses": run.subprocesses,
        "blind_spots": run.unwatched,
        "matchers": verdict.matchers,
        "outcome": {"recorded": recorded.outcome, "now": verdict.ending.outcome},
        "clock_misses": run.clock_misses,
        "leaks": run.leaks,
        "moved": run.moved,
        "reordered": run.reordered,
        "entropy_misses": run.entropy_misses,
        "auxiliary_misses": run.auxiliary_misses,
        "auxiliary_left": run.auxiliary_left,
        "differences": run.differences,
        "stop": run.stop.words if run.stop else None,
        "untaped": run.untaped,
        "response": verdict.response.document() if verdict.response else None,
        "completed": run.completed,
        "seconds": verdict.seconds,
        "saved_usd": dollars(account.cost if account else None),
        "divergence": None,
    }


def _print(recorded: _Recorded, verdict: _Verdict) -> None:
    from rich.text import Text

    from tracefork_core.run.captured import EMPTY

    console, run = screen.stderr(), verdict.run
    share = f"{run.exchanges} of {figures.several(recorded.exchanges, 'exchange')}"
    sockets = figures.several(run.sockets, "socket")
    if verdict.exit != SAME:
        head = Text("✗ ", screen.BAD).append(printable(verdict.reason or ""), "default")
        console.print(head.append(f" · {share} replayed · {sockets}"), soft_wrap=True)
        if verdict.response is not None:
            _print_response(verdict.response)
        if not isinstance(verdict.ending.error, Exception):  # Its traceback has them.
            print_differences(console, run.differences)
        console.print(
            Text("  see   ", screen.DIM).append(_see(recorded), "default"), soft_wrap=True
        )
        return
    if not recorded.exchanges:
        console.print(f"· {EMPTY} · {sockets}", soft_wrap=True)
        for note in _notes(recorded, verdict):
            screen.note(console, f"  {note}")
        return
    exact = "bit-exact" if _is_exact(recorded, run) else "alike"
    account = _saved(recorded)
    spared = " and ".join(reversed(account.spending)) if account else ""
    saved = f"$0 (saved {spared})" if spared else "$0"
    facts = [f"replayed {share} {exact}", sockets, saved, figures.duration(verdict.seconds)]
    console.print(Text("✓ ", screen.GOOD).append(" · ".join(facts), "default"), soft_wrap=True)
    for note in (f"digest {figures.digest(run.digest)}", *_notes(recorded, verdict)):
        screen.note(console, f"  {note}")
    print_differences(console, run.differences)


def _print_response(response: Response) -> None:
    for note in response.notes():
        screen.stderr().print(f"  {printable(note)}", soft_wrap=True)


def auxiliary_words(left: int, misses: int) -> str:
    """Return how the token counts differed from those on the tape; empty if they did not."""
    words = [f"{left} not requested"] if left else []
    words += [f"{misses} not on the tape (refused)"] if misses else []
    return ", ".join(words)


def _is_exact(recorded: _Recorded, run: Replaying) -> bool:
    return run.digest == recorded.digest and not run.auxiliary_misses


def _see(recorded: _Recorded) -> str:
    return f"tracefork show {shlex.quote(recorded.shown)}"


def _notes(recorded: _Recorded, verdict: _Verdict) -> list[str]:
    """Return what a user should know about a replay that succeeded."""
    from tracefork_core.cli.display.coverage import subprocess_words, unseen_words
    from tracefork_core.run.untaped import untaped_words

    notes, run = [], verdict.run
    if run.digest != recorded.digest:
        matchers = f"; not compared: {', '.join(verdict.matchers)}" if verdict.matchers else ""
        notes.append(f"tape digest {figures.digest(recorded.digest)}{matchers}")
    if words := auxiliary_words(run.auxiliary_left, run.auxiliary_misses):
        notes.append(f"same as recorded, except for token counts: {words}")
    if run.moved:
        more = f" (and {len(run.moved) - 1} more)" if len(run.moved) > 1 else ""
        notes.append(f"! {run.moved[0]}{more}; --strict refuses that")
    if verdict.response is not None:
        notes.append(f"the app answered {verdict.response.words}")
    if not recorded.complete:
        notes.append("incomplete: the recording was cut off; the part on the tape was replayed")
    elif run.stop is not None:
        notes.append(f"the fork was {run.stop.words}: the branch ends there")
    elif recorded.outcome != "ok":
        notes.append(f"the agent failed with {recorded.outcome}, as it did in the recording")
    notes += [f"! not on the tape: {leak}" for leak in run.leaks]
    if tools := run.untaped:
        notes.append(f"! {untaped_words(tools, 'This replay ran {} again.')}")
    if run.subprocesses:
        notes.append(
            f"! not captured: {subprocess_words(run.subprocesses)} (--no-subprocess refuses them)"
        )
    if unseen := run.unwatched:
        notes.append(unseen_words(unseen))
    if misses := run.clock_misses:
        notes.append(f"{figures.several(misses, 'clock read')} had no recorded value")
    if misses := run.entropy_misses:
        notes.append(f"{figures.several(misses, 'random draw')} had no recorded value")
    return [printable(note) for note in notes]
