"""A travel desk in a loop: two agents search at once, then a writer and a checker take turns."""

import asyncio

from google.adk.agents import LlmAgent, LoopAgent, ParallelAgent, SequentialAgent
from google.adk.runners import InMemoryRunner
from google.adk.tools import exit_loop

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


def desk():
    flights = LlmAgent(
        name="flights",
        model=MODEL,
        instruction="You are Flights. Say what the flight costs.",
        tools=[find_flight],
        output_key="flight",
    )
    hotels = LlmAgent(
        name="hotels",
        model=MODEL,
        instruction="You are Hotels. Say what the hotel costs.",
        tools=[find_hotel],
        output_key="hotel",
    )
    writer = LlmAgent(
        name="writer",
        model=MODEL,
        instruction="You are Writer. Write an offer. {flight} {hotel} Remarks: {remarks?}",
        output_key="offer",
    )
    checker = LlmAgent(
        name="checker",
        model=MODEL,
        instruction="You are Checker. Say what the offer lacks, or end the loop. Offer: {offer}",
        tools=[exit_loop],
        output_key="remarks",
    )
    search = ParallelAgent(name="search", sub_agents=[flights, hotels])
    review = LoopAgent(name="review", sub_agents=[writer, checker], max_iterations=4)
    return SequentialAgent(name="desk", sub_agents=[search, review])


def run():
    runner = InMemoryRunner(agent=desk(), app_name="trip")
    events = asyncio.run(runner.run_debug(QUESTION, quiet=True))
    offers = [event.actions.state_delta.get("offer") for event in events]
    answer = [offer for offer in offers if offer][-1]
    print(answer)
    return answer


def is_right(answer):
    return answer == "Two nights in Lisbon cost 280 euros."


if __name__ == "__main__":
    run()
