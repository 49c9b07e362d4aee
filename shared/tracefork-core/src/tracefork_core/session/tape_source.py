"""The tape that answers a session: which of its exchanges were asked for, and which were not."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from functools import partial

import msgspec

from tracefork_core.errors import Divergence
from tracefork_core.exchange.kind import goes_to_collector
from tracefork_core.exchange.lane import UNORDERED
from tracefork_core.explaining import divergence
from tracefork_core.explaining.advice import differs_at_random
from tracefork_core.matching.answer_pool import Unused
from tracefork_core.matching.attempt import Attempt, recorded_key
from tracefork_core.matching.kept_parts import kept_parts
from tracefork_core.matching.lane_pairs import LanePairs
from tracefork_core.session.forking import Fork
from tracefork_core.tape import Exchange, Tape
from tracefork_core.tape.digest import canonical, chain
from tracefork_core.tape.event import ExchangeAside, ExchangePayload

Origin = Callable[[str, str], str]
"""Returns the checkpoint of which a thread's checkpoint is a fork; itself if it is not one."""


class Source:
    """Finds the exchange that answers a request, or says where the run left its tape.

    In a fork it holds what comes before the fork point, and the request there. With `strict`, a
    request in another thread or task than the recorded one is a divergence. An imported tape knows
    no threads and tasks, so a replay of it may ask in any order.

    Attributes:
        stop: the request that the fork was stopped before which made this tape.
        moved: what says so, for each exchange that ran in another thread or task.
    """

    def __init__(
        self, tape: Tape, matchers: Sequence[str], fork: Fork | None, *, strict: bool = False
    ) -> None:
        self.tape = tape
        self._matchers = tuple(matchers)
        self._fork = fork
        recorded = tape.exchanges if fork is None else tape.exchanges[: fork.plan.at]
        skipped = skipped_on(tape)
        self._recorded = recorded = [exchange for exchange in recorded if exchange.n not in skipped]
        self._kept = kept_parts(tape, self._matchers)
        self._key = (
            partial(recorded_key, matchers=self._matchers) if self._kept is None else self._kept.key
        )
        self._is_unordered = self._kept is not None and fork is None
        self._is_by_thread = False
        self._origin: Origin = lambda _, at: at
        self._unused, self._auxiliary = self._divided(recorded)
        # How many reports are sent depends on time, so those on the tape count as replayed.
        self._reports = {
            exchange.n
            for exchange in recorded
            if exchange.is_auxiliary and goes_to_collector(exchange.url)
        }
        self._replayed = {n: tape.exchanges[n].canonical for n in skipped | self._reports}
        self._strict = strict
        self._lanes = LanePairs(exchange.lane for exchange in recorded)
        self.stop = tape.stop if fork is None else None
        self.moved: list[str] = []
        self.is_travelled = False
        self.as_recorded: set[str] = set()
        """The threads of a framework that get the same input as when this was recorded."""

    @property
    def digest(self) -> str:
        """The digest of the exchanges so far, to compare with the tape's."""
        return chain(payload for _, payload in sorted(self._replayed.items()))

    @property
    def is_proven(self) -> bool:
        """Whether everything recorded was asked and answered, except auxiliary requests."""
        left = {exchange.n: exchange.canonical for exchange in self._auxiliary.remaining()}
        whole = sorted((left | self._replayed).items())
        return chain(payload for _, payload in whole) == self.tape.digest

    @property
    def waiting(self) -> set[int]:
        """The numbers of the exchanges that were not asked for so far."""
        parts = self._unused.remaining(), self._auxiliary.remaining()
        return {exchange.n for part in parts for exchange in part}

    @property
    def auxiliary_left(self) -> int:
        """How many auxiliary exchanges were not asked for, without reports."""
        return len(self._auxiliary.remaining()) - self.reports_left

    @property
    def reports_left(self) -> int:
        """How many reports to a collector were not sent again."""
        return len(self._reports.intersection(left.n for left in self._auxiliary.remaining()))

    def was_asked(self, n: int) -> bool:
        """Return whether an exchange was asked for."""
        return n in self._replayed

    def take(self, attempt: Attempt) -> Exchange | Divergence | None:
        """Use up the exchange that answers a request, or say how the run left the tape.

        Returns None for an auxiliary request that the tape does not hold: the run is still the
        same, as such a request has no order and need not be repeated.

        A request is looked up as it is first, and only then with its secrets masked: to search for
        secrets is expensive, and a secret of this process alone was none when this was recorded.

        Where the tape was cut off, a request that it does not hold counts as one of those that were
        in flight, so that other lanes can replay as far as the tape goes.
        """
        line = self.line(attempt)
        asked, taken = attempt.plain, self._take(attempt, self._plain_keys(attempt), line)
        if taken is None and attempt.masked is not asked:
            asked, taken = attempt.masked, self._take(attempt, self._masked_keys(attempt), line)
        if taken is None:
            return None if attempt.is_auxiliary else self._missed(attempt, line)
        exchange, due = taken
        if self._is_moved(exchange, attempt.lane):
            if self._strict:
                return divergence.moved(self.tape, asked, exchange, attempt.lane)
            self.moved.append(divergence.moved_words(exchange, attempt.lane))
        if due is not exchange and not self.is_travelled and not exchange.is_auxiliary:
            return divergence.out_of_order(self.tape, asked, due, exchange)
        payload = exchange.payload
        self._replayed[exchange.n] = (
            exchange.canonical
            if asked.record == exchange.request
            else canonical(msgspec.structs.replace(payload, request=asked.record))
        )
        return exchange

    def _is_moved(self, exchange: Exchange, lane: str) -> bool:
        """Return whether an exchange has another lane than when it was recorded.

        The lanes of a run that begins in the middle have other numbers.
        """
        if self.is_travelled or exchange.is_auxiliary or self._is_unordered:
            return False
        return not self._lanes.are_one(lane, exchange.lane)

    def travel(self, left: Sequence[int], gone: Collection[int], origin: Origin) -> list[int]:
        """Make the exchanges `left` available again and skip those that are `gone`.

        Of equal exchanges, the first in `left` answers first. `origin` is used to recognise tasks
        of the same superstep. Returns the exchanges that were available before and are skipped now.
        """
        self._is_by_thread = True
        self._origin = origin
        if self._fork is not None:
            self._fork.travel(_line_of_thread)
        waiting = self.waiting
        self._keep_only([*left, *sorted(waiting.difference(left, gone))])
        return sorted(waiting.intersection(gone))

    def skip(self, exchanges: Collection[int]) -> None:
        """Skip exchanges that the recorded run skipped, and count them as replayed."""
        self._keep_only(sorted(self.waiting.difference(exchanges)))
        past = set(exchanges)
        for exchange in self._recorded:
            if exchange.n in past:
                self._replayed[exchange.n] = exchange.canonical

    def _keep_only(self, numbers: Sequence[int]) -> None:
        by_number = {exchange.n: exchange for exchange in self._recorded}
        left = [by_number[n] for n in numbers if n in by_number]
        self._unused, self._auxiliary = self._divided(left)

    def _divided(self, exchanges: Sequence[Exchange]) -> tuple[Unused, Unused]:
        """Return the exchanges that a run must ask for, and the auxiliary ones."""
        parts = (
            [exchange for exchange in exchanges if exchange.is_auxiliary is auxiliary]
            for auxiliary in (False, True)
        )
        if self._is_by_thread:
            needed, auxiliary = (
                Unused(part, self._key_on_thread, _line_of_thread, self._step_of) for part in parts
            )
        elif self._is_unordered:
            needed, auxiliary = (Unused(part, self._key, lambda _: UNORDERED) for part in parts)
        else:
            needed, auxiliary = (Unused(part, self._key) for part in parts)
        return needed, auxiliary

    def _step_of(self, exchange: Exchange) -> tuple[str, str] | None:
        """Return a key that the tasks of one superstep share, also in a fork of it."""
        if exchange.checkpoint is None:
            return None
        thread, at = exchange.checkpoint
        return thread, self._origin(thread, at)

    def comes_after(self, fork: Fork, attempt: Attempt) -> bool:
        """Return whether a request comes after the fork point, on its lane."""
        if attempt.is_auxiliary and self._is_in(self._auxiliary, attempt):
            return False
        if attempt.lane == UNORDERED or not fork.knows(attempt.lane):
            return not self._is_in(self._unused, attempt)
        return self._unused.due(self.line(attempt)) is None

    def _is_in(self, pool: Unused, attempt: Attempt) -> bool:
        return any(map(pool.has, self._keys(attempt, self._masked_keys(attempt))))

    def differs(self, first: Exchange, attempt: Attempt) -> Divergence | None:
        """Say how the request at the fork point differs, if it does: nothing was changed before it.

        A run that travelled there may have changed the state, except in threads that get the same
        input as recorded. Its random values differ in any case: they are drawn again.
        """
        if self._is_equal(first, attempt):
            return None
        asked = attempt.masked
        if self.is_travelled and (
            _thread_of(first) not in self.as_recorded or differs_at_random(first, asked)
        ):
            return None
        return divergence.unknown_request(self.tape, asked, first, [first], self._matchers)

    def left_over(self) -> Divergence | None:
        """Describe the exchanges that the agent never asked for, if there are any."""
        if self.is_travelled:
            return None
        left = self._unused.remaining()
        if self._fork is not None and self._fork.first and not self._fork.reached:
            first = self._fork.first
            # Without an auxiliary request the run is the same, but a change there has no effect.
            if not first.is_auxiliary or first.n in self._fork.plan.changes:
                left.append(first)
        return divergence.left_over(self.tape, left) if left else None

    def left_on(self, thread: str) -> Divergence | None:
        """Describe the exchanges of a framework's thread that were not asked for, if any."""
        left = [each for each in self._unused.remaining() if _thread_of(each) == thread]
        first = self._fork.first if self._fork is not None and not self._fork.reached else None
        if first is not None and not first.is_auxiliary and _thread_of(first) == thread:
            left.append(first)
        return divergence.left_over(self.tape, left) if left else None

    def _missed(self, attempt: Attempt, line: str) -> Exchange | Divergence:
        tape, due, asked = self.tape, self._unused.due(line), attempt.masked
        if tape.is_cut_off and (due is None or line == UNORDERED):
            payload = ExchangePayload(len(tape.exchanges), asked.record)
            return Exchange(tape, payload, ExchangeAside(line, "", 0, url=asked.url), b"")
        left = self._unused.remaining()
        if self._kept is not None and (nearest := due or next(iter(left), None)) is not None:
            asked = self._kept.as_kept(asked, nearest)
        return divergence.unknown_request(tape, asked, due, left, self._matchers)

    def _is_equal(self, exchange: Exchange, attempt: Attempt) -> bool:
        if self._kept is None:
            return attempt.equals(exchange)
        keys = self._plain_keys(attempt) + self._masked_keys(attempt)
        return self._kept.key(exchange) in keys

    def _plain_keys(self, attempt: Attempt) -> list[bytes]:
        return [attempt.plain_key] if self._kept is None else self._kept.keys(attempt.plain)

    def _masked_keys(self, attempt: Attempt) -> list[bytes]:
        return [attempt.masked_key] if self._kept is None else self._kept.keys(attempt.masked)

    def _take(
        self, attempt: Attempt, keys: Sequence[bytes], line: str
    ) -> tuple[Exchange, Exchange] | None:
        pools = (self._auxiliary, self._unused) if attempt.is_auxiliary else (self._unused,)
        for pool in pools:
            for pool_key in self._keys(attempt, keys):
                if (taken := pool.take(pool_key, line)) is not None:
                    return taken
        return None

    def _keys(self, attempt: Attempt, keys: Sequence[bytes]) -> list[bytes]:
        """Return the keys by which a request is looked up, the best first.

        In a run that begins in the middle, lanes do not tell two threads of a framework apart that
        ask the same, but the threads do.
        """
        checkpoint = attempt.checkpoint if self._is_by_thread else None
        on_thread = [] if checkpoint is None else [_on_thread(key, checkpoint) for key in keys]
        return [*on_thread, *keys]

    def _key_on_thread(self, exchange: Exchange) -> bytes:
        key, checkpoint = self._key(exchange), exchange.checkpoint
        return key if checkpoint is None else _on_thread(key, checkpoint)

    def line(self, attempt: Attempt) -> str:
        """Return the line of requests that follow one another, to which a request belongs.

        That is its lane. In a run that begins in the middle, each thread of a framework has a line
        of its own: what was asked for another thread before does not belong to it.
        """
        if not self._is_by_thread:
            return attempt.lane
        return _of_thread(attempt.in_step, attempt.checkpoint)


def skipped_on(tape: Tape) -> set[int]:
    """Return the exchanges of a branch that it went past, and is proven by: it did not ask."""
    branch = tape.branch
    return set(branch.skipped).intersection(range(len(tape.exchanges))) if branch else set()


def _thread_of(exchange: Exchange) -> str | None:
    return exchange.checkpoint[0] if exchange.checkpoint is not None else None


def _line_of_thread(exchange: Exchange) -> str:
    return _of_thread(exchange.in_step, exchange.checkpoint)


def _of_thread(in_step: str, place: tuple[str, str] | None) -> str:
    return in_step if place is None or in_step == UNORDERED else f"{place[0]}\0{in_step}"


def _on_thread(key: bytes, place: tuple[str, str]) -> bytes:
    return b"%b\0%b" % (key, place[0].encode("utf-8", "surrogatepass"))
