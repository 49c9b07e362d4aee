"""Turn CrewAI's event scope into the steps of the tape.

CrewAI calls `_prepare_event` when a crew, a task, an agent, a tool or a model call begins or ends,
in the context that does the work. Handlers of the event bus run in other threads, in any order. So
the steps are taken from `_prepare_event`. The step that begins becomes the current step of that
context. CrewAI copies its contexts into all threads and tasks that it starts, so each exchange
finds its step.

An end comes in the context of its beginning. An end that closes nothing here is ignored: CrewAI
reports twice that a model call failed. An end that closes an outer step also closes all steps left
open inside it.
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
"""What contains other steps. An end of any other kind closes nothing outside the innermost."""


@dataclass(slots=True, eq=False)
class Scope:
    """An event that began here: its step (None if it makes none), and the scope around it.

    `refusal` is the agent's recorded refusal, "" if the agent went to work. `error` is what is
    known about a failure before the step ends.
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
    """Follows the events of CrewAI. `pairs` maps each end event to its beginning."""

    def __init__(self, starting: frozenset[str], pairs: Mapping[str, str]) -> None:
        self._starting = starting
        self._pairs = pairs

    def follow(self, prepare: Callable[..., None]) -> Callable[..., None]:
        """Wrap the bus's `prepare` so that it also puts the event on the tape."""

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
    """Begin the step of an event.

    `label_in` returns its label, given the tasks of the crew around it; `tasks` are its own.
    """
    if began in _AGENTS and _is_tried_again(source):
        end(began, _AGAIN)
    if began == _BY_ITSELF and _is_in_a_task():
        begin("", lambda _: CALLBACK, source)  # It ends with the task.
    before = current_step.get()
    # Each session numbers its steps from 0, so a scope that an earlier session left is ignored.
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
    """End the step that began with that event, and all steps left open inside it."""
    _close(list(_closed_by(began)), error)


@contextmanager
def leaving_nothing_open() -> Iterator[None]:
    """End the steps that began inside if an exception leaves the block.

    CrewAI emits no end event for a cancelled crew.
    """
    around = _scope.get()
    try:
        yield
    except BaseException as error:
        if is_on_tape():
            _close(_inside(around), repr(error))
        raise


def _close(scopes: Sequence[Scope], error: str | None) -> None:
    """End scopes, from the innermost out, and make the scope around them current."""
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
    """Return the scopes inside `around`, from the innermost out; none if it is not around here."""
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
    """Return whether an agent has a step open already.

    Early versions of CrewAI emit no event for a failed attempt.
    """
    scope = _scope.get()
    while scope is not None and (scope.ended or scope.step is None):
        scope = scope.around
    return scope is not None and scope.began in _AGENTS and scope.source is agent


def _is_in_a_task() -> bool:
    """Return whether a task is the innermost open step.

    Then the agent was not called on its own: a callback of the task called it.
    """
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
    """Return whether this code runs in a session, and not inside one of its exchanges."""
    try:
        return in_session() and not is_inside()
    except UsageError:
        return False  # Two sessions and no context: an exchange here raises the error.


def _error(event: Any) -> str | None:
    """Return the error that an event reports. A guardrail that rejects an answer has not failed."""
    if not event.type.endswith(("_failed", "_error")):
        return None
    error = getattr(event, "error", None)
    return str(error) if error is not None else event.type
