"""A divergence ends the run at once, whatever models, hooks and agents do with errors."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from openai import AsyncOpenAI
from pydantic_ai import Agent, ModelRetry
from pydantic_ai.capabilities import Hooks
from pydantic_ai.messages import ModelResponse, TextPart
from pydantic_ai.models.fallback import FallbackModel
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider

import tracefork_core as tracefork
from tracefork_testkit import ProviderServer

Call = Callable[..., Any]
Make = Callable[[str, str], Any]
errors: list[BaseException] = []
"""What the program's own code got to handle."""


def model(url: str) -> Any:
    """A model with the retries that its SDK has by default."""
    client = AsyncOpenAI(base_url=f"{url}/v1", api_key="none")
    return OpenAIChatModel("gpt-5-mini", provider=OpenAIProvider(openai_client=client))


def plain(url: str, said: str) -> Any:
    return Agent(model(url), name="helper", instructions=f"@say {said}")


def fallback(url: str, said: str) -> Any:
    """Any error makes it ask the next model."""
    both = FallbackModel(model(url), model(url), model(url), fallback_on=(Exception,))
    return Agent(both, name="helper", instructions=f"@say {said}")


def hooks(url: str, said: str) -> Any:
    """Each error of a model is answered."""
    answering: Any = Hooks()

    @answering.on.model_request_error
    async def answer(ctx: Any, *, request_context: Any, error: Exception) -> ModelResponse:
        errors.append(error)
        return ModelResponse(parts=[TextPart("Hm.")])

    return Agent(model(url), instructions=f"@say {said}", capabilities=[answering])


def run_hooks(url: str, said: str) -> Any:
    """Each error of a run becomes a result."""
    answering: Any = Hooks()

    @answering.on.run
    async def answer(ctx: Any, *, handler: Any) -> Any:
        try:
            return await handler()
        except Exception as error:
            errors.append(error)
            return results[0]

    return Agent(model(url), instructions=f"@say {said}", capabilities=[answering])


def validator(url: str, said: str) -> Any:
    """The error of an inner agent is told to the model."""
    inner = plain(url, said)
    helper = Agent(model(url), instructions="@say Hello.", retries=5)

    @helper.output_validator
    async def is_polite(text: str) -> str:
        try:
            await inner.run("Go on.")
        except Exception as error:
            errors.append(error)
            raise ModelRetry("Again.") from error
        return text

    return helper


results: list[Any] = []


async def run(agent: Any) -> Any:
    return await agent.run("Go on.")


async def stream(agent: Any) -> Any:
    async with agent.run_stream("Go on.") as streamed:
        async for _ in streamed.stream_text():
            pass
    return streamed


@pytest.mark.parametrize("way", [run, stream])
@pytest.mark.parametrize("make", [plain, fallback, hooks, run_hooks, validator])
def test_a_divergence_ends_the_run_at_once(
    tape: Path, server: ProviderServer, make: Make, way: Call
) -> None:
    """It is neither retried nor told to a model, and no other model is asked."""
    errors.clear()
    with tracefork.record(tape):
        results[:] = [asyncio.run(run(make(server.url, "One")))]
    asked = len(server.requests)
    ended: list[type] = []

    def diverge() -> None:
        with tracefork.replay(tape):
            try:
                asyncio.run(asyncio.wait_for(way(make(server.url, "Two")), 5))
            except Exception as error:
                ended.append(type(error))  # The session would raise its own error instead.
                raise

    with pytest.raises(tracefork.DivergenceError):
        diverge()
    assert ended == [tracefork.DivergenceError]
    assert len(server.requests) == asked
    assert [type(error) for error in errors] in ([], [tracefork.DivergenceError])
