"""A refund desk: a supervisor asks two agents about a ticket, and a person approves the outcome.

python desk.py "Order 17 came with a broken arm. I want my money back."
"""

import sys
from functools import cache
from typing import Any, Literal

from langchain.agents import create_agent
from langchain_openai import ChatOpenAI
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.types import Command, interrupt

import tracefork_core as tracefork
from tracefork_langgraph import TapeSaver, attach, rerun

TICKET = "Order 17 came with a broken arm. I want my money back."
THREAD: Any = {"configurable": {"thread_id": "ticket-17"}}

SUPERVISOR = "You lead a refund desk. Say who is next: orders, policies, or decide."
ORDERS = "Look up the order of the ticket, and say what was bought and when."
POLICIES = "Look up the policy for this ticket, and quote it."
DECISION = "Decide about the ticket from what was found: refund, or no refund. Say why."

SHOP = {17: "one turntable, delivered 20 days ago"}
RULES = {
    "returns": "Unused goods can be returned for 14 days.",
    "damage": "What arrives damaged is refunded for 30 days.",
}


@tracefork.tool(effect="read")
def lookup_order(order: int) -> str:
    """Look up an order by its number."""
    return SHOP.get(order, f"There is no order {order}.")


@tracefork.tool(effect="read")
def search_policy(topic: Literal["returns", "damage"]) -> str:
    """Look up the policy of the shop on a topic."""
    return RULES[topic]


@cache  # Blame calls it many times in one process.
def build(tape: str = "desk.tape") -> Any:
    """Compile the desk, with its checkpoints on a tape."""
    model = ChatOpenAI(model="gpt-5-mini")

    def supervisor(state: MessagesState) -> Command[Literal["orders", "policies", "decide"]]:
        answer = model.invoke([("system", SUPERVISOR), *state["messages"]])
        return Command(goto=answer.text)

    def decide(state: MessagesState) -> dict[str, Any]:
        return {"messages": [model.invoke([("system", DECISION), *state["messages"]])]}

    def approve(state: MessagesState) -> dict[str, Any]:
        answer = interrupt({"approve": state["messages"][-1].text})
        return {"messages": [("user", f"The desk says {answer}.")]}

    builder = StateGraph(MessagesState)
    builder.add_node("supervisor", supervisor)
    builder.add_node("orders", create_agent(model, [lookup_order], system_prompt=ORDERS))
    builder.add_node("policies", create_agent(model, [search_policy], system_prompt=POLICIES))
    builder.add_node("decide", decide)
    builder.add_node("approve", approve)
    builder.add_edge(START, "supervisor")
    builder.add_edge("orders", "supervisor").add_edge("policies", "supervisor")
    builder.add_edge("decide", "approve")
    return attach(builder.compile(checkpointer=TapeSaver(tape)))


def decision(output: dict[str, Any]) -> str:
    """Return what a run decided, whether or not the person has answered yet."""
    answers = [message.text for message in output["messages"] if message.type == "ai"]
    return str(answers[-1])


def main() -> str:
    """Ask the desk about a ticket, then answer as the person."""
    desk = build()
    ticket = " ".join(sys.argv[1:]) or TICKET
    asked = decision(desk.invoke({"messages": [("user", ticket)]}, THREAD))
    print(f"to approve: {asked}")
    desk.invoke(Command(resume="no"), THREAD)  # The person knows the rule about damage.
    return asked


def again() -> str:
    """Run a recorded ticket again, for blame. The person gives the recorded answer."""
    return decision(rerun(build()))


if __name__ == "__main__":
    main()
