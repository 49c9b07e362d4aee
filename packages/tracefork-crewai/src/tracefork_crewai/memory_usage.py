"""What a memory's models have used is counted at replay as it was when they were asked.

A memory asks through a copy of an agent's LLM, which counts where the agent's does, and it asks
below the seam: nothing of that runs in a replay. So each exchange tells what its memory has used
since the one before, by saving in the background too, and in either run it is counted as the
exchange ends.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import dataclass
from functools import wraps
from threading import Lock
from typing import Any

from crewai.llms.base_llm import BaseLLM
from crewai.types.usage_metrics import UsageMetrics

from tracefork_crewai.inside import is_inside
from tracefork_crewai.replacing import replaced
from tracefork_crewai.tool_values import Values

Method = Callable[..., Any]


@dataclass(frozen=True, slots=True)
class Counted:
    """What a memory said, and what its models have used, by CrewAI's names for that."""

    result: object
    usage: dict[str, int]


class CountedValues(Values):
    """How what a memory said is told, with what was used or without."""

    def hold(self, value: object) -> bool:
        return super().hold(value.result if isinstance(value, Counted) else value)

    def fields(self, value: object) -> dict[str, Any] | None:
        if isinstance(value, Counted):
            return {"result": value.result, "usage": value.usage}
        return super().fields(value)

    def built(self, name: str, fields: dict[str, Any]) -> object:
        return Counted(**fields) if name == Counted.__name__ else super().built(name, fields)


class _Uncounted:
    """What one memory has used and no exchange has told; it is kept, so that its id is its own."""

    def __init__(self, memory: object) -> None:
        self.memory = memory
        self._used: Counter[str] = Counter()
        self._lock = Lock()

    def add(self, metrics: UsageMetrics) -> None:
        with self._lock:  # Memories ask from several threads.
            self._used.update(metrics.model_dump())

    def take(self) -> dict[str, int]:
        with self._lock:
            used, self._used = self._used, Counter()
        return dict(used)


_here: ContextVar[_Uncounted | None] = ContextVar("tracefork_crewai_uncounted", default=None)


class Usage:
    """What the memories of a session have used."""

    def __init__(self) -> None:
        self._of: dict[int, _Uncounted] = {}

    def instrument(self) -> Callable[[], None]:
        """Let what memories use count when they tell it, and not before; return the undoing."""
        return replaced(BaseLLM, "_track_token_usage_internal", _tracked)

    def telling(self, method: Method) -> Method:
        """Return what a memory does in an exchange, and tells what it has used."""

        @wraps(method)
        def told(memory: Any, *args: Any, **kwargs: Any) -> Any:
            if not is_inside() or _here.get() is not None:  # Of no session; asked by itself.
                return method(memory, *args, **kwargs)
            uncounted = self._of.setdefault(id(memory), _Uncounted(memory))
            token = _here.set(uncounted)
            try:
                result = method(memory, *args, **kwargs)
            finally:
                _here.reset(token)
            used = uncounted.take()
            return Counted(result, used) if used else result

        return told

    def counting(self, exchange: Method) -> Method:
        """Return what counts what was told, and returns the rest."""

        @wraps(exchange)
        def counted(memory: Any, *args: Any, **kwargs: Any) -> Any:
            said = exchange(memory, *args, **kwargs)
            if not isinstance(said, Counted):
                return said
            llm = memory._llm_instance  # noqa: SLF001 - its name would make one, which needs a key
            if isinstance(llm, BaseLLM):
                counts = llm._token_usage  # noqa: SLF001 - CrewAI has no other way to add to them
                for name, used in said.usage.items():
                    counts[name] = counts.get(name, 0) + used
            return said.result

        return counted

    def forget(self) -> None:
        """Forget all of it: the session is over."""
        self._of.clear()


def _tracked(track: Method) -> Method:
    @wraps(track)
    def tracked(self: Any, usage_data: Any) -> None:
        uncounted = _here.get()
        if uncounted is None:
            track(self, usage_data)
        elif (metrics := UsageMetrics.from_provider_dict(usage_data)) is not None:
            uncounted.add(metrics)

    return tracked
