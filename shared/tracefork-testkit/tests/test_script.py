"""Scripts: sequences, callables, directives and holds."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import Any

import httpx2
import openai
import pytest

from tracefork_testkit import Fault, Hold, ModelRequest, ProviderServer, Reply

Ask = Callable[..., str | None]


@pytest.fixture
def ask(openai_at: Callable[[ProviderServer], openai.OpenAI]) -> Ask:
    def ask(server: ProviderServer, text: str = "hi", retries: int = 0) -> Any:
        sdk = openai_at(server).with_options(max_retries=retries)
        answer = sdk.chat.completions.create(
            model="gpt-5", messages=[{"role": "user", "content": text}]
        )
        return answer.choices[0].message.content

    return ask


def test_a_sequence_answers_in_order_and_then_refuses(ask: Ask) -> None:
    """The third request gets a 500 that explains the error and is not retried."""
    with ProviderServer([Reply("one"), Reply("two")]) as server:
        assert [ask(server), ask(server)] == ["one", "two"]
        with pytest.raises(openai.InternalServerError, match="2 answers"):
            ask(server, retries=2)
        assert len(server.requests) == 3


def test_the_client_gets_the_error_of_a_script(ask: Ask) -> None:
    """An exception in the script becomes a 500 with its text."""

    def script(request: ModelRequest) -> Reply:
        raise LookupError(f"no answer for {request.last_user_text}")

    with (
        ProviderServer(script) as server,
        pytest.raises(openai.InternalServerError, match="LookupError: no answer for hi"),
    ):
        ask(server)


def test_a_script_may_be_async(ask: Ask) -> None:
    """The server awaits it without blocking other requests."""
    gate = threading.Event()

    async def script(request: ModelRequest) -> Reply:
        if request.last_user_text == "slow":
            await asyncio.to_thread(gate.wait)
        else:
            gate.set()
        return Reply(request.last_user_text)

    with ProviderServer(script) as server:
        slow: list[str | None] = []
        waiting = threading.Thread(target=lambda: slow.append(ask(server, "slow")))
        waiting.start()
        assert ask(server, "fast") == "fast"
        waiting.join()
    assert slow == ["slow"]


def test_a_hold_stops_a_stream_until_it_is_released(
    openai_at: Callable[[ProviderServer], openai.OpenAI],
) -> None:
    """The client has the first event while the server holds the second."""
    hold = Hold(after_chunks=2)
    with ProviderServer([Reply("one two three", hold=hold)]) as server:
        stream = openai_at(server).chat.completions.create(
            model="gpt-5", messages=[{"role": "user", "content": "hi"}], stream=True
        )
        said = [next(stream).choices[0].delta.content, next(stream).choices[0].delta.content]
        assert hold.reached.wait(5)
        assert said == ["", "one"]
        hold.release()
        rest = [chunk.choices[0].delta.content for chunk in stream]
    assert rest == [" two", " three", None]


def _read(url: str, body: dict[str, object], got: list[bytes]) -> None:
    with httpx2.stream("POST", url, json=body, timeout=0.2) as answer:
        for chunk in answer.iter_raw():
            got.append(chunk)  # noqa: PERF402 - what came before the error counts


@pytest.mark.parametrize("after", [0, 3])
def test_a_held_answer_is_silent(after: int) -> None:
    """A reader times out before the next event."""
    hold = Hold(after_chunks=after)
    body = {"model": "m", "messages": [{"role": "user", "content": "hi"}], "stream": True}
    got: list[bytes] = []
    with ProviderServer([Reply("one two three", hold=hold)]) as server:
        url = f"{server.url}/v1/chat/completions"
        with pytest.raises(httpx2.ReadTimeout):
            _read(url, body, got)
    assert b"".join(got).count(b"\n\n") == after


def test_a_fault_directive_counts_attempts_at_the_same_bytes(
    provider: ProviderServer, ask: Ask
) -> None:
    """`@fail 429 2` fails twice, and the SDK's second retry succeeds."""
    assert ask(provider, "@fail 429 2\n@say at last", retries=2) == "at last"
    assert len(provider.requests) == 3


def test_directives_are_found_after_a_frameworks_text(provider: ProviderServer, ask: Ask) -> None:
    """Directives also work inside a line; an e-mail address is not one."""
    assert ask(provider, "Current task: @say hello") == "hello"
    assert ask(provider, "write to me@say.example") != ".example"


def test_a_fault_in_a_sequence_answers_times_requests(ask: Ask) -> None:
    """`times=2` answers two requests before the next outcome."""
    fault = Fault(status=503, headers={"retry-after-ms": "1"}, times=2)
    with ProviderServer([fault, Reply("up again")]) as server:
        assert ask(server, retries=2) == "up again"
        assert len(server.requests) == 3


def test_a_request_that_does_not_fit_the_api_is_a_400(provider: ProviderServer) -> None:
    """The error has the provider's own shape."""
    url = f"{provider.url}/v1/chat/completions"
    for body in (b"not json", b"[]", b'{"messages": 3}'):
        answer = httpx2.post(url, content=body)
        assert answer.status_code == 400
        assert set(answer.json()["error"]) >= {"message", "type"}


def test_the_url_of_a_stopped_server_is_an_error() -> None:
    """The error names the remedy."""
    with pytest.raises(RuntimeError, match="use it in a `with` block"):
        _ = ProviderServer().url
