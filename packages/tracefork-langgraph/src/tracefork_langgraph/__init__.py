"""LangChain and LangGraph for tracefork: the steps of each graph that runs in a session.

With this package installed, a session attaches a graph by itself when it runs.

    attach, detach      do all of the below for everything found in a graph, and undo it; needed for
                        a chain without a graph, and in a session with ambient=False
    bind, unbind        record and replay chat models without ambient patching
    bind_tools, unbind_tools, bind_tool, unbind_tool
                        record and replay tool calls as exchanges
    TapeToolMiddleware  the same for tools that appear while an agent runs
    TracingHandler      turns LangChain's callbacks into the steps of the tape
    TapeSaver           a checkpointer: threads in one file, and on the tape in a session
    history             lists the checkpoints on a tape
    resume, fork, rerun continue a recorded graph from a checkpoint: answered from the tape, live,
                        or as the session around it decides (aresume, afork, arerun: `ainvoke`)

Names are loaded on first use, so importing this package imports no framework.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tracefork_core.adapters import Adapter, lazy_names

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

__getattr__ = lazy_names(
    __name__,
    attachment=("attach", "detach"),
    chat_models=("bind", "unbind"),
    checkpoint_history=("history",),
    handler=("TracingHandler",),
    saver=("TapeSaver",),
    tool_middleware=("TapeToolMiddleware",),
    tools=("bind_tool", "bind_tools", "unbind_tool", "unbind_tools"),
    travel=("afork", "arerun", "aresume", "fork", "rerun", "resume"),
)
