"""Know what led to each step: which messages an agent reads, and which steps sent those.

A message of a team goes to every agent in it, and an agent may read many at its turn. Of those, the
steps that led to other ones are left out: where a writer answers a planner, and an editor reads
both, the editor comes after the writer.
"""

from __future__ import annotations

from asyncio import Task
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any
from weakref import WeakKeyDictionary

from tracefork_core.adapters import (
    Lane,
    RunningStep,
    Values,
    branch_lane,
    current_step,
    lane_here,
    session_here,
)


@dataclass(frozen=True, slots=True)
class Root:
    """Where a conversation began: a team's run, or the code that sent the first message.

    Attributes:
        step: the step that all agents and messages of the conversation are in.
        lane: the lane that those of the agents are named after.
        is_attached: whether the team is, or is a part of one that is.
        task: the task that sent the first message.
    """

    step: str | None
    lane: Lane | None
    is_attached: bool = False
    task: Task[Any] | None = None


root: ContextVar[Root | None] = ContextVar("tracefork_autogen_root", default=None)
"""The conversation that this code belongs to."""

lane_around: ContextVar[Lane | None] = ContextVar("tracefork_autogen_lane", default=None)
"""The lane that an agent's is named after if it begins here, in a task of its own."""

cause: ContextVar[str | None] = ContextVar("tracefork_autogen_cause", default=None)
"""The step that sent the message which is handled here."""


@dataclass(slots=True)
class Causes:
    """What the agents of a session have said and begun so far."""

    _spoken: dict[str, str] = field(default_factory=dict)
    _before: dict[str, tuple[str, ...]] = field(default_factory=dict)
    _lanes: Counter[str] = field(default_factory=Counter)

    def spoke(self, message: Any, step: str | None) -> None:
        """Note the step that a message of an agent comes from."""
        if step is not None:
            self._spoken[message.id] = step

    def _led_here(self, messages: Iterable[Any]) -> tuple[str, ...]:
        """Return the steps that led to a step which reads messages, and begins here."""
        steps = dict.fromkeys(self._spoken[one.id] for one in messages if one.id in self._spoken)
        if (sent := cause.get()) is not None:
            steps[sent] = None
        return tuple(step for step in steps if not self._leads_to_another(step, steps))

    def begin(
        self, name: str, messages: Iterable[Any], values: Values = MappingProxyType({})
    ) -> RunningStep:
        """Begin the step of an agent that reads messages, on a lane that is named after it."""
        self.branch(name)
        after = self._led_here(messages)
        around = () if (here := current_step.get()) is None else (here,)
        values = {lane_around: lane_here(), cause: None, **values}
        running = RunningStep.begin("agent", name, values, after=after)
        self.led((*after, *around), running.step)
        return running

    def branch(self, name: str) -> None:
        """Name the lane of this task after an agent or a team that begins here, and count it."""
        origin = lane_around.get()
        if origin is not None and origin is not lane_here():
            branch_lane(origin, self.numbered(origin, name.replace("/", ".")))

    def numbered(self, origin: Lane, name: str) -> str:
        """Return the name of a branch of a lane, counted."""
        self._lanes[path := f"{origin.name}.{name}"] += 1
        return f"{name}.{self._lanes[path]}"

    def led(self, after: tuple[str, ...], step: str | None) -> None:
        """Note the steps that led to a step."""
        if step is not None:
            self._before[step] = after

    def _leads_to_another(self, step: str, steps: Iterable[str]) -> bool:
        ahead, seen = [one for one in steps if one != step], set[str]()
        while ahead:
            for one in self._before.get(ahead.pop(), ()):
                if one == step:
                    return True
                if one not in seen:
                    seen.add(one)
                    ahead.append(one)
        return False


_of_sessions: WeakKeyDictionary[Any, Causes] = WeakKeyDictionary()


def causes_here() -> Causes:
    """Return what this session knows of its agents."""
    return _of_sessions.setdefault(session_here(), Causes())


def enter_session_of(lane: Lane | None, name: str) -> None:
    """Let this task belong to the session of a lane, where the code that started it has none."""
    if lane is not None and lane.session.active and session_here() is None:
        causes = _of_sessions.setdefault(lane.session, Causes())
        branch_lane(lane, causes.numbered(lane, name))


@contextmanager
def agent_step(
    name: str, messages: Iterable[Any] = (), values: Values = MappingProxyType({})
) -> Iterator[str | None]:
    """Let an agent that reads messages work inside of the block, in a step of its own."""
    running = causes_here().begin(name, messages, values)
    with running.block():
        yield running.step


def sent_from() -> str | None:
    """Return the step that a message comes from which is sent here; None from outside."""
    here, step = root.get(), current_step.get()
    return step if here is not None and step != here.step else cause.get()
