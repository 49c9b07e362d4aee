"""Run each call of a function in a block: what `record`, `replay`, `fork` and a recorder share."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar, cast

from tracefork_core.errors import UsageError

F = TypeVar("F", bound=Callable[..., Any])


def decorated(function: F, block: Callable[[], Any], advice: str) -> F:
    """Return the function with each call inside a block; a coroutine enters it asynchronously.

    Args:
        function: a function or a coroutine function.
        block: returns the block of one call.
        advice: what to do for a generator, whose body runs after its call has returned.

    Raises:
        UsageError: `function` is a generator function.
    """
    if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        raise UsageError(
            f"tracefork: {function.__qualname__} is a generator: it runs after its call has "
            f"returned. {advice}"
        )
    if inspect.iscoroutinefunction(function):

        @wraps(function)
        async def in_block_async(*args: Any, **kwargs: Any) -> Any:
            __tracebackhide__ = True
            async with block():
                return await function(*args, **kwargs)

        return cast(F, in_block_async)

    @wraps(function)
    def in_block(*args: Any, **kwargs: Any) -> Any:
        __tracebackhide__ = True
        with block():
            return function(*args, **kwargs)

    return cast(F, in_block)
