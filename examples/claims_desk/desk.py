"""A claims desk: four agents that hand over to each other, two MCP servers and a guardrail.

python desk.py "My turntable, order 17, came with a broken arm. I want my money back."
"""

import asyncio
import os
import sys
from contextlib import AsyncExitStack
from typing import Any

from agents import (
    Agent,
    GuardrailFunctionOutput,
    InputGuardrailTripwireTriggered,
    Runner,
    function_tool,
    input_guardrail,
    set_tracing_disabled,
)
from agents.mcp import MCPServer, MCPServerStdio, create_static_tool_filter
from faults import is_planted, shows

import tracefork_core as tracefork

set_tracing_disabled(True)  # Nothing is posted to the host of OpenAI.

TICKET = "My turntable, order 17, came with a broken arm. I want my money back."
MODEL = "gpt-5-mini"
POLICIES = "node_modules/.bin/mcp-server-filesystem"  # `npm install` brings it.

GUARD = "Say yes if the message is about an order, and no if it is not."
TRIAGE = "You open the tickets. Hand each one over to the agent that can help."
SHIPPING = "Look up the order, then hand over to refunds."
REFUNDS = (
    "Read the policy for what happened to the goods. If it grants a refund, hand over to billing. "
    "If not, close the ticket."
)
VAGUE = "Read our policy. If it grants a refund, hand over to billing. If not, close the ticket."
BILLING = "Look up what was charged, and close the ticket."

CLOSED: list[str] = []


@function_tool
@tracefork.tool(effect="read")
def charged(order: int) -> str:
    """Look up what was charged for an order."""
    return f"{4 if shows('tool') else 40} euros were charged for order {order}."


@function_tool
@tracefork.tool(effect="write")
def close_ticket(order: int, account: str) -> str:
    """Close the ticket of an order; what was granted goes to the customer's account."""
    CLOSED.append(f"order {order}, account {account}")
    return "closed"


@input_guardrail
async def about_an_order(_: Any, agent: Any, question: Any) -> GuardrailFunctionOutput:
    """Stop what is not about an order."""
    guard = Agent(name="Guard", instructions=GUARD, model=MODEL)
    verdict = (await Runner.run(guard, question)).final_output
    return GuardrailFunctionOutput(verdict, tripwire_triggered=verdict != "yes")


def desk(orders: MCPServer, policies: MCPServer) -> Agent:
    """Make new agents, and return the one that opens tickets."""
    instructions = VAGUE if is_planted("instruction") else REFUNDS
    billing = Agent(
        name="Billing", instructions=BILLING, model=MODEL, tools=[charged, close_ticket]
    )
    refunds = Agent(
        name="Refunds",
        instructions=instructions,
        model=MODEL,
        tools=[close_ticket],
        mcp_servers=[policies],
        handoffs=[billing],
    )
    shipping = Agent(
        name="Shipping",
        instructions=SHIPPING,
        model=MODEL,
        mcp_servers=[orders],
        handoffs=[refunds],
    )
    return Agent(
        name="Triage",
        instructions=TRIAGE,
        model=MODEL,
        handoffs=[shipping, billing],
        input_guardrails=[about_an_order],
    )


def orders_server(*args: str, only: str) -> MCPServerStdio:
    """Return the server of orders, in Python."""
    kept = {name: os.environ[name] for name in ("FAULT", "ORDERS_KEY") if name in os.environ}
    return MCPServerStdio(
        {"command": sys.executable, "args": ["orders.py", *args], "env": kept},
        tool_filter=create_static_tool_filter([only]),
        cache_tools_list=True,
    )


async def policy_server(stack: AsyncExitStack) -> MCPServer:
    """Return the server of policies: in Node.js, or in Python where that cannot be started."""
    server = MCPServerStdio(
        {"command": POLICIES, "args": ["policies"]},
        tool_filter=create_static_tool_filter(["read_text_file"]),
        cache_tools_list=True,
    )
    try:
        return await stack.enter_async_context(server)
    except FileNotFoundError:
        print(f"No {POLICIES}: the Python server answers for it.", file=sys.stderr)
    return await stack.enter_async_context(orders_server("--policies", only="read_text_file"))


async def answer(ticket: str) -> str:
    """Return what the desk answers to a ticket."""
    async with AsyncExitStack() as stack:
        orders = await stack.enter_async_context(orders_server(only="find_order"))
        policies = await policy_server(stack)
        try:
            result = await Runner.run(desk(orders, policies), ticket)
        except InputGuardrailTripwireTriggered:
            return "This desk answers questions about orders."
    return str(result.final_output)


def run(ticket: str = TICKET) -> str:
    """Print and return what the desk answers."""
    text = asyncio.run(answer(ticket))
    print(text)
    return text


def is_right(text: str) -> bool:
    """Return whether the customer got back what was paid."""
    return "paid back 40 euros" in text


if __name__ == "__main__":
    run(" ".join(sys.argv[1:]) or TICKET)
