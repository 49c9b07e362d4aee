"""The tape that a session answers from: what of it was asked for, and what was not yet."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

import msgspec

from tracefork_core.errors import Divergence
from tracefork_core.exchange.contract import Request
from tracefork_core.exchange.current import running_checkpoint
from tracefork_core.exchange.lane import UNORDERED
from tracefork_core.exchange.telemetry import goes_to_collector, is_report
from tracefork_core.explaining import divergence
from tracefork_core.explaining.advice import differs_at_random
from tracefork_core.matching.answer_pool import Unused
from tracefork_core.matching.comparable import Form, form
from tracefork_core.providers.auxiliary import is_auxiliary
from tracefork_core.session.forking import Fork
from tracefork_core.tape import Exchange, Tape
from tracefork_core.tape.digest import canonical, chain
from tracefork_core.tape.event import ExchangeAside, ExchangePayload

Origin = Callable[[str, str], str]
"""Tells of a checkpoint of a thread which one it is a fork of; itself, where it is none."""


class Source:
    """Finds what answers a request, or says where the run left its tape.

    Under a fork that is what comes before the fork point, and the question there.
    """

    def __init__(self, tape: Tape, matchers: Sequence[str], fork: Fork | None) -> None:
        self.tape = tape
        self._matchers = tuple(matchers)
        self._fork = fork
        recorded = tape.exchanges if fork is None else tape.exchanges[: fork.plan.at]
        skipped = skipped_on(tape)
        self._recorded = recorded = [one for one in recorded if one.n not in skipped]
        self._is_by_thread = False
        self._origin: Origin = lambda _, at: at
        self._unused, self._auxiliary = self._divided(recorded)
        # Of reports as many are sent as there is time for: those on the tape are proven by it.
        self._reports = {
            one.n for one in recorded if one.is_auxiliary and goes_to_collector(one.url)
        }
        self._replayed = {n: tape.exchanges[n].canonical for n in skipped | self._reports}
        self.is_travelled = False
        self.as_recorded: set[str] = set()
        """The threads of a framework that are given what they were given when it was recorded."""

    @property
    def digest(self) -> str:
        """The digest of what was asked and answered, to compare with the tape's."""
        return chain(payload for _, payload in sorted(self._replayed.items()))

    @property
    def is_proven(self) -> bool:
        """Whether all that was recorded was asked and answered, but for auxiliary requests."""
        left = {exchange.n: exchange.canonical for exchange in self._auxiliary.remaining()}
        whole = sorted((left | self._replayed).items())
        return chain(payload for _, payload in whole) == self.tape.digest

    @property
    def waiting(self) -> set[int]:
        """The exchanges that were not asked for so far."""
        parts = self._unused.remaining(), self._auxiliary.remaining()
        return {exchange.n for part in parts for exchange in part}

    @property
    def auxiliary_left(self) -> int:
        """How many auxiliary exchanges were not asked for, reports apart."""
        return len(self._auxiliary.remaining()) - self.reports_left

    @property
    def reports_left(self) -> int:
        """How many reports to a collector were not sent again."""
        return len(self._reports.intersection(one.n for one in self._auxiliary.remaining()))

    def was_asked(self, n: int) -> bool:
        """Return whether an exchange was asked for."""
        return n in self._replayed

    def take(
        self, asked: Form, mask: Callable[[], Form], lane: str, in_step: str
    ) -> Exchange | Divergence | None:
        """Use up the exchange that answers a request on a lane, or say how the run left the tape.

        An auxiliary request has no order, and None where the tape does not hold it: that leaves no
        tape.

        `in_step` is the name of the lane within its step: in a run that begins in the middle, lanes
        have other numbers than in the recorded one, and are known by that.

        A request is looked for as it is, and only then with its secrets masked by `mask`: to search
        for them is dear, and what is a secret here alone was none when this was recorded.

        Where the tape was cut off, other lanes go on first, as far as it goes: to them a request
        that it does not hold is one of those in flight.
        """
        lane = self.line(lane, in_step)
        taken = self._take(asked, lane)
        if taken is None:
            asked = mask()
            taken = self._take(asked, lane)
        if taken is None:
            return None if _is_auxiliary(asked) else self._missed(asked, lane)
        exchange, due = taken
        if due is not exchange and not self.is_travelled and not exchange.is_auxiliary:
            return divergence.out_of_order(self.tape, asked, due, exchange)
        payload = exchange.payload
        self._replayed[exchange.n] = (
            exchange.canonical
            if asked.record == exchange.request
            else canonical(msgspec.structs.replace(payload, request=asked.record))
        )
        return exchange

    def travel(self, left: Sequence[int], gone: Collection[int], origin: Origin) -> list[int]:
        """Let some exchanges be still to come, asked for or not, and others past.

        Of those `left` that are alike the first answers first; `origin` tells of a checkpoint of
        a thread which one it is a fork of. Returns those that were still to come, and are past now.
        """
        self._is_by_thread = True
        self._origin = origin
        if self._fork is not None:
            self._fork.travel(_line_of_thread)
        waiting = self.waiting
        self._let_come([*left, *sorted(waiting.difference(left, gone))])
        return sorted(waiting.intersection(gone))

    def skip(self, exchanges: Collection[int]) -> None:
        """Go past exchanges that the recorded run went past: they are proven by that."""
        self._let_come(sorted(self.waiting.difference(exchanges)))
        past = set(exchanges)
        for exchange in self._recorded:
            if exchange.n in past:
                self._replayed[exchange.n] = exchange.canonical

    def _let_come(self, numbers: Sequence[int]) -> None:
        by_number = {exchange.n: exchange for exchange in self._recorded}
        left = [by_number[n] for n in numbers if n in by_number]
        self._unused, self._auxiliary = self._divided(left)

    def _divided(self, exchanges: Sequence[Exchange]) -> tuple[Unused, Unused]:
        """Return what has to be asked for and what need not be."""
        parts = (
            [exchange for exchange in exchanges if exchange.is_auxiliary is auxiliary]
            for auxiliary in (False, True)
        )
        if self._is_by_thread:
            needed, auxiliary = (
                Unused(part, self._key_on_thread, _line_of_thread, self._step_of) for part in parts
            )
        else:
            needed, auxiliary = (Unused(part, self._key) for part in parts)
        return needed, auxiliary

    def _step_of(self, exchange: Exchange) -> tuple[str, str] | None:
        """Return what the tasks of one superstep have in common, a fork's with the recorded."""
        if exchange.checkpoint is None:
            return None
        thread, at = exchange.checkpoint
        return thread, self._origin(thread, at)

    def comes_after(self, fork: Fork, asked: Form, lane: str, in_step: str) -> bool:
        """Return whether a request comes after the fork point, on its lane."""
        if _is_auxiliary(asked) and any(self._auxiliary.has(key) for key in self._keys(asked)):
            return False
        if lane == UNORDERED or not fork.knows(lane):
            return not any(self._unused.has(key) for key in self._keys(asked))
        return self._unused.due(self.line(lane, in_step)) is None

    def keys(self, asked: Form, plain: Form) -> frozenset[bytes]:
        """Return what a request is known by: as it is kept, and as it was asked."""
        return frozenset({self._of(asked), self._of(plain)})

    def differs(self, first: Exchange, asked: Form, keys: frozenset[bytes]) -> Divergence | None:
        """Say how the question at the fork point differs, if it does: nothing was changed yet.

        Who travelled there may have changed the state, but for threads that are given what they
        were given. Their values of chance are others there: they are drawn anew.
        """
        if self.asks(first, keys):
            return None
        if self.is_travelled and (
            _thread_of(first) not in self.as_recorded or differs_at_random(first, asked)
        ):
            return None
        return divergence.unknown_request(self.tape, asked, first, [first], self._matchers)

    def asks(self, exchange: Exchange, keys: frozenset[bytes]) -> bool:
        """Return whether a request of these keys is that of a recorded exchange."""
        return self._key(exchange) in keys

    def left_over(self) -> Divergence | None:
        """Say what had to be asked for and was not, if anything."""
        if self.is_travelled:
            return None
        left = self._unused.remaining()
        if self._fork is not None and self._fork.first and not self._fork.reached:
            first = self._fork.first
            # Not to ask for it is no other run, but then nothing could be changed there.
            if not first.is_auxiliary or first.n in self._fork.plan.changes:
                left.append(first)
        return divergence.left_over(self.tape, left) if left else None

    def left_on(self, thread: str) -> Divergence | None:
        """Say what of a framework's thread was not asked for, if anything: wherever it began."""
        left = [one for one in self._unused.remaining() if _thread_of(one) == thread]
        first = self._fork.first if self._fork is not None and not self._fork.reached else None
        if first is not None and not first.is_auxiliary and _thread_of(first) == thread:
            left.append(first)
        return divergence.left_over(self.tape, left) if left else None

    def _missed(self, asked: Form, lane: str) -> Exchange | Divergence:
        tape, due = self.tape, self._unused.due(lane)
        if not tape.complete and (due is None or lane == UNORDERED):
            payload = ExchangePayload(len(tape.exchanges), asked.record)
            return Exchange(tape, payload, ExchangeAside(lane, "", 0, url=asked.url), b"")
        left = self._unused.remaining()
        return divergence.unknown_request(tape, asked, due, left, self._matchers)

    def _take(self, asked: Form, lane: str) -> tuple[Exchange, Exchange] | None:
        keys = self._keys(asked)
        for pool in (self._auxiliary, self._unused) if _is_auxiliary(asked) else (self._unused,):
            for key in keys:
                if (taken := pool.take(key, lane)) is not None:
                    return taken
        return None

    def _keys(self, asked: Form) -> list[bytes]:
        """Return what answers a request goes by, the best first.

        In a run that begins in the middle, lanes do not tell two threads of a framework apart that
        ask the same, but those do.
        """
        key = self._of(asked)
        place = running_checkpoint() if self._is_by_thread else None
        return [key] if place is None else [_on_thread(key, place), key]

    def _key_on_thread(self, exchange: Exchange) -> bytes:
        key, place = self._key(exchange), exchange.checkpoint
        return key if place is None else _on_thread(key, place)

    def line(self, lane: str, in_step: str) -> str:
        """Return the line that a request belongs to, on which one comes after the other.

        In a run that begins in the middle each thread of a framework has its own: what was asked
        for another one before is no part of it.
        """
        return _of_thread(in_step, running_checkpoint()) if self._is_by_thread else lane

    def _of(self, asked: Form) -> bytes:
        return asked.with_matchers(self._matchers).key

    def _key(self, exchange: Exchange) -> bytes:
        if not self._matchers:
            return canonical(exchange.request)
        request = Request(
            exchange.method,
            exchange.url,
            tuple(exchange.request_headers),
            exchange.request_body,
            exchange.aside.seam,
        )
        return self._of(form(request))


def skipped_on(tape: Tape) -> set[int]:
    """Return the exchanges of a branch that it went past, and is proven by: it did not ask."""
    branch = tape.branch
    return set(branch.skipped).intersection(range(len(tape.exchanges))) if branch else set()


def _is_auxiliary(asked: Form) -> bool:
    record = asked.record
    return is_auxiliary(record.method, record.url) or is_report(
        record.method, record.url, record.headers, asked.body
    )


def _thread_of(exchange: Exchange) -> str | None:
    return exchange.checkpoint[0] if exchange.checkpoint is not None else None


def _line_of_thread(exchange: Exchange) -> str:
    return _of_thread(exchange.in_step, exchange.checkpoint)


def _of_thread(in_step: str, place: tuple[str, str] | None) -> str:
    return in_step if place is None or in_step == UNORDERED else f"{place[0]}\0{in_step}"


def _on_thread(key: bytes, place: tuple[str, str]) -> bytes:
    return b"%b\0%b" % (key, place[0].encode("utf-8", "surrogatepass"))
