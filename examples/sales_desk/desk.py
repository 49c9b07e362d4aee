"""A sales desk: four agents look up the sales of a region at once, and a fifth adds them up."""

import asyncio

from autogen_agentchat.agents import AssistantAgent
from autogen_agentchat.teams import DiGraphBuilder, GraphFlow
from autogen_ext.models.openai import OpenAIChatCompletionClient

import tracefork_core as tracefork

QUESTION = "How much did we sell in May?"
REGIONS = ("north", "south", "east", "west")
SOLD = {"April": (90, 80, 70, 60), "May": (100, 90, 80, 70)}


@tracefork.tool(effect="read")
def find_sales(region: str, month: str) -> str:
    """Find what a region sold in a month."""
    return f"{SOLD[month][REGIONS.index(region)]} cars"


def analyst(region, client):
    return AssistantAgent(
        region,
        client,
        tools=[find_sales],
        system_message=f"You are Analyst {region}. Say what your region sold.",
        reflect_on_tool_use=True,
    )


def team(client):
    editor = AssistantAgent(
        "editor",
        client,
        system_message="You are Editor. Add up what the analysts say.",
    )
    graph = DiGraphBuilder().add_node(editor)
    for region in REGIONS:
        agent = analyst(region, client)
        graph.add_node(agent).add_edge(agent, editor)
    return GraphFlow(graph.get_participants(), graph.build(), name="desk")


async def ask():
    client = OpenAIChatCompletionClient(model="gpt-4o-2024-08-06")
    try:
        result = await team(client).run(task=QUESTION)
    finally:
        await client.close()
    return result.messages[-1].content


def run():
    answer = asyncio.run(ask())
    print(answer)
    return answer


def is_right(answer):
    return "340 cars" in answer


if __name__ == "__main__":
    run()
