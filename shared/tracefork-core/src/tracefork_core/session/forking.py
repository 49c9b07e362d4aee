"""Which exchange of a fork is answered from the tape, which is changed, and which is live.

Requests before the fork point are answered from the tape and must equal the recorded ones. After it
they may differ: an exchange of the fork takes the place of the recorded one that is equally far
along its lane, counted among requests to the same endpoint. On the lane without order it takes the
place of an equal request. A change or a held answer names the recorded exchange whose place is
taken. Where answers are reused, an equal request takes the place of the recorded one on any lane.
An agent that was edited has no fork point: it runs again, and all equal requests are reused.
"""

from __future__ import annotations

from collections import Counter, defaultdict, deque
from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import dataclass, field
from operator import attrgetter

from tracefork_core.errors import StoppedError, TraceforkError, UsageError, WriteError
from tracefork_core.exchange.contract import Request
from tracefork_core.exchange.lane import UNORDERED
from tracefork_core.matching.attempt import Attempt
from tracefork_core.session.interventions import Edit, Given, Intervention, Keep, Resample
from tracefork_core.session.prepared_exchange import recorded_answer
from tracefork_core.session.side_effects import Writes, asks_model, may_write, refusal
from tracefork_core.tape import Exchange, Tape
from tracefork_core.tape.digest import sha256
from tracefork_core.tape.event import Branch, RequestRecord, Stop

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tracefork_core.session.held_state import HeldState
    from tracefork_core.session.onward import Onward

RECORDED, GIVEN = "recorded", "given"
"""How an exchange of a branch was answered if it was not live: from the tape, or by a change."""
COUNTING = "counting"
"""Counts the live auxiliary exchanges of a fork: `Plan.calls` does not limit them."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What a fork does.

    Attributes:
        at: the fork point: the first recorded exchange that may change or run live.
        changes: the intervention for each recorded exchange; those without one are live.
        writes: see `Writes`.
        reads: names of tools that only read, whatever is known about them otherwise.
        is_rerun: whether there is no fork point: nothing at `at` is asked again.
        before_live: called before each live call that is not auxiliary, with its request and the
            recorded exchange whose place it takes; a TraceforkError from it ends the fork.
        tail: changes the requests of live model calls that have no change of their own.
        salt: makes lanes draw new random values after the fork point; None draws as recorded.
        calls: the limit of live calls; None for no limit.
        onwards: whether the change of the question at the fork point holds for later ones alike.
        until: the fork ends once this recorded exchange, or what takes its place, was answered;
            None runs the agent to its end.
        reuse: whether a request that equals a recorded one is answered as recorded, unless that is
            changed or at the fork point.
    """

    at: int
    changes: Mapping[int, Intervention] = field(default_factory=dict)
    writes: Writes = "refuse"
    until: int | None = None
    calls: int | None = None
    tail: Edit | None = None
    salt: str | None = None
    reuse: bool = False
    reads: frozenset[str] = frozenset()
    is_rerun: bool = False
    before_live: Callable[[Request, Exchange | None], object] | None = None
    onwards: bool = False


def salts_of(branch: Branch | None, plan: Plan | None) -> list[tuple[int, str]]:
    """Return from which exchanges on a branch has new random values, each with its salt.

    If a fork of the branch draws new values itself, it replaces all of those after its fork point.
    """
    if branch is None:
        return []
    drawn = [*branch.anew, *([(branch.at, branch.salt)] if branch.salt else [])]
    if plan is None or plan.salt is None:
        return drawn
    return [(at, salt) for at, salt in drawn if at < plan.at]


@dataclass(frozen=True, slots=True)
class ForkStep:
    """What happens to one exchange of a fork.

    Attributes:
        place: the recorded exchange whose place it takes.
        given: its answer, if it is not live.
        sends: what is sent instead of the agent's request.
        answered: see `ExchangeAside`.
    """

    place: Exchange | None = None
    given: Given | None = None
    sends: Request | None = None
    answered: str = ""


