"""LangChain and LangGraph for tracefork: `attach` a graph, and its steps are on the tape.

    attach, detach      the one verb: both halves below, for everything found in a graph
    bind, unbind        half one: chat models record and replay without ambient patching
    bind_tools, unbind_tools, bind_tool, unbind_tool
                        and calls of tools are exchanges
    TapeToolMiddleware  those of tools that come while an agent runs
    TracingHandler      half two: LangChain's callbacks become the steps of the tape
    TapeSaver           a checkpointer: threads in one file, and in a session on the tape
    history             the checkpoints on a tape
    resume, fork, rerun run a recorded graph on from one of them: answered from the tape, live, or
                        as the session around it says (aresume, afork, arerun: with `ainvoke`)

Names are loaded when they are first used: importing this package imports no framework.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from tracefork_core.adapters import Adapter

if TYPE_CHECKING:
    from tracefork_langgraph.attachment import attach, detach
    from tracefork_langgraph.chat_models import bind, unbind
    from tracefork_langgraph.checkpoint_history import history
    from tracefork_langgraph.handler import TracingHandler
    from tracefork_langgraph.saver import TapeSaver
    from tracefork_langgraph.tool_middleware import TapeToolMiddleware
    from tracefork_langgraph.tools import bind_tool, bind_tools, unbind_tool, unbind_tools
    from tracefork_langgraph.travel import afork, arerun, aresume, fork, rerun, resume

__version__ = "0.1.0"

ADAPTER = Adapter(
    name="langgraph",
    distribution="tracefork-langgraph",
    framework="langgraph",
    seams=(
        (
            "httpx, httpx2 and aiohttp, ambient or bound (AzureChatOpenAI, ChatAnthropic, "
            "ChatDeepSeek, ChatFireworks, ChatGoogleGenerativeAI, ChatGroq, ChatMistralAI, "
            "ChatOllama, ChatOpenAI, ChatOpenRouter, ChatTogether, ChatXAI)"
        ),
        "not botocore (ChatBedrock, ChatBedrockConverse)",
        "LangChain tools: a call is an exchange",
        "LangChain callbacks: steps",
        "TapeSaver: checkpoints",
    ),
)

_HOMES = {
    "TapeSaver": "saver",
    "TapeToolMiddleware": "tool_middleware",
    "TracingHandler": "handler",
    "afork": "travel",
    "arerun": "travel",
    "aresume": "travel",
    "attach": "attachment",
    "bind": "chat_models",
    "bind_tool": "tools",
    "bind_tools": "tools",
    "detach": "attachment",
    "fork": "travel",
    "history": "checkpoint_history",
    "rerun": "travel",
    "resume": "travel",
    "unbind": "chat_models",
    "unbind_tool": "tools",
    "unbind_tools": "tools",
}

__all__ = [
    "ADAPTER",
    "TapeSaver",
    "TapeToolMiddleware",
    "TracingHandler",
    "__version__",
    "afork",
    "arerun",
    "aresume",
    "attach",
    "bind",
    "bind_tool",
    "bind_tools",
    "detach",
    "fork",
    "history",
    "rerun",
    "resume",
    "unbind",
    "unbind_tool",
    "unbind_tools",
]


def __getattr__(name: str) -> object:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{home}"), name)
