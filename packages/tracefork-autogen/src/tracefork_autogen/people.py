"""Make what a person types an exchange: a replay does not ask again.

`UserProxyAgent` calls the program's `input_func`, or reads standard input. Both happen in one
method, below the events that tell the program that a person is asked.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import wraps
from typing import Any

from autogen_agentchat.agents import UserProxyAgent

from tracefork_autogen.exchanges import exchange
from tracefork_autogen.values import Values
from tracefork_core.adapters import Patches, is_recorded_here, replace_in_classes, step

_NAME = "user_input"


def put_in(patches: Patches) -> None:
    """Make the questions of user proxies exchanges of the open session."""
    replace_in_classes(patches, UserProxyAgent, ["_get_input"], _instead)


def _instead(
    owner: type, name: str, original: Callable[..., Awaitable[str]]
) -> Callable[..., Awaitable[str]]:
    @wraps(original)
    async def asked(self: Any, prompt: str, cancellation_token: Any) -> Any:
        async def work(prompt: str) -> str:
            return await original(self, prompt, cancellation_token)

        if not is_recorded_here():
            return await original(self, prompt, cancellation_token)
        with step("interrupt", _NAME):
            answer = await exchange(
                _NAME, {"prompt": prompt}, work, Values(), function=self.input_func
            )
        return str(answer)

    return asked
