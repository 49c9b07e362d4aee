"""Make a method of CrewAI's classes an exchange, including all requests that it makes."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import partial, wraps
from typing import Any

from tracefork_core.adapters import Effect, in_session
from tracefork_crewai.tool_calls import Leaf, acall, call
from tracefork_crewai.tool_values import Values

Method = Callable[..., Any]


def as_exchange(
    name: str, effect: Callable[[Any], Effect], values: Values | None = None
) -> Callable[[Method], Method]:
    """Return what makes a method an exchange that is called `name` on the tape.

    Args:
        name: its name on the tape.
        effect: returns the side effect of the method, given its object.
        values: encodes its results; by default as those of tools.
    """

    def wrap(method: Method) -> Method:
        signature = inspect.signature(method)
        leaf_of = partial(Leaf, name, method, values or Values())

        def arguments(self: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
            bound = dict(signature.bind(self, *args, **kwargs).arguments)
            del bound[next(iter(bound))]
            return bound

        @wraps(method)
        def called(self: Any, *args: Any, **kwargs: Any) -> Any:
            if not in_session():
                return method(self, *args, **kwargs)
            named = arguments(self, args, kwargs)
            return call(leaf_of(effect(self)), partial(method, self), (), named)

        @wraps(method)
        async def acalled(self: Any, *args: Any, **kwargs: Any) -> Any:
            if not in_session():
                return await method(self, *args, **kwargs)
            named = arguments(self, args, kwargs)
            return await acall(leaf_of(effect(self)), partial(method, self), (), named)

        return acalled if inspect.iscoroutinefunction(method) else called

    return wrap
