"""The real Ollama SDK reads the server's answers."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import ollama
import pytest

from tracefork_testkit import Fault, ProviderServer

LOOK = '@call look {"q": "tape"}\n@call count {}\n@then\n@say both done'


@pytest.fixture
def sdk(provider: ProviderServer) -> Iterator[ollama.Client]:
    with ollama.Client(host=provider.url) as sdk:
        yield sdk


def user(text: str) -> dict[str, Any]:
    return {"role": "user", "content": text}


def test_an_answer_has_its_token_counts(sdk: ollama.Client) -> None:
    """The text is whole, and has its token counts."""
    answer = sdk.chat(model="qwen3", messages=[user("@think slowly\n@say hello")])
    assert (answer.message.content, answer.message.thinking) == ("hello", "slowly")
    assert (answer.model, answer.done, answer.done_reason) == ("qwen3", True, "stop")
    assert (answer.prompt_eval_count or 0) > 0
    assert (answer.eval_count or 0) > 0


def test_a_stream_carries_words_in_lines(sdk: ollama.Client) -> None:
    """Each line holds a word; the last one holds only the counts."""
    lines = list(sdk.chat(model="m", messages=[user("@say one two three")], stream=True))
    assert [line.message.content for line in lines] == ["one", " two", " three", ""]
    assert [line.done for line in lines] == [False, False, False, True]
    assert lines[-1].eval_count


def test_parallel_tools_are_called_once_before_the_answer(provider: ProviderServer) -> None:
    """Two `@call` lines make one turn with two calls, with the async client too."""

    async def run() -> list[Any]:
        async with ollama.AsyncClient(host=provider.url) as sdk:
            first = await sdk.chat(model="m", messages=[user(LOOK)])
            names = [call.function.name for call in first.message.tool_calls or ()]
            results = [{"role": "tool", "tool_name": name, "content": "ok"} for name in names]
            second = await sdk.chat(model="m", messages=[user(LOOK), first.message, *results])
        return [first.message, second.message.content]

    asked, said = asyncio.run(run())
    assert [call.function.name for call in asked.tool_calls] == ["look", "count"]
    assert asked.tool_calls[0].function.arguments == {"q": "tape"}
    assert said == "both done"


@pytest.mark.parametrize("stream", [False, True])
def test_an_error_has_ollamas_shape(stream: bool) -> None:
    """A refusal, and an error in the middle of a stream, raise the SDK's own error."""
    fault = Fault(kind="stream_error", message="out of memory", after_chunks=1)

    def ask(server: ProviderServer) -> None:
        with ollama.Client(host=server.url) as sdk:
            answer: Any = sdk.chat(model="m", messages=[user("hi")], stream=stream)
            list(answer)

    with ProviderServer([fault]) as server, pytest.raises(ollama.ResponseError) as caught:
        ask(server)
    assert "out of memory" in caught.value.error
