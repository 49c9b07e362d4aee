"""A service desk, as a swarm: triage hands a customer over to billing or to shipping."""

import asyncio
from functools import partial

from autogen_agentchat.agents import AssistantAgent
from autogen_agentchat.conditions import TextMentionTermination
from autogen_agentchat.teams import Swarm
from autogen_ext.models.openai import OpenAIChatCompletionClient

import tracefork_core as tracefork

QUESTION = "I paid order 17 twice."


@tracefork.tool(effect="read")
def find_payments(order: int) -> str:
    """Find the payments of an order."""
    return f"order {order}: 2 payments of 30 euros"


@tracefork.tool(effect="read")
def find_parcel(order: int) -> str:
    """Find the parcel of an order."""
    return f"order {order}: delivered on Monday"


def agent(client, name, task, tools=(), handoffs=()):
    return AssistantAgent(
        name,
        client,
        tools=list(tools),
        handoffs=list(handoffs),
        system_message=f"You are {name.capitalize()}. {task}",
        max_tool_iterations=3,
    )


def team(client):
    make = partial(agent, client)
    triage = make("triage", "Hand the customer over.", handoffs=["billing", "shipping"])
    billing = make("billing", "Find the payments of the order.", [find_payments], ["closing"])
    shipping = make("shipping", "Find the parcel of the order.", [find_parcel], ["closing"])
    closing = make("closing", "Write the answer to the customer. End with DONE.")
    agents = [triage, billing, shipping, closing]
    return Swarm(agents, name="service", termination_condition=TextMentionTermination("DONE"))


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
    return "30 euros for order 17" in answer


if __name__ == "__main__":
    run()
