"""Crews that are answered with what real providers once sent."""

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
    reason="recorded traffic of real providers is not ours to publish",
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
    """Whatever the crew makes of it, it makes the same of it again, with nobody there."""
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
    for one in interactions(TRAFFIC):
        asked = one.target.partition("?")[0]
        streams = '"stream"' in json.dumps(one.request_body.decode("utf-8", "replace"))
        if one.status == 200 and asked.endswith(path) and not streams and one.response_body:
            yield one


def _outcome(options: dict[str, Any]) -> str:
    """Return what a crew of one task came to, an error too."""
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
