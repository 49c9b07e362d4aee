"""acme-agents for tracefork: steps with names, and tools that run once.

With this package installed, a session records an agent of acme-agents without any change to it.

    attach, detach     record one agent in a session with ambient=False

Names are loaded when they are first used: importing this package imports no framework.
"""

from __future__ import annotations

from importlib import import_module

from tracefork_core.adapters import Adapter

ADAPTER = Adapter(
    name="acme",
    distribution="tracefork-acme",
    framework="openai",  # The distribution of your framework; this one needs only that.
    seams=("httpx: models, through OpenAI's SDK", "Agent: steps and tools"),
)

__all__ = ["ADAPTER", "attach", "detach"]


def __getattr__(name: str) -> object:
    if name not in ("attach", "detach"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module("tracefork_acme.attachment"), name)
