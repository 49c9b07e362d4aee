"""A support desk of three agents: triage hands a customer's question to one of two specialists."""

import asyncio

from agents import Agent, Runner, function_tool

import tracefork_core as tracefork

QUESTION = "I paid order 17 twice. Please help."


@function_tool
@tracefork.tool(effect="read")
def find_payments(order: int) -> str:
    """List the payments for an order."""
    return f"order {order}: 40 euros, paid twice"


@function_tool
@tracefork.tool(effect="read")
def refund_of(order: int, payments: int) -> str:
    """Work out what to pay back for an order."""
    return f"{(payments - 1) * 40} euros"


@function_tool
@tracefork.tool(effect="read")
def find_parcel(order: int) -> str:
    """Find out where the parcel of an order is."""
    return f"order {order}: delivered on Monday"


billing = Agent(
    name="Billing",
    instructions="You are Billing. Look at the payments, and say what you pay back.",
    tools=[find_payments, refund_of],
)
shipping = Agent(
    name="Shipping",
    instructions="You are Shipping. Say where the parcel is.",
    tools=[find_parcel],
)
triage = Agent(
    name="Triage",
    instructions="You are Triage. Hand off to the right agent.",
    handoffs=[billing, shipping],
)


def run():
    result = asyncio.run(Runner.run(triage, QUESTION))
    print(result.final_output)
    return result.final_output


def is_right(answer):
    return "40 euros" in answer


if __name__ == "__main__":
    run()
