"""A support agent that answers one ticket: python support_agent.py "Where is order 17?"."""

import sys
from datetime import datetime

from langchain.agents import create_agent
from langchain_openai import ChatOpenAI

import tracefork_core as tracefork
from tracefork_langgraph import attach

PROMPT = """\
You answer the tickets of a shop for record players.
Look up the order and the policy before you promise anything.
Answer in at most 3 sentences."""

ORDERS = {17: "one turntable, paid, handed to the carrier three days ago"}
POLICIES = {"late delivery": "A parcel may take five days. Later than that, we send another one."}


@tracefork.tool(effect="read")
def lookup_order(order: int) -> str:
    """Look up an order by its number."""
    return ORDERS.get(order, f"There is no order {order}.")


@tracefork.tool(effect="read")
def search_policy(question: str) -> str:
    """Search the policies of the shop."""
    return POLICIES.get(question, "There is no policy about that.")


@tracefork.tool(effect="read")
def current_time() -> str:
    """Tell the current date and time."""
    return datetime.now().astimezone().isoformat(timespec="minutes")


def main() -> str:
    """Answer the ticket on the command line, word by word, and return the answer."""
    ticket = " ".join(sys.argv[1:]) or "Where is order 17?"
    agent = attach(
        create_agent(
            ChatOpenAI(model="gpt-5-mini", stream_usage=True),
            [lookup_order, search_policy, current_time],
            system_prompt=PROMPT,
            name="support",
        )
    )
    print(f"ticket: {ticket}")
    question = {"messages": [{"role": "user", "content": ticket}]}
    answer = ""
    for message, where in agent.stream(question, stream_mode="messages"):
        if where["langgraph_node"] == "model":
            print(message.content, end="", flush=True)
            answer += message.content
    print()
    return answer


if __name__ == "__main__":
    main()

# ruff: noqa: T201
