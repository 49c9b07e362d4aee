"""What record and fork share: a run that is written to a tape of its own."""

from __future__ import annotations

from contextlib import ExitStack
from typing import TypeVar

import msgspec

from tracefork_core.chance.chance import Chance
from tracefork_core.egress.guard import Mode, Watch
from tracefork_core.errors import TapeError
from tracefork_core.masking.masking import Masking
from tracefork_core.run.scope import Scope, Switches
from tracefork_core.run.surroundings import note_surroundings
from tracefork_core.seams.tools.named_tools import NamedTools
from tracefork_core.tape import Environment, Receipt, Tape, TapeWriter
from tracefork_core.tape.environment import describe
from tracefork_core.telemetry.instruments import EXCHANGE_DURATION, RESPONSE_SIZE, TAPE_SIZE
from tracefork_core.telemetry.work import Value, Work

R = TypeVar("R")


class Writing(Scope[R]):
    """A block of code whose run goes onto a tape. `_begin` sets the writer and the session."""

    _writer: TapeWriter
    _chance: Chance

    def __init__(self, switches: Switches) -> None:
        super().__init__(switches)
        self._watch: Watch | None = None

    @property
    def _is_switched_on(self) -> bool:
        return self._watch is not None

    def _write(
        self,
        stack: ExitStack,
        environment: Environment,
        guard: Mode,
        chance: Chance,
        parent: Tape | None = None,
    ) -> None:
        """Switch everything on, and put on the tape what is drawn and read."""
        self._chance = chance
        self._session.sink.before_exchange.append(chance.flush)
        if self._switches.ambient:
            clock = self._switches.clock
            note_surroundings(stack, self._session, environment, clock=clock, parent=parent)
        self._watch = self._switch_on(stack, self._session, guard, chance)

    def _closed(self, error: BaseException | None) -> Receipt | TapeError:
        """Close the tape of a run that ended with `error`; return its receipt, or what broke it."""
        if (broken := self._session.sink.broken) is not None:
            self._writer.abort()
            return broken
        assert self._watch is not None
        try:
            return self._writer.close(
                msgspec.structs.replace(
                    receipt_of(
                        self._watch, self._session.masking, error, self._left_alone, self._chance
                    ),
                    unused_tools=self._tools.unused,
                )
            )
        except TapeError as unfinished:
            return unfinished

    def _facts(self, work: Work) -> dict[str, Value]:
        facts = super()._facts(work)
        ended = self._session.sink.ended
        for nanoseconds, size in ended:
            work.measure(EXCHANGE_DURATION, nanoseconds / 1e9)
            work.measure(RESPONSE_SIZE, size)
        facts |= {
            "tracefork.exchanges.live": len(ended),
            "tracefork.response.size": sum(size for _, size in ended),
        }
        if (path := self._writer.path).exists():
            facts["tracefork.tape"] = self._session.masking.text(str(path))
            facts["tracefork.tape.size"] = size = path.stat().st_size
            work.measure(TAPE_SIZE, size)
        return facts


def environment_under(masking: Masking, tools: NamedTools) -> Environment:
    """Describe where a recording is made, what is masked in it, and what it makes tools."""
    masks = masking.masks.described() if masking.mode != "raw" else []
    named, tables = tools.texts
    return msgspec.structs.replace(describe(), masks=masks, tools=named, tools_of=tables)


def exit_status(error: BaseException | None) -> int | None:
    """Return the exit status that a `SystemExit` asks for; None for any other end."""
    if not isinstance(error, SystemExit):
        return None
    code = error.code
    return 0 if code is None else code & 0xFF if isinstance(code, int) else 1


def end_words(outcome: str, status: int | None) -> str:
    """Return how a run ended, in words."""
    if outcome == "SystemExit" and status is not None:
        outcome = "ok" if status == 0 else f"exit status {status}"
    return "no error" if outcome == "ok" else outcome


def receipt_of(
    watch: Watch, masking: Masking, error: BaseException | None, left_alone: int, chance: Chance
) -> Receipt:
    """Return what a run that ended with `error` says about itself.

    The writer of the tape adds the digest and the counts as it closes.
    """
    return Receipt(
        digest="",
        exchanges=0,
        connections=watch.connections,
        crossed=watch.crossed,
        strays=[masking.text(stray) for stray in watch.strays],
        subprocesses=[masking.text(program) for program in watch.subprocesses],
        outcome="ok" if error is None else type(error).__name__,
        status=exit_status(error),
        secrets=masking.counts,
        left_alone=left_alone,
        replaced=chance.replaced,
        unsearched=masking.unsearched,
        unwatched=sorted(watch.unwatched),
    )