class Fork:
    """The progress of one fork. Not thread-safe: its session calls it under a lock.

    Attributes:
        first: the recorded exchange at the fork point; None at the end of the run.
        reached: whether that exchange, or what takes its place, was asked for.
        counts: how many exchanges after the fork point were answered in each way.
        overspent: whether the limit of live calls stopped it.
        stop: the first request that it stopped before.
    """

    def __init__(self, plan: Plan, tape: Tape) -> None:
        recorded = tape.exchanges
        self.plan = plan
        has_point = plan.at < len(recorded) and not plan.is_rerun
        self.first = recorded[plan.at] if has_point else None
        self.reached = self.first is None
        self.counts: Counter[str] = Counter()
        self.overspent = False
        self.stop: Stop | None = None
        self._number = plan.at
        self._over = plan.until is not None and plan.until < plan.at
        self._last: tuple[int, str] | None = None
        """The number on the branch of the exchange that ends the fork, and its line."""
        self._lanes = {exchange.lane for exchange in recorded}
        self._recorded = recorded
        self._lines: set[str] | None = None
        self._line: Callable[[Exchange], str] = attrgetter("lane")
        self._places = self._placed(recorded[plan.at :])
        self._reusable = recorded[plan.at :] if plan.reuse else []
        self._held_state: HeldState | None = None
        self._onward: Onward | None = None

    def knows(self, lane: str) -> bool:
        """Return whether the recorded run had a lane of this name."""
        return lane in self._lanes

    def travel(self, line: Callable[[Exchange], str]) -> None:
        """Order exchanges by `line` instead of by lane: the run begins in the middle."""
        waiting = [exchange for queue in self._places.values() for exchange in queue]
        self._line, self._lines = line, set(map(line, self._recorded))
        self._places = self._placed(sorted(waiting, key=attrgetter("n")))

    def _placed(self, recorded: Sequence[Exchange]) -> dict[_Place, deque[Exchange]]:
        places: dict[_Place, deque[Exchange]] = defaultdict(deque)
        for exchange in recorded:
            places[self._place_of(exchange)].append(exchange)
        return places

    def _place_of(self, exchange: Exchange) -> _Place:
        return _place(self._line(exchange), exchange.request)

    def next_number(self) -> int:
        """Return the number of the next exchange of the branch."""
        number, self._number = self._number, self._number + 1
        return number

    def awaited(self, attempt: Attempt, line: str) -> Exchange | None:
        """Return the exchange at the fork point, if a request on its line is the first there.

        It has to ask the same, since nothing was changed yet. An auxiliary one may be missing.
        """
        first = self.first
        if first is None or self.reached or self._over or line == UNORDERED:
            return None
        if line != self._line(first):
            return None
        return first if first.is_auxiliary == attempt.is_auxiliary else None

    def step(self, attempt: Attempt, line: str, in_flight: Container[int]) -> ForkStep:
        """Return what happens to a request on a line after the fork point.

        The exchange that ends the fork may be in flight, and other lines go on until its answer is
        there: the agent would give up on all of them if one was stopped.

        Raises:
            UsageError: the planned change does not fit this request.
            WriteError: the call may have side effects, which the plan does not allow.
            StoppedError: the fork ends before it.
        """
        if self._over and not self._is_awaited(line, in_flight):
            raise StoppedError(f"tracefork: the fork ends after exchange {self.plan.until}.")
        known = self._known(attempt, line)
        if known is not None and not self._is_asked_again(known):
            self._note(known, line)
            step = ForkStep(known, recorded_answer(known), answered=RECORDED)
        else:
            recorded = known or self._taken(attempt, line)
            self._note(recorded, line)
            step = self._step(attempt, recorded)
        self._keep_in_step_with_provider(step, attempt)
        self.counts[step.answered] += 1
        if not step.answered and attempt.is_auxiliary:
            self.counts[COUNTING] += 1
        self.reached = self.reached or step.place is self.first
        return step

    def stop_before(self, attempt: Attempt, error: TraceforkError) -> None:
        """Note the request that a fork stopped before, if the plan ends it there."""
        if self.stop is None and isinstance(error, WriteError | StoppedError):
            self.stop = stopped_before(attempt, is_write=isinstance(error, WriteError))

    def _is_awaited(self, line: str, in_flight: Container[int]) -> bool:
        return self._last is not None and self._last[0] in in_flight and line != self._last[1]

    def _note(self, recorded: Exchange | None, line: str) -> None:
        if recorded is not None and recorded.n == self.plan.until:
            self._over, self._last = True, (self._number, line)

    def _keep_in_step_with_provider(self, step: ForkStep, attempt: Attempt) -> None:
        """Note an answer that the provider did not give, and refuse a request that continues it.

        Raises:
            UsageError: the provider keeps something else than the fork needs.
        """
        from tracefork_core.session.held_state import HeldState  # As in `_step`.

        place, given = step.place, step.given
        if self._held_state is None:
            self._held_state = HeldState(self._recorded[self.plan.at :])
        if given is None:
            self._held_state.check(step.sends or attempt.request)
            return
        if place is None or isinstance(self.plan.changes.get(place.n), Given):
            return
        if given.chunks != tuple(place.chunks) or not attempt.equals(place):
            self._held_state.change(attempt.request, given, place)

    def _known(self, attempt: Attempt, line: str) -> Exchange | None:
        """Use up the reusable exchange that asked the same, of this line first, if there is one.

        An exchange that is not answered as recorded has a place on its own line only.
        """
        for recorded in sorted(self._reusable, key=lambda exchange: self._line(exchange) != line):
            if self._is_asked_again(recorded) and self._line(recorded) != line:
                continue
            if attempt.equals(recorded):
                self._reusable.remove(recorded)
                waiting = self._places[self._place_of(recorded)]
                if recorded in waiting:
                    waiting.remove(recorded)
                return recorded
        return None

    def _is_asked_again(self, recorded: Exchange) -> bool:
        return recorded is self.first or recorded.n in self.plan.changes

    def _taken(self, attempt: Attempt, line: str) -> Exchange | None:
        """Use up the recorded exchange whose place a request takes, if there is one."""
        recorded = self._due(attempt, line)
        if recorded is not None:
            self._places[self._place_of(recorded)].remove(recorded)
            if self._is_asked_again(recorded) and recorded in self._reusable:
                self._reusable.remove(recorded)
        return recorded

    def _due(self, attempt: Attempt, line: str) -> Exchange | None:
        place = _place(line, attempt.masked.record)
        if self._lines is None or line in self._lines or line == UNORDERED:
            waiting = self._places.get(place, ())
            candidates = filter(attempt.equals, waiting) if line == UNORDERED else iter(waiting)
            return next(candidates, None)
        # A run that begins in the middle, under another name: an equal request there, or the first.
        queues = (queue for other, queue in self._places.items() if other[1:] == place[1:])
        others = sorted((exchange for queue in queues for exchange in queue), key=attrgetter("n"))
        return next(filter(attempt.equals, others), others[0] if others else None)

    def _step(self, attempt: Attempt, recorded: Exchange | None) -> ForkStep:
        # Loaded only here: `providers` takes long to load, and a recording needs nothing of it.
        from tracefork_core.session.intervening import answer, edited

        request = attempt.request
        change = self.plan.changes.get(recorded.n) if recorded else None
        if recorded is not None and isinstance(change, Keep):
            return ForkStep(recorded, recorded_answer(recorded), answered=RECORDED)
        if recorded and change is not None and not isinstance(change, Edit | Resample | Keep):
            return ForkStep(recorded, answer(change, request, recorded), answered=GIVEN)
        is_write = may_write(request, is_auxiliary=attempt.is_auxiliary, reads=self.plan.reads)
        if is_write and self.plan.writes != "allow":
            if recorded is not None and self.plan.writes == "stub":
                return ForkStep(recorded, recorded_answer(recorded), answered=RECORDED)
            raise WriteError(refusal(request))
        if not attempt.is_auxiliary and self.counts[""] - self.counts[COUNTING] == self.plan.calls:
            self._over = self.overspent = True
            raise StoppedError(
                f"tracefork: the fork reached its limit of {self.plan.calls} live calls."
            )
        if self.plan.before_live is not None and not attempt.is_auxiliary:
            self.plan.before_live(request, recorded)
        edit = change if isinstance(change, Edit) else self._tail_of(request)
        sends = edited(edit, request) if edit else None
        return ForkStep(recorded, sends=sends)

    def _tail_of(self, request: Request) -> Edit | None:
        tail, change = self.plan.tail, self.plan.changes.get(self.plan.at)
        if self.plan.onwards and isinstance(change, Edit) and self.first is not None:
            from tracefork_core.session.onward import Onward  # As in `_step`.

            self._onward = self._onward or Onward(change, self.first)
            return self._onward.edit_of(request)
        return tail if tail and asks_model(request) else None


def stopped_before(attempt: Attempt, *, is_write: bool) -> Stop:
    """Return what a branch holds of the request that its fork stopped before."""
    asked = attempt.masked
    url = asked.url.partition("?")[0]
    return Stop(asked.record.method, url, attempt.lane, sha256(asked.key), is_write)


_Place = tuple[str, str, str]


def _place(lane: str, request: RequestRecord) -> _Place:
    return lane, request.method, request.url.partition("?")[0]


def checked(plan: Plan, recorded: Sequence[Exchange]) -> Plan:
    """Return the plan if it fits the run.

    Raises:
        UsageError: a change lies outside of the run.
    """
    count = len(recorded)
    for n in plan.changes:
        if not plan.at <= n < count:
            raise UsageError(
                f"tracefork: cannot change exchange {n}: the fork point is {plan.at}, and the run "
                f"has exchanges 0 to {count - 1}. Change one from {plan.at} on."
            )
    return plan
