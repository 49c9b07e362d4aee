"""A travel desk: two agents look for a flight and a hotel at once, and a third writes the offer."""

import asyncio
import re

from google.adk.agents import LlmAgent
from google.adk.runners import InMemoryRunner
from google.adk.workflow import START, JoinNode, Workflow, node

import tracefork_core as tracefork

QUESTION = "Two nights in Lisbon, please."
MODEL = "gemini-2.5-flash"


@tracefork.tool(effect="read")
def find_flight(city: str) -> str:
    """Find the cheapest flight to a city."""
    return "120 euros"


@tracefork.tool(effect="read")
def find_hotel(city: str, nights: int) -> str:
    """Find the cheapest hotel in a city."""
    return f"{nights * 80} euros"


@node
def add_up(node_input: dict[str, str]) -> str:
    """Add up what the agents have found."""
    prices = [int(price) for price in re.findall(r"(\d+) euros", str(node_input))]
    return f"{sum(prices)} euros in all"


flights = LlmAgent(
    name="flights",
    model=MODEL,
    instruction="You are Flights. Say what the flight costs.",
    tools=[find_flight],
)
hotels = LlmAgent(
    name="hotels",
    model=MODEL,
    instruction="You are Hotels. Say what the hotel costs.",
    tools=[find_hotel],
)
writer = LlmAgent(name="writer", model=MODEL, instruction="You are Writer. Write the offer.")
desk = Workflow(
    name="desk",
    edges=[(START, (flights, hotels), JoinNode(name="both"), add_up, writer)],
)


def run():
    events = asyncio.run(InMemoryRunner(node=desk, app_name="trip").run_debug(QUESTION, quiet=True))
    answer = events[-1].content.parts[0].text
    print(answer)
    return answer


def is_right(answer):
    return "280 euros" in answer


if __name__ == "__main__":
    run()
