"""The conformance tests of all adapters, for this one."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, ClassVar

from langchain.agents import create_agent
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI

from tracefork_langgraph import attach, bind_tool
from tracefork_testkit.conformance import API_KEY, AdapterConformance


class TestConformance(AdapterConformance):
    """LangGraph's prebuilt agent with ChatOpenAI."""

    adapter = "langgraph"
    agent_kind = "run"
    selectors: ClassVar = {"run:LangGraph": 0, "node:tools": 1, "node:model:2": 2}

    def make_agent(self, url: str, lookup: Callable[[], str]) -> Any:
        model = ChatOpenAI(model="some-model", base_url=f"{url}/v1", api_key=API_KEY)
        return create_agent(model, [bind_tool(tool(lookup))])

    def attach(self, agent: Any) -> Any:
        return attach(agent)

    def run(self, agent: Any, question: str, mode: str) -> str:
        state = {"messages": [("user", question)]}
        if mode == "sync":
            final = agent.invoke(state)
        elif mode == "async":
            final = asyncio.run(agent.ainvoke(state))
        elif mode == "stream":
            final = list(agent.stream(state, stream_mode="values"))[-1]
        else:
            final = asyncio.run(self._last_of_stream(agent, state))
        return str(final["messages"][-1].content)

    async def _last_of_stream(self, agent: Any, state: Any) -> Any:
        return [values async for values in agent.astream(state, stream_mode="values")][-1]
