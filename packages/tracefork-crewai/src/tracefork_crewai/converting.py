"""Give the conversion of an agent's answer a step, so that it does not count as the answer.

CrewAI calls a model again if an answer lacks the requested format. It reports that call like any
other of the agent or the task.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import Any

from crewai.utilities.converter import Converter

from tracefork_core.adapters import Patches
from tracefork_crewai.event_scope import begin, end, is_on_tape
from tracefork_crewai.labels import Label

_CONVERTER = "converter"


def put_in(patches: Patches) -> None:
    """Give conversions steps of their own."""
    for name in ("to_pydantic", "ato_pydantic", "to_json", "ato_json"):
        patches.wrap(Converter, name, _with_step)


def _with_step(convert: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(convert)
    def converted(self: Any, current_attempt: int = 1) -> Any:
        with _step(self, current_attempt):
            return convert(self, current_attempt)

    @wraps(convert)
    async def aconverted(self: Any, current_attempt: int = 1) -> Any:
        with _step(self, current_attempt):
            return await convert(self, current_attempt)

    return aconverted if inspect.iscoroutinefunction(convert) else converted


@contextmanager
def _step(converter: object, attempt: int) -> Iterator[None]:
    if attempt > 1 or not is_on_tape():  # A retry runs inside the first attempt.
        yield
        return
    begin(_CONVERTER, lambda _: Label(_CONVERTER, _CONVERTER), converter)
    error = None
    try:
        yield
    except BaseException as failure:
        error = repr(failure)
        raise
    finally:
        end(_CONVERTER, error)
