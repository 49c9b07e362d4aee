"""Replay a tape in a process of its own, with the network closed: `TAPE BASE_URL`."""

from __future__ import annotations

import os
import sys

os.environ.update(OPENAI_AGENTS_DISABLE_TRACING="1", OPENAI_API_KEY="sk-none-0123456789")

from agents import Agent, ModelSettings, Runner, function_tool

import tracefork_core as tracefork
from tracefork_testkit import closed_network

INCLUDED = ["file_search_call.results", "reasoning.encrypted_content", "web_search_call.results"]


@function_tool
def look_up(order: int) -> str:
    """Look an order up."""
    return f"order {order} is on its way"


def answer() -> str:
    """Run two agents that ask the host of OpenAI."""
    settings = ModelSettings(response_include=[*INCLUDED, "code_interpreter_call.outputs"])
    words = '@then\n@call look_up {"order": 17}\n@then\n@say Done.'
    options = {"model": "gpt-5-mini", "model_settings": settings}
    billing = Agent(name="Billing", instructions=words, tools=[look_up], **options)
    words = "@call transfer_to_billing {}"
    triage = Agent(name="Triage", instructions=words, handoffs=[billing], **options)
    return str(Runner.run_sync(triage, "Where is order 17?").final_output)


if __name__ == "__main__":
    with closed_network(), tracefork.replay(sys.argv[1], strict=True) as replayed:
        given = answer()
    assert replayed.digest == replayed.tape.digest
    print(given)
