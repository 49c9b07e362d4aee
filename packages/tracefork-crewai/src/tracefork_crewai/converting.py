"""What converts an agent's answer to a form is a step: what it asks is no answer of the agent's.

CrewAI asks a model once more where an answer is not of the form that was wanted, and tells of that
as of any call of the agent or the task.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import wraps
from typing import Any

from crewai.utilities.converter import Converter

from tracefork_crewai.event_scope import begin, end, is_on_tape
from tracefork_crewai.labels import Label
from tracefork_crewai.replacing import replaced

_CONVERTER = "converter"


def instrument() -> Callable[[], None]:
    """Give conversions steps of their own; return the undoing."""
    with ExitStack() as stack:
        for name in ("to_pydantic", "ato_pydantic", "to_json", "ato_json"):
            stack.callback(replaced(Converter, name, _with_step))
        return stack.pop_all().close


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
    if attempt > 1 or not is_on_tape():  # What is tried again is tried inside the first try.
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
