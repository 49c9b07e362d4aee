"""Attach to crews, flows, agents and LLMs, for sessions that are not ambient."""

from __future__ import annotations

import weakref
from collections.abc import Iterator
from typing import Any, TypeVar

from crewai import Agent, Crew, Flow, Task
from crewai.llms.base_llm import BaseLLM

from tracefork_core import UsageError
from tracefork_core.adapters import Instrument
from tracefork_crewai.clients import bind_clients, unbind_clients
from tracefork_crewai.instrument import INSTRUMENT

X = TypeVar("X")

_KINDS = (Crew, Flow, Agent, Task, BaseLLM)
_CONTAINERS = (list, tuple, set, frozenset)
_DEEPEST = 12
_attached: weakref.WeakValueDictionary[int, Any] = weakref.WeakValueDictionary()


def attach(x: X) -> X:
    """Record a crew, a flow, an agent, a task or an LLM with `ambient=False` too; return it.

    The SDK clients of all LLMs in `x` are bound, if they can be. A session with `ambient=False`
    refuses an LLM that is not bound, by name, when it is called. It records the steps of all crews.
    Attaching twice has no further effect, `detach` undoes it, and outside a session nothing
    changes.

    Raises:
        UsageError: `x` has another type.
    """
    if not isinstance(x, _KINDS):
        kind = f"{type(x).__module__}.{type(x).__qualname__}"
        raise UsageError(
            f"tracefork: cannot attach to {kind}: it is not a crew, flow, agent, task or LLM."
        )
    for llm in _llms(x):
        bind_clients(llm)
    if not _attached:
        _counted.attach()
    _attached[id(x)] = x
    return x


def detach(x: X) -> X:
    """Undo `attach`: give the LLMs in `x` their own clients back; return `x`.

    An LLM that another attached object also holds stays bound.
    """
    if _attached.pop(id(x), None) is not None:
        still_bound = {id(llm) for other in _attached.values() for llm in _llms(other)}
        for llm in _llms(x):
            if id(llm) not in still_bound:
                unbind_clients(llm)
        if not _attached:
            _counted.detach()
    return x


class _Counted:
    """Attaches the instrument once.

    A count would be wrong: an attached object may be garbage-collected without being detached.
    """

    def __init__(self, instrument: Instrument) -> None:
        self._instrument = instrument
        self._is_on = False

    def attach(self) -> None:
        if not self._is_on:
            self._is_on = True
            self._instrument.attach()

    def detach(self) -> None:
        self._is_on = False
        self._instrument.detach()


_counted = _Counted(INSTRUMENT)


def _llms(x: object) -> Iterator[BaseLLM]:
    """Yield each LLM that `x` holds, once. LLMs that are made during a run are not found."""
    seen: set[int] = set()
    waiting: list[tuple[object, int]] = [(x, 0)]
    while waiting:
        value, depth = waiting.pop()
        if id(value) in seen or depth > _DEEPEST:
            continue
        seen.add(id(value))
        if isinstance(value, BaseLLM):
            yield value
        waiting.extend((part, depth + 1) for part in _parts(value))


def _parts(value: object) -> list[object]:
    if isinstance(value, dict):
        return list(value.values())
    if isinstance(value, _CONTAINERS):
        return list(value)
    of_crewai = type(value).__module__.startswith("crewai.")
    if isinstance(value, type) or not (of_crewai or isinstance(value, _KINDS)):
        return []
    spaces = (getattr(value, name, None) for name in ("__dict__", "__pydantic_private__"))
    return [part for fields in spaces if isinstance(fields, dict) for part in fields.values()]
