"""The verdict of a replay, for people and as JSON."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from tracefork_core.cli import tape_names
from tracefork_core.cli.display import figures, screen
from tracefork_core.cli.display.card import print_differences
from tracefork_core.cli.display.text import printable
from tracefork_core.cli.exits import DIFFERENT, FAILED, INTERRUPTED, SAME
from tracefork_core.errors import DivergenceError
from tracefork_core.tape.imported import UNKNOWN

if TYPE_CHECKING:
    from tracefork_core.cli.agent.agent import Agent
    from tracefork_core.cli.agent.app import Response
    from tracefork_core.cli.agent.ending import Ending
    from tracefork_core.cli.display.account import Account
    from tracefork_core.run.replay import Replaying

RESULTS = {SAME: "same", DIFFERENT: "different", FAILED: "failed", INTERRUPTED: "interrupted"}


@dataclass(frozen=True, slots=True)
class Recorded:
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
class Verdict:
    """The result of a replay that did not diverge. `mode` are the lines of its mode, if any."""

    exit: int
    run: Replaying
    ending: Ending
    matchers: list[str]
    seconds: float
    reason: str | None
    response: Response | None
    mode: tuple[str, ...] = ()


def read_recorded(path: Path, mask: Sequence[str]) -> Recorded:
    """Return what a tape says about its recording."""
    from tracefork_core.tape import Tape

    with Tape.open(path) as tape:
        return Recorded(
            path,
            tape_names.shown(path),
            len(tape.exchanges),
            tape.digest,
            tape.receipt.outcome if tape.receipt else None,
            tape.receipt.status if tape.receipt else None,
            tape.hash_seed,
            tuple(mask),
        )


def tell_diverged(
    error: DivergenceError, recorded: Recorded, agent: Agent, typed: str, *, as_json: bool
) -> int:
    """Print where a replay left its tape, and return the exit code."""
    from tracefork_core.cli.agent.app import compared_response
    from tracefork_core.cli.display.card import card_document, print_card

    divergence = replace(error.divergence, tape=recorded.shown)
    is_proxied = agent.form == "proxied"
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
                "divergence": card_document(divergence, typed, is_proxied=is_proxied),
            }
        )
    else:
        print_card(screen.stderr(), divergence, agent=typed, is_proxied=is_proxied)
        if (response := compared_response(recorded.path, recorded.mask, agent)) is not None:
            _print_response(response)
    return DIFFERENT


def _saved(recorded: Recorded) -> Account | None:
    from tracefork_core.cli.display.account import saved
    from tracefork_core.tape import Tape

    with Tape.open(recorded.path) as tape:
        return saved(tape)


def document(recorded: Recorded, verdict: Verdict) -> dict[str, object]:
    """Return the verdict as JSON-able values."""
    from tracefork_core.cli.display.account import dollars

    run, account = verdict.run, _saved(recorded)
    return {
        "command": "replay",
        "exit": verdict.exit,
        "result": RESULTS[verdict.exit],
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
        "not_proven": run.not_proven,
        "stop": run.stop.words if run.stop else None,
        "untaped": run.untaped,
        "response": verdict.response.document() if verdict.response else None,
        "completed": run.completed,
        "seconds": verdict.seconds,
        "saved_usd": dollars(account.cost if account else None),
        "divergence": None,
    }


def print_verdict(recorded: Recorded, verdict: Verdict) -> None:
    """Print the verdict for people."""
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
        for note in verdict.mode:
            screen.note(console, f"  {note}")
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
    for note in (f"digest {figures.digest(run.digest)}", *_notes(recorded, verdict), *verdict.mode):
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


def _is_exact(recorded: Recorded, run: Replaying) -> bool:
    return run.digest == recorded.digest and not run.auxiliary_misses


def _see(recorded: Recorded) -> str:
    return f"tracefork show {shlex.quote(recorded.shown)}"


def _notes(recorded: Recorded, verdict: Verdict) -> list[str]:
    """Return what a user should know about a replay that succeeded."""
    from tracefork_core.cli.display.coverage import subprocess_words, unseen_words
    from tracefork_core.run.untaped import untaped_words

    notes, run = [], verdict.run
    if run.digest != recorded.digest:
        matchers = f"; not compared: {', '.join(verdict.matchers)}" if verdict.matchers else ""
        notes.append(f"tape digest {figures.digest(recorded.digest)}{matchers}")
    if run.not_proven:
        notes.append(f"not proven, as this was imported: {', '.join(run.not_proven)}")
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
    elif recorded.outcome not in ("ok", UNKNOWN):
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
