"""A program that uses all that CrewAI stores between runs, in the current folder.

python shop.py URL TAPE TIMES: replay a tape of it, and print what each replay returned as JSON.
"""

from __future__ import annotations

import json
import os
import sys
from typing import Any

import tracefork_core as tracefork

ORDER = "order-7"


def take_order(url: str, *, knows: bool = True) -> list[object]:
    """Take an order: the flow counts them, and its crew remembers the earlier ones.

    `knows` gives the crew a memory and knowledge.
    """
    from crewai import LLM, Agent, Crew, Flow, Task
    from crewai.flow.flow import start
    from crewai.flow.persistence import persist
    from crewai.knowledge.source.string_knowledge_source import StringKnowledgeSource
    from crewai.memory.unified_memory import Memory
    from pydantic import BaseModel

    close = {"Connection": "close"}  # CrewAI does not close its clients.
    llm = LLM(model="openai/m", base_url=f"{url}/v1", api_key="none", default_headers=close)
    config = {"api_key": "none", "api_base": f"{url}/v1", "model_name": "m"}
    embedder: Any = {"provider": "openai", "config": config}

    def crew(count: int) -> Crew:
        agent = Agent(role="Clerk", goal="help", backstory="You help.", llm=llm)
        prompt = f"Take order {count}."
        task = Task(name="take", description=prompt, expected_output="text", agent=agent)
        more: dict[str, Any] = {}
        if knows:
            source = StringKnowledgeSource(content="Goods return within 30 days.")
            memory = Memory(llm=llm, embedder=embedder)
            more = {"memory": memory, "knowledge_sources": [source], "embedder": embedder}
        return Crew(name="shop", agents=[agent], tasks=[task], **more)

    class State(BaseModel):
        id: str = ""
        count: int = 0

    @persist()
    class Orders(Flow[State]):
        @start()
        def take(self) -> str:
            self.state.count += 1
            return str(crew(self.state.count).kickoff().raw)

    orders = Orders()
    said = orders.kickoff(inputs={"id": ORDER})
    return [said, orders.state.count]


def main(url: str, tape: str, times: str) -> None:
    """Replay the tape."""
    made = []
    for _ in range(int(times)):
        with tracefork.replay(tape):
            made.append(take_order(url))
    os.write(1, f"\nMADE {json.dumps(made)}\n".encode())  # One write: CrewAI prints meanwhile.


if __name__ == "__main__":
    main(*sys.argv[1:])
