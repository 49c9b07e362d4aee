"""The commands that the page may start, with what each does and costs, to confirm before it starts.

The page names a verb and a few values. The words of the command are made here, so that no page can
make another command of them, and a person confirms what is shown.
"""

from __future__ import annotations

import shlex
from decimal import Decimal
from pathlib import Path
from typing import Literal

import msgspec

from tracefork_core.cli import tape_names
from tracefork_core.cli.agent import command_store
from tracefork_core.cli.display import figures
from tracefork_core.cli.display.text import printable
from tracefork_core.errors import UsageError
from tracefork_core.providers import model_call
from tracefork_core.providers.prices import price_of
from tracefork_core.run.untaped import repeated_tools, untaped_words
from tracefork_core.session.side_effects import Writes, is_recorded_write, tool_names
from tracefork_core.tape import Exchange, Tape

Verb = Literal["fork", "try", "rerun", "blame"]
_LONGEST = 20_000
_CHANGES = {
    "fork": ("text", "model", "temperature", "system", "prompt", "fail"),
    "try": ("model", "temperature", "system", "prompt"),
    "rerun": (),
    "blame": (),
}
_NAMED = 6
"""How many effects a confirmation names; the others are counted."""


class Wish(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a page asks for.

    Attributes:
        verb: the command.
        tape: the name of the tape in the list.
        at: the fork point, for `fork` and `try`.
        change: what is changed there: the name of an option of that command; "" for nothing.
        value: what it is changed to.
        oracle: what a good run is, for `blame`.
        budget: the limit, for `blame` and `rerun`.
        writes: what happens to live calls with side effects.
    """

    verb: Verb
    tape: str
    at: int | None = None
    change: str = ""
    value: str = ""
    oracle: str = ""
    budget: str = ""
    writes: Writes = "refuse"


class Offer(msgspec.Struct, frozen=True, kw_only=True):
    """What a person confirms.

    Attributes:
        words: the words of the command, after `tracefork`.
        command: the command as it is typed.
        folder: where the agent runs.
        agent: the command of the agent.
        ceiling: what it can cost at most, or what is known of that.
        effects: what it may do to the world a second time.
    """

    words: list[str]
    command: str
    folder: str
    agent: str
    ceiling: str
    effects: list[str]


def offer(wish: Wish, path: Path) -> Offer:
    """Return what a wish comes to.

    Raises:
        UsageError: it cannot be done as it is, and the text says why.
        TapeError: the tape cannot be read.
    """
    with Tape.open(path) as tape:
        run = command_store.recall(path)
        if run is None or run.digest != tape.digest:
            raise UsageError(
                "tracefork: this tape was not recorded on this machine, or has changed since, so "
                "its command is not known. Type the command in a terminal, with the agent after "
                "the tape."
            )
        words = _words(wish, tape_names.shown(path), len(tape.exchanges))
        return Offer(
            words=words,
            command=printable(f"tracefork {shlex.join(words)}"),
            folder=printable(run.cwd),
            agent=printable(run.agent.words),
            ceiling=_ceiling(wish, tape.exchanges),
            effects=_effects(wish, tape),
        )


def _words(wish: Wish, tape: str, exchanges: int) -> list[str]:
    words = [wish.verb, tape]
    if wish.verb in ("fork", "try"):
        if wish.at is None or not 0 <= wish.at < exchanges:
            raise UsageError(f"tracefork: {tape} has no exchange {wish.at}.")
        words.append(f"--at={wish.at}")
    if wish.change:
        if wish.change not in _CHANGES[wish.verb] or len(wish.value) > _LONGEST:
            known = ", ".join(_CHANGES[wish.verb]) or "nothing"
            raise UsageError(
                f"tracefork: {wish.verb} changes {known}, in up to {_LONGEST:,} characters."
            )
        words.append(f"--{wish.change}={wish.value}")
    if wish.verb == "blame":
        if not wish.oracle or not wish.budget:
            raise UsageError(
                "tracefork: blame needs what a good run is, like exit or regex:refunded, and a "
                "budget, like $1."
            )
        words += [f"--oracle={wish.oracle}", f"--budget={wish.budget}", "--yes"]
    if wish.verb == "rerun":
        words += [f"--budget={wish.budget or '20 calls'}", "--yes"]
    if wish.writes == "allow" or (wish.writes == "stub" and wish.verb != "try"):
        words.append(f"--{wish.writes}-writes")
    return words


def _ceiling(wish: Wish, exchanges: list[Exchange]) -> str:
    if wish.verb == "blame":
        return f"at most {wish.budget}, the budget"
    if wish.verb == "rerun":
        return f"at most {wish.budget or '20 calls'}, the budget; what is unchanged costs nothing"
    start = wish.at or 0
    asked = exchanges[start : start + 1] if wish.verb == "try" else exchanges[start:]
    calls = [(one, call) for one in asked if (call := model_call(one)) is not None]
    prices = [price_of(one, call) for one, call in calls]
    known = [price for price in prices if price is not None]
    cost = f" and cost {figures.money(sum(known, Decimal(0)))}" if len(known) == len(calls) else ""
    several = figures.several(len(calls), "model call")
    if wish.verb == "try":
        return (
            f"one model call; the recorded one{cost.replace(' and', '') or ' has no known price'}"
        )
    return f"no limit: from here on, the recorded run had {several}{cost}"


def _effects(wish: Wish, tape: Tape) -> list[str]:
    """Return what the command may do to the world again, or refuses to."""
    start = wish.at or 0
    until = start if wish.verb == "try" else None
    effects = []
    if untaped := repeated_tools(tape, until):
        then = "With --allow-writes this runs {} again; without it, the command refuses to start."
        effects.append(printable(untaped_words(untaped, then)))
    if wish.verb == "try":
        return effects
    does = {
        "refuse": "the run stops before such a call",
        "stub": "such a call gets its recorded result, and is not made",
        "allow": "such a call IS MADE AGAIN",
    }[wish.writes]
    writes = [one for one in tape.exchanges[start:] if is_recorded_write(one)]
    names = [f"exchange {one.n}, {_called(one)}" for one in writes[:_NAMED]]
    if more := len(writes) - len(names):
        names.append(f"{more} more")
    if names:
        effects.append(f"calls that may change something: {'; '.join(names)}: {does}")
    return effects


def _called(exchange: Exchange) -> str:
    names = tool_names(exchange.url)
    return printable(min(names, key=len) if names else f"{exchange.method} {exchange.url}")
