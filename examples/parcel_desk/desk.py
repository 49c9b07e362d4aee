"""A parcel desk: an agent that asks two other agents, through tools that run them."""

from pydantic_ai import Agent

import tracefork_core as tracefork

QUESTION = "My parcel of order 17 came late. What do I get?"
MODEL = "openai:gpt-5-mini"

tracker = Agent(
    MODEL, name="tracker", instructions="You are Tracker. Say how many days late a parcel was."
)
clerk = Agent(
    MODEL, name="clerk", instructions="You are Clerk. Say what we pay for a delay, in euros."
)
desk = Agent(MODEL, name="desk", instructions="You are Desk. Answer the customer.")


@tracker.tool_plain
@tracefork.tool(effect="read")
def find_parcel(order: int) -> str:
    """Find the parcel of an order."""
    return f"The parcel of order {order} was due on 1 May and came on 5 May."


@desk.tool_plain
async def ask_tracker(order: int) -> str:
    """Ask how late the parcel of an order was."""
    result = await tracker.run(f"How late was the parcel of order {order}?")
    return result.output


@desk.tool_plain
async def ask_clerk(days: int) -> str:
    """Ask what we pay for a delay."""
    result = await clerk.run(f"What do we pay for {days} days?")
    return result.output


def run():
    answer = desk.run_sync(QUESTION).output
    print(answer)
    return answer


def is_right(answer):
    return "8 euros" in answer


if __name__ == "__main__":
    run()
