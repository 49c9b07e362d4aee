"""Replace parts of acme-agents while a session is open: they make the steps and the exchanges."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import partial, wraps
from types import ModuleType
from typing import Any

from tracefork_acme import ADAPTER
from tracefork_core.adapters import Patches, step, tool_exchange

Method = Callable[..., Any]


def _put_in(patches: Patches, acme: ModuleType) -> None:
    for kind, names in (("agent", ("run", "arun")), ("model", ("_ask", "_aask"))):
        for name in names:
            patches.wrap(acme.Agent, name, partial(_with_step, kind))
    patches.wrap(acme.Agent, "_use", _as_exchange)


def _with_step(kind: str, method: Method) -> Method:
    @wraps(method)
    def run(self: Any, *args: Any, **options: Any) -> Any:
        with step(kind, self.name):
            return method(self, *args, **options)

    @wraps(method)
    async def arun(self: Any, *args: Any, **options: Any) -> Any:
        with step(kind, self.name):
            return await method(self, *args, **options)

    return arun if inspect.iscoroutinefunction(method) else run


def _as_exchange(use: Method) -> Method:
    """Record a call of a tool. In a replay it is answered from the tape and does not run."""

    @wraps(use)
    def used(self: Any, name: str, arguments: dict[str, Any]) -> Any:
        def run(**arguments: Any) -> Any:
            return use(self, name, arguments)

        with step("tool", name):
            return tool_exchange(name, arguments, run)

    return used


INSTRUMENT = ADAPTER.instrument("acme_agents", _put_in)
"""Every session applies it, once `acme_agents` is imported: see the entry point."""
