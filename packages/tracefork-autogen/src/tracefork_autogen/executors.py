"""Make the code that executors run an exchange of effect write: a replay never runs it.

`execute_code_blocks` is replaced in each class of executors. A replay starts no container and no
kernel either: an executor is started when the first live call of a fork needs it. The executor for
the command line of this machine only makes a folder when it starts, and programs put files there,
so it is started as it was.
"""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Awaitable, Callable
from functools import partial, wraps
from typing import Any

from autogen_core.code_executor import CodeBlock, CodeExecutor, CodeResult

from tracefork_autogen.exchanges import exchange
from tracefork_autogen.values import Values
from tracefork_core.adapters import (
    Late,
    Patches,
    crossing_seam,
    in_session,
    is_recorded_here,
    replace_in_classes,
    step,
)

_LOCAL = "autogen_ext.code_executors.local"
_NAME = "execute_code_blocks"

_late = Late()


def put_in(patches: Patches) -> None:
    """Make the calls of code executors exchanges of the open session."""
    names = [_NAME, "start", "stop", "restart"]
    replace_in_classes(patches, CodeExecutor, names, _instead)


def _instead(owner: type, name: str, original: Callable[..., Any]) -> Callable[..., Any]:
    if name == _NAME:
        return _as_exchange(original)
    return original if owner.__module__ == _LOCAL else _WRAPPERS[name](original)


def _as_exchange(original: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
    @wraps(original)
    async def execute_code_blocks(
        self: Any, code_blocks: list[CodeBlock], cancellation_token: Any
    ) -> Any:
        async def work(code_blocks: list[dict[str, Any]]) -> object:
            await _late.made(self)
            blocks = [CodeBlock(**block) for block in code_blocks]
            return await original(self, blocks, cancellation_token)

        if not is_recorded_here():
            await _late.made(self)
            return await original(self, code_blocks, cancellation_token)
        told = {"code_blocks": [dataclasses.asdict(block) for block in code_blocks]}
        with step("tool", _NAME):
            return await exchange(_NAME, told, work, _values(original), effect="write")

    return execute_code_blocks


def _values(original: Callable[..., Any]) -> Values:
    """Convert the results of an executor, whose class is defined in its own module."""
    module = sys.modules[original.__module__]
    kinds = [kind for kind in vars(module).values() if _is_result(kind)]
    return Values([CodeResult, *kinds])


def _is_result(kind: object) -> bool:
    return isinstance(kind, type) and issubclass(kind, CodeResult)


def _started(original: Callable[..., Awaitable[None]]) -> Callable[..., Awaitable[None]]:
    @wraps(original)
    async def start(self: Any) -> None:
        if not in_session():
            await original(self)
        elif not _late.put_off(self, partial(original, self)):
            with crossing_seam():
                await original(self)

    return start


def _stopped(original: Callable[..., Awaitable[None]]) -> Callable[..., Awaitable[None]]:
    @wraps(original)
    async def stop(self: Any) -> None:
        if not _late.forget(self):
            with crossing_seam():
                await original(self)

    return stop


def _restarted(original: Callable[..., Awaitable[None]]) -> Callable[..., Awaitable[None]]:
    @wraps(original)
    async def restart(self: Any) -> None:
        if not _late.waits(self):
            with crossing_seam():
                await original(self)

    return restart


_WRAPPERS = {"start": _started, "stop": _stopped, "restart": _restarted}
