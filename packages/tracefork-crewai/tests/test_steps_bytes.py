"""What CrewAI generates itself is the same when a crew is replayed, to the byte."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import tracefork_core as tracefork
from tracefork_testkit import ProviderServer

from . import modes


def test_an_injected_date_is_the_recorded_one(llm: Any, tape: Path, server: ProviderServer) -> None:
    """An agent with `inject_date` gets the recorded date, to the microsecond."""

    def run() -> str:
        dated = modes.agent(llm(), inject_date=True, date_format="%Y-%m-%d %H:%M:%S.%f")
        return str(modes.crew(modes.task(dated)).kickoff().raw)

    with tracefork.record(tape):
        recorded = run()
    server.stop()
    with tracefork.replay(tape) as replayed:
        assert run() == recorded
    assert replayed.digest == replayed.tape.digest
    assert re.search(rb"Current Date: \d{4}-\d\d-\d\d \d\d:\d\d", server.requests[0].body)


def test_the_file_of_a_large_result_has_its_recorded_name(
    llm: Any, tape: Path, server: ProviderServer
) -> None:
    """A result too large for the prompt goes to a file with a random name that the model reads."""
    from crewai import Agent
    from crewai.tools import tool

    @tool("atlas")
    def atlas() -> str:
        """Print the atlas."""
        return "map " * 100_000

    asides = "use_better_compaction" in Agent.model_fields
    options: dict[str, Any] = {"use_better_compaction": True} if asides else {}

    def run() -> str:
        reader = modes.agent(llm(), tools=[atlas], **options)
        return str(modes.crew(modes.task(reader, "@call atlas\n@then")).kickoff().raw)

    with tracefork.record(tape):
        recorded = run()
    server.stop()
    with tracefork.replay(tape) as replayed:
        assert run() == recorded
    assert replayed.digest == replayed.tape.digest
    assert (b"tool-result-" in server.requests[-1].body) is asides


def test_a_planners_prompt_has_no_memory_addresses(llm: Any, tape: Path) -> None:
    """Outside a session CrewAI puts the addresses of tools' functions into it."""
    with ProviderServer(modes.contrary()) as planner:

        def told() -> bytes:
            url = f"{planner.url}/v1"
            modes.planning(lambda model="openai/gpt-4o-mini": llm(model, base_url=url))
            return next(r.body for r in reversed(planner.requests) if b"tasks summary" in r.body)

        with tracefork.record(tape):
            recorded = told()
        live = told()
    addresses = re.compile(rb" at 0x([0-9a-f]+)>")
    assert set(addresses.findall(recorded)) == {b"0"}
    assert b"0" not in set(addresses.findall(live)) != set()
