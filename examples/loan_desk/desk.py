"""A loan desk: two agents look things up at once, and a third one advises.

The workflow is one of Microsoft Agent Framework: a fan-out, a join and an agent behind it.
"""

import asyncio

from agent_framework import (
    Agent,
    AgentExecutor,
    AgentExecutorRequest,
    AgentExecutorResponse,
    Executor,
    Message,
    WorkflowBuilder,
    WorkflowContext,
    handler,
)
from agent_framework.openai import OpenAIChatClient

import tracefork_core as tracefork

QUESTION = "What can Ann pay each month?"


@tracefork.tool(effect="read")
def find_income(name: str) -> str:
    """Find what a person earns each month."""
    return "3000 euros"


@tracefork.tool(effect="read")
def find_debts(name: str, months: int) -> str:
    """Find what a person pays back in a number of months."""
    return f"{months * 800} euros"


class Ask(Executor):
    """Ask all agents the same."""

    @handler
    async def ask(self, question: str, ctx: WorkflowContext[AgentExecutorRequest]) -> None:
        await ctx.send_message(AgentExecutorRequest(messages=[Message("user", [question])]))


class Gather(Executor):
    """Give the next agent what the others said."""

    @handler
    async def gather(
        self, said: list[AgentExecutorResponse], ctx: WorkflowContext[AgentExecutorRequest]
    ) -> None:
        text = " ".join(response.agent_response.text for response in said)
        await ctx.send_message(AgentExecutorRequest(messages=[Message("user", [text])]))


def agent(name, instructions, tools=()):
    made = Agent(
        client=OpenAIChatClient(model="gpt-5-mini"),
        name=name,
        instructions=instructions,
        tools=list(tools),
        default_options={"store": False},
    )
    return AgentExecutor(made, id=name)


def desk():
    ask, gather = Ask(id="ask"), Gather(id="gather")
    income = agent("income", "You are Income. Say what she earns.", [find_income])
    debts = agent("debts", "You are Debts. Say what she pays back each month.", [find_debts])
    advisor = agent("advisor", "You are Advisor. Say what is left.")
    builder = WorkflowBuilder(name="desk", start_executor=ask)
    builder.add_fan_out_edges(ask, [income, debts])
    builder.add_fan_in_edges([income, debts], gather)
    return builder.add_edge(gather, advisor).build()


def run():
    result = asyncio.run(desk().run(QUESTION))
    answer = result.get_outputs()[-1].text
    print(answer)
    return answer


def is_right(answer):
    return answer == "Ann can pay 2200 euros each month."


if __name__ == "__main__":
    run()
