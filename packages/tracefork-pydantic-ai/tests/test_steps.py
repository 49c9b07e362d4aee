"""Each exchange is in the step of its agent, node and model call, however the run is driven."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pydantic_ai import Agent, ModelRetry, direct
from pydantic_ai.messages import ModelRequest
from pydantic_ai.models.instrumented import InstrumentedModel
from pydantic_ai.models.openai import OpenAIResponsesModel
from pydantic_ai.models.wrapper import WrapperModel
from pydantic_ai.providers.openai import OpenAIProvider
from pydantic_graph import End

import tracefork_core as tracefork
from tracefork_core.adapters import current_step

Call = Callable[..., Any]
MODEL = "model:gpt-5-mini"
FIRST = f"agent:helper ▸ node:ModelRequestNode 1 ▸ {MODEL}"


async def run(agent: Any, _: Call) -> str:
    return str((await agent.run("Go on.")).output)


async def run_with_handler(agent: Any, see: Call) -> str:
    async def handle(_: Any, events: Any) -> None:
        async for _ in events:
            see()

    return str((await agent.run("Go on.", event_stream_handler=handle)).output)


async def stream_text(agent: Any, see: Call) -> str:
    said = []
    async with agent.run_stream("Go on.") as stream:
        async for text in stream.stream_text(debounce_by=None):
            see()
            said.append(text)
    return " / ".join(said)


async def stream_output(agent: Any, see: Call) -> str:
    said = []
    async with agent.run_stream("Go on.") as stream:
        async for text in stream.stream_output(debounce_by=None):
            see()
            said.append(text)
    return " / ".join(said)


async def early_break(agent: Any, see: Call) -> str:
    async with agent.run_stream("Go on.") as stream:
        async for text in stream.stream_text(delta=True, debounce_by=None):
            see()
            return str(text)
    raise AssertionError("no text")


async def stream_events(agent: Any, see: Call) -> str:
    said = []
    async with agent.run_stream_events("Go on.") as events:
        async for event in events:
            see()
            said.append(repr(getattr(event, "delta", "")))
    return "".join(said)


async def iterate(agent: Any, see: Call) -> str:
    async with agent.iter("Go on.") as running:
        async for _ in running:
            see()
    return str(running.result.output)


async def iterate_by_hand(agent: Any, see: Call) -> str:
    async with agent.iter("Go on.") as running:
        node = running.next_node
        while not isinstance(node, End):
            see()
            node = await running.next(node)
    return str(running.result.output)


async def iterate_streams(agent: Any, see: Call) -> str:
    said = []
    async with agent.iter("Go on.") as running:
        async for node in running:
            if Agent.is_model_request_node(node):
                async with node.stream(running.ctx) as stream:
                    async for event in stream:
                        see()
                        said.append(repr(getattr(event, "delta", "")))
    return "".join(said)


async def abandon(agent: Any, see: Call) -> str:
    async with agent.iter("Go on.") as running:
        async for node in running:
            see()
            if Agent.is_call_tools_node(node):
                return str(node.model_response.text)
    raise AssertionError("no answer")


WAYS = (
    *(run, run_with_handler, stream_text, stream_output, early_break, stream_events),
    *(iterate, iterate_by_hand, iterate_streams, abandon),
)


@pytest.mark.parametrize("way", WAYS)
def test_an_agent_has_the_same_steps_in_each_way_to_run_it(
    way: Call, agent: Call, twice: Call, paths: Call, tape: Path
) -> None:
    """What the reader of a stream does between two pieces is not in the step of the agent."""
    helper = agent("helper", "@say one two three four five six")
    seen: set[str | None] = set()

    def act() -> str:
        return asyncio.run(way(helper, lambda: seen.add(current_step.get())))

    recorded, again = twice(act)
    assert recorded == again
    assert recorded
    assert paths() == [FIRST]
    assert seen <= {None}
    with tracefork.Tape.open(tape) as opened:
        assert [step.name for step in opened.steps][:4] == [
            *("helper", "UserPromptNode 1", "ModelRequestNode 1", "gpt-5-mini")
        ]
        assert all(step.ended is not None for step in opened.steps)


def test_sync_runs_have_the_same_steps(agent: Call, twice: Call, paths: Call) -> None:
    """Each has the event loop of its thread."""
    helper = agent("helper", "@say Hello.")

    def act() -> list[str]:
        whole = helper.run_sync("Go on.").output
        streamed = helper.run_stream_sync("Go on.")
        return [whole, *streamed.stream_text(debounce_by=None)]

    recorded, again = twice(act)
    assert recorded == again
    assert paths() == [FIRST] * 2


def test_a_validator_is_a_guardrail_and_its_retry_says_so(
    agent: Call, ask: Call, twice: Call, paths: Call, tape: Path
) -> None:
    """What a validator asks is in its step; the request after it has another number."""
    critic, writer = agent("critic", "@say Fine."), agent("writer")
    tries: list[str] = []

    @writer.output_validator
    async def is_polite(text: str) -> str:
        await critic.run(text)
        tries.append(text)
        if len(tries) % 2:
            raise ModelRetry("Be polite.")
        return text

    recorded, again = twice(lambda: ask(writer))
    assert recorded == again
    guarded = "agent:writer ▸ node:CallToolsNode {} ▸ guardrail:is_polite"
    inner = f"▸ agent:critic ▸ node:ModelRequestNode 1 ▸ {MODEL}"
    assert paths() == [
        f"agent:writer ▸ node:ModelRequestNode 1 ▸ {MODEL}",
        f"{guarded.format(1)} {inner}",
        f"agent:writer ▸ node:ModelRequestNode 2 (retry) ▸ {MODEL}",
        f"{guarded.format(2)} {inner}",
    ]
    with tracefork.Tape.open(tape) as opened:
        errors = [step.error for step in opened.steps if step.kind == "guardrail"]
    assert errors == ["ModelRetry('Be polite.')", None]


def test_agents_of_one_task_group_get_their_own_answers(
    agent: Call, twice: Call, paths: Call
) -> None:
    """They ask the same at once."""
    helper = agent("helper")

    async def act() -> list[str]:
        results = await asyncio.gather(*(helper.run("Go on.") for _ in range(4)))
        return [result.output for result in results]

    recorded, again = twice(lambda: asyncio.run(act()))
    assert recorded == again
    assert len(set(recorded)) == 4
    assert paths() == [FIRST] * 4


def test_a_request_without_an_agent_is_a_model_step(model: Call, twice: Call, paths: Call) -> None:
    """`pydantic_ai.direct` asks a model itself."""

    async def act() -> str:
        request = ModelRequest.user_text_prompt("@say Hello.")
        whole = await direct.model_request(model(), [request])
        async with direct.model_request_stream(model(), [request]) as stream:
            async for _ in stream:
                pass
        return f"{whole.text} {stream.get().text}"

    recorded, again = twice(lambda: asyncio.run(act()))
    assert recorded == again
    assert paths() == [MODEL] * 2


class Again(OpenAIResponsesModel):
    """A model of the program's that asks the class it derives from."""

    async def request(self, *args: Any) -> Any:
        return await super().request(*args)


def test_a_model_that_wraps_or_derives_from_others_is_asked_once(
    agent: Call, model: Call, twice: Call, paths: Call
) -> None:
    """The step has the name of the model that asks the provider; `override` counts, too."""
    inner = model()
    own = Again("gpt-5-mini", provider=OpenAIProvider(openai_client=inner.client))
    helper = agent("helper", "@say Hello.", model="test")

    async def act() -> list[str]:
        said = []
        for wrapped in (WrapperModel(inner), InstrumentedModel(WrapperModel(own)), own):
            with helper.override(model=wrapped):
                said += [await way(helper, lambda: None) for way in (run, stream_text)]
        return said

    recorded, again = twice(lambda: asyncio.run(act()))
    assert recorded == again
    assert paths() == [FIRST] * 6


def test_an_agent_without_a_name_is_called_after_its_variable(
    model: Call, twice: Call, paths: Call
) -> None:
    """pydantic-ai looks for it in the frame of the caller, which a session leaves in place."""
    my_agent = Agent(model(), instructions="@say Hello.")
    twice(lambda: my_agent.run_sync("Go on.").output)
    assert paths() == [FIRST.replace("helper", "my_agent")]
