"""Record a transport of your own, and any transport in a session with `ambient=False`."""

from __future__ import annotations

from types import MethodType
from typing import TypeVar

from claude_agent_sdk import Transport

from tracefork_claude_agent_sdk.instrument import INSTRUMENT, METHODS, replaced
from tracefork_core import UsageError

T = TypeVar("T", bound=Transport)
_MARK = "_tracefork_attached"


def attach(x: T) -> T:
    """Record what the SDK exchanges over a transport, and return the transport.

        transport = attach(RemoteClaudeCode("build-7.example.com"))
        async for message in query(prompt="…", transport=transport): ...

    A replay does not call its `connect`. Attaching twice has no further effect, and outside a
    session nothing changes. The transport that the SDK makes itself needs no `attach`.

    Raises:
        UsageError: it is no transport of the SDK.
    """
    if not isinstance(x, Transport):
        raise UsageError(
            f"tracefork: cannot attach to {x!r:.80}: it is no Transport of claude_agent_sdk. "
            "Options and clients need no attach: while tracefork-claude-agent-sdk is installed, "
            "sessions record them."
        )
    if _MARK not in vars(x):
        INSTRUMENT.attach()
        ours = replaced({name: getattr(type(x), name) for name in METHODS})
        vars(x).update({name: MethodType(method, x) for name, method in ours.items()})
        vars(x)[_MARK] = True
    return x


def detach(x: T) -> T:
    """Undo `attach`, and return the transport."""
    if vars(x).pop(_MARK, False):
        for name in METHODS:
            del vars(x)[name]
        INSTRUMENT.detach()
    return x
