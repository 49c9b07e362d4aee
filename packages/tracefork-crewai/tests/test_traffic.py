"""Crews replay answers that real providers once sent."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
from crewai import LLM, Agent, Crew, Task
from traffic.cassettes import CassetteServer, Interaction, interactions

import tracefork_core as tracefork

TRAFFIC = Path(__file__).parents[4] / "shared" / "traffic" / "cassettes"
AMOUNT = 3

pytestmark = pytest.mark.skipif(
    not TRAFFIC.is_dir(),
    reason="the recorded traffic of real providers may not be published",
)

PROVIDERS: dict[str, tuple[str, dict[str, Any], str]] = {
    "openai": ("/v1/chat/completions", {"model": "openai/gpt-4o-mini"}, "/v1"),
    "responses": ("/v1/responses", {"model": "openai/gpt-4o-mini", "api": "responses"}, "/v1"),
    "anthropic": ("/v1/messages", {"model": "anthropic/claude-sonnet-4-5"}, ""),
    "gemini": (":generateContent", {"model": "gemini/gemini-2.5-flash"}, ""),
    "bedrock": ("/converse", {"model": "bedrock/amazon.nova-lite-v1:0", "is_litellm": True}, ""),
}


@pytest.mark.parametrize("provider", PROVIDERS)
def test_a_crew_of_real_answers_is_replayed(
    provider: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The crew returns the same result or error, without a server."""
    path, options, prefix = PROVIDERS[provider]
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "none")
    monkeypatch.setenv("AWS_REGION_NAME", "us-east-1")
    answers = list(islice(_answers(path), AMOUNT))
    assert len(answers) >= 2
    for n, answer in enumerate(answers):
        tape = tmp_path / f"{n}.tape"
        with CassetteServer() as server:
            server.due = answer
            monkeypatch.setenv("GOOGLE_GEMINI_BASE_URL", server.url)
            where = {"base_url": f"{server.url}{prefix}", "api_key": "none"}
            with tracefork.record(tape):
                recorded = _outcome({**options, **where})
            assert server.served
        with tracefork.replay(tape) as run:
            assert _outcome({**options, **where}) == recorded
        assert run.digest == run.tape.digest


def _answers(path: str) -> Iterator[Interaction]:
    for interaction in interactions(TRAFFIC):
        target = interaction.target.partition("?")[0]
        streams = '"stream"' in json.dumps(interaction.request_body.decode("utf-8", "replace"))
        is_success = interaction.status == 200 and interaction.response_body
        if is_success and target.endswith(path) and not streams:
            yield interaction


def _outcome(options: dict[str, Any]) -> str:
    """Return the result of a crew of one task, or its error."""
    agent = Agent(
        role="Clerk",
        goal="answer",
        backstory="You answer.",
        llm=LLM(**options),
        max_iter=2,
        max_retry_limit=0,
    )
    task = Task(description="Answer the letter.", expected_output="an answer", agent=agent)
    try:
        return str(Crew(agents=[agent], tasks=[task]).kickoff().raw)
    except Exception as error:
        return f"{type(error).__name__}: {error}"
