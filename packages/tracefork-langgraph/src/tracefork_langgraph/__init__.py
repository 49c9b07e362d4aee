"""LangChain and LangGraph for tracefork: `attach` a graph, and its steps are on the tape.

    attach, detach      the one verb: both halves below, for everything found in a graph
    bind, unbind        half one: chat models record and replay without ambient patching
    TracingHandler      half two: LangChain's callbacks become the steps of the tape

Names are loaded when they are first used: importing this package imports no framework.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from tracefork_core.adapters import Adapter

if TYPE_CHECKING:
    from tracefork_langgraph.attachment import attach, detach
    from tracefork_langgraph.chat_models import bind, unbind
    from tracefork_langgraph.handler import TracingHandler

__version__ = "0.1.0"

ADAPTER = Adapter(
    name="langgraph",
    distribution="tracefork-langgraph",
    framework="langgraph",
    seams=(
        "httpx and httpx2, ambient or bound: ChatOpenAI, ChatAnthropic",
        "LangChain callbacks: steps",
    ),
)

_HOMES = {
    "TracingHandler": "handler",
    "attach": "attachment",
    "bind": "chat_models",
    "detach": "attachment",
    "unbind": "chat_models",
}

__all__ = ["ADAPTER", "TracingHandler", "__version__", "attach", "bind", "detach", "unbind"]


def __getattr__(name: str) -> object:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{home}"), name)
