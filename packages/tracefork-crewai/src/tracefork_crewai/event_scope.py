"""CrewAI's event scope becomes the steps of the tape.

CrewAI says that a crew, a task, an agent, a tool or a model call begins or ends where it does, in
the context that does it: `_prepare_event` is called there, while handlers of the event bus run
elsewhere, in any order. What begins becomes the current step of that context, and CrewAI copies
its contexts into all threads and tasks that it starts; so an exchange finds its step.

Ends come in the context of their beginnings. One that closes nothing here is ignored (CrewAI tells
twice that a model call failed), and one that closes what is further out closes what was left open
inside.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import partial, wraps
from typing import Any

from tracefork_core import UsageError
from tracefork_core.adapters import begin_step, current_step, end_step, in_session, lane_here
from tracefork_crewai.inside import is_inside
from tracefork_crewai.labels import CALLBACK, Label, label_of
from tracefork_crewai.refusals import LANE, recorded_refusal

_CREW = "crew_kickoff_started"
METHOD = "method_execution_started"
_AGAIN = "it failed, and was tried again"
_TASK = "task_started"
_BY_ITSELF = "lite_agent_execution_started"
_AGENTS = frozenset({"agent_execution_started", _BY_ITSELF})
_HOLDERS = _AGENTS | {"flow_started", METHOD, _CREW, _TASK}
"""What others run in. The end of any other event closes nothing beyond the innermost of these."""


@dataclass(slots=True, eq=False)
class Scope:
    """An event that began here: its step (None where it makes none), and what it began in.

    `refusal` is what an agent said here when this was recorded ("" where it went to work), `error`
    what is known of its failure before it ends.
    """

    began: str
    step: str | None
    before: str | None
    around: Scope | None
    tasks: Sequence[Any]
    source: object
    refusal: str | None = None
    error: str | None = None
    ended: bool = False


_scope: ContextVar[Scope | None] = ContextVar("tracefork_crewai_scope", default=None)


class EventScope:
    """Follows the events of CrewAI; `pairs` names the beginning that each end belongs to."""

    def __init__(self, starting: frozenset[str], pairs: Mapping[str, str]) -> None:
        self._starting = starting
        self._pairs = pairs

    def follow(self, prepare: Callable[..., None]) -> Callable[..., None]:
        """Return what prepares an event as the bus's `prepare` does, and puts it on the tape."""

        @wraps(prepare)
        def prepared(bus: Any, source: Any, event: Any) -> None:
            prepare(bus, source, event)
            if event.type in self._starting:
                if is_on_tape():
                    tasks = getattr(source, "tasks", ()) if event.type == _CREW else None
                    begin(event.type, partial(label_of, source, event), source, tasks)
            elif event.type in self._pairs and is_on_tape():
                end(self._pairs[event.type], _error(event))

        return prepared


def begin(
    began: str,
    label_in: Callable[[Sequence[Any]], Label | None],
    source: object,
    tasks: Sequence[Any] | None = None,
) -> None:
    """Begin what an event says has begun.

    `label_in` tells its label, given the tasks of the crew around; `tasks` are those of its own.
    """
    if began in _AGENTS and _is_tried_again(source):
        end(began, _AGAIN)
    if began == _BY_ITSELF and _is_in_a_task():
        begin("", lambda _: CALLBACK, source)  # It ends with the task.
    before = current_step.get()
    # Steps are numbered anew in each session: what an earlier one left here is of no more use.
    around = _scope.get() if before is not None else None
    if tasks is None:
        tasks = around.tasks if around else ()
    label = label_in(tasks)
    step = None
    refusal = recorded_refusal() if began in _AGENTS else None
    if label is not None:
        lane = lane_here() if began in _AGENTS else None
        detail = label.detail if lane is None else {**label.detail, LANE: lane.name}
        step = begin_step(label.kind, label.name, parent=before, detail=detail)
    if step is not None:
        current_step.set(step)
    _scope.set(Scope(began, step, before, around, tuple(tasks), source, refusal))


def end(began: str, error: str | None) -> None:
    """End what began with that event, and all that was left open inside."""
    _close(list(_closed_by(began)), error)


@contextmanager
def leaving_nothing_open() -> Iterator[None]:
    """End what began inside, where an exception leaves it: CrewAI tells of no cancelled crew."""
    around = _scope.get()
    try:
        yield
    except BaseException as error:
        if is_on_tape():
            _close(_inside(around), repr(error))
        raise


def _close(scopes: Sequence[Scope], error: str | None) -> None:
    """End scopes, from the innermost out, and go on in what is around them."""
    for scope in scopes:
        if scope.ended:
            continue
        scope.ended = True
        if scope.step is not None:
            end_step(scope.step, scope.error or error)
    if scopes:
        _scope.set(scopes[-1].around)
        current_step.set(scopes[-1].before)


def _inside(around: Scope | None) -> list[Scope]:
    """Return the scopes inside another one, from the innermost out; none if it is not around."""
    inside: list[Scope] = []
    scope = _scope.get()
    while scope is not around:
        if scope is None:
            return []
        inside.append(scope)
        scope = scope.around
    return inside


def _closed_by(began: str) -> Iterator[Scope]:
    """Yield what the end of an event closes, from the innermost out to that event's own."""
    inside: list[Scope] = []
    scope = _scope.get()
    while scope is not None:
        inside.append(scope)
        if scope.began == began and not scope.ended:
            yield from inside
            return
        if began not in _HOLDERS and scope.began in _HOLDERS and scope.step is not None:
            return
        scope = scope.around


def _is_tried_again(agent: object) -> bool:
    """Return whether an agent is still at it: early versions of CrewAI tell of no failed try."""
    scope = _scope.get()
    while scope is not None and (scope.ended or scope.step is None):
        scope = scope.around
    return scope is not None and scope.began in _AGENTS and scope.source is agent


def _is_in_a_task() -> bool:
    """Return whether nothing but a task is around: an agent that works on it is not asked alone."""
    scope = _scope.get()
    while scope is not None and (scope.ended or scope.step is None):
        scope = scope.around
    return scope is not None and scope.began == _TASK


def agent_here() -> Scope | None:
    """Return the scope of the innermost agent that runs here."""
    scope = _scope.get()
    while scope is not None and (scope.ended or scope.began not in _AGENTS):
        scope = scope.around
    return scope


def is_on_tape() -> bool:
    """Return whether what happens here is a session's, and not part of one of its exchanges."""
    try:
        return in_session() and not is_inside()
    except UsageError:
        return False  # Two sessions and no context: an exchange here will say so.


def _error(event: Any) -> str | None:
    """Return what an event says went wrong; a guardrail that says no has done what it is for."""
    if not event.type.endswith(("_failed", "_error")):
        return None
    error = getattr(event, "error", None)
    return str(error) if error is not None else event.type
