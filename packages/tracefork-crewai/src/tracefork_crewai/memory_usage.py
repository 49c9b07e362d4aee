"""Count the tokens that a memory's models use, at replay as in the recording.

A memory calls models through a copy of an agent's LLM, which counts for the agent, and it does so
inside an exchange: none of that runs in a replay. So each exchange also returns what its memory has
used since the exchange before, including by saving in the background. In both runs that is counted
when the exchange ends.
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

from tracefork_core.adapters import Patches
from tracefork_crewai.inside import is_inside
from tracefork_crewai.tool_values import Values

Method = Callable[..., Any]


@dataclass(frozen=True, slots=True)
class Counted:
    """What a memory returned, and what its models have used, by CrewAI's names of metrics."""

    result: object
    usage: dict[str, int]


class CountedValues(Values):
    """Encodes what a memory returned, with or without a count of use."""

    def hold(self, value: object) -> bool:
        return super().hold(value.result if isinstance(value, Counted) else value)

    def fields(self, value: object) -> dict[str, Any] | None:
        if isinstance(value, Counted):
            return {"result": value.result, "usage": value.usage}
        return super().fields(value)

    def built(self, name: str, fields: dict[str, Any]) -> object:
        return Counted(**fields) if name == Counted.__name__ else super().built(name, fields)


class _Uncounted:
    """The use of one memory that no exchange has returned yet.

    It holds the memory, so that the id of the memory is not reused.
    """

    def __init__(self, memory: object) -> None:
        self.memory = memory
        self._used: Counter[str] = Counter()
        self._lock = Lock()

    def add(self, metrics: UsageMetrics) -> None:
        with self._lock:  # Memories call models from several threads.
            self._used.update(metrics.model_dump())

    def take(self) -> dict[str, int]:
        with self._lock:
            used, self._used = self._used, Counter()
        return dict(used)


_here: ContextVar[_Uncounted | None] = ContextVar("tracefork_crewai_uncounted", default=None)


class Usage:
    """The use of models by the memories of a session."""

    def __init__(self) -> None:
        self._of: dict[int, _Uncounted] = {}

    def put_in(self, patches: Patches) -> None:
        """Count use when an exchange returns it, not before."""
        patches.wrap(BaseLLM, "_track_token_usage_internal", _tracked)

    def telling(self, method: Method) -> Method:
        """Wrap a memory's method, inside its exchange, to return the count with the result."""

        @wraps(method)
        def told(memory: Any, *args: Any, **kwargs: Any) -> Any:
            if not is_inside() or _here.get() is not None:  # No session, or a nested call.
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
        """Wrap an exchange to add the returned count to the LLM, and to return the result alone."""

        @wraps(exchange)
        def counted(memory: Any, *args: Any, **kwargs: Any) -> Any:
            answer = exchange(memory, *args, **kwargs)
            if not isinstance(answer, Counted):
                return answer
            llm = memory._llm_instance  # noqa: SLF001 - `_llm` would make one, which needs a key
            if isinstance(llm, BaseLLM):
                counts = llm._token_usage  # noqa: SLF001 - CrewAI has no other way to add to them
                for name, used in answer.usage.items():
                    counts[name] = counts.get(name, 0) + used
            return answer.result

        return counted

    def forget(self) -> None:
        """Forget all counts: the session is over."""
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
