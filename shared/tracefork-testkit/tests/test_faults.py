"""Each kind of fault raises the expected exception in a real client."""

from __future__ import annotations

import json
import ssl
from collections.abc import Callable
from typing import Any

import anthropic
import httpx
import httpx2
import openai
import pytest

from tracefork_testkit import Fault, ProviderServer, Reply

LONG = Reply("one two three four five six seven eight")


Chat = Callable[..., list[str | None]]
AnthropicAt = Callable[[ProviderServer], anthropic.Anthropic]
ASK: Any = {"model": "m", "max_tokens": 8, "messages": [{"role": "user", "content": "hi"}]}
CONTEXT = ssl.create_default_context()


@pytest.fixture
def chat(openai_at: Callable[[ProviderServer], openai.OpenAI]) -> Chat:
    def chat(server: ProviderServer, stream: bool = False, timeout: float = 30) -> list[str | None]:
        create = openai_at(server).with_options(timeout=timeout).chat.completions.create
        if not stream:
            return [create(**ASK).choices[0].message.content]
        return [chunk.choices[0].delta.content for chunk in create(**ASK, stream=True)]

    return chat


def raw(server: ProviderServer, lib: Any, stream: bool) -> tuple[list[bytes], Exception]:
    """Read a chat answer with a bare client; return what came and the error that ended it."""
    body = {**ASK, "stream": stream}
    got: list[bytes] = []
    url = f"{server.url}/v1/chat/completions"
    try:
        with lib.Client(verify=CONTEXT) as client, client.stream("POST", url, json=body) as answer:
            for chunk in answer.iter_raw():
                got.append(chunk)  # noqa: PERF402 - what came before the error counts
    except lib.TransportError as error:
        return got, error
    raise AssertionError(f"expected a transport error, read {got}")


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (400, openai.BadRequestError),
        (401, openai.AuthenticationError),
        (429, openai.RateLimitError),
        (500, openai.InternalServerError),
        (503, openai.InternalServerError),
    ],
)
def test_a_status_fault_raises_the_exception_of_the_sdk(
    chat: Chat, status: int, kind: type[Exception]
) -> None:
    """The error has OpenAI's body and the headers of the fault."""
    fault = Fault(status=status, headers={"retry-after-ms": "1"}, message="by script")
    with ProviderServer([fault]) as server, pytest.raises(kind, match="by script") as caught:
        chat(server)
    assert isinstance(caught.value, openai.APIStatusError)
    assert caught.value.response.headers["retry-after-ms"] == "1"


def test_status_529_is_anthropics_overload_error(anthropic_at: AnthropicAt) -> None:
    """Status 529 arrives as overloaded_error."""
    with (
        ProviderServer([Fault(status=529)]) as server,
        pytest.raises(anthropic.APIStatusError) as caught,
    ):
        anthropic_at(server).messages.create(**ASK)
    assert caught.value.status_code == 529
    assert caught.value.type == "overloaded_error"


def test_a_timeout_ends_when_the_client_gives_up(chat: Chat) -> None:
    """The server sends nothing until the client's own timeout expires."""
    with ProviderServer([Fault(kind="timeout")]) as server:
        with pytest.raises(openai.APITimeoutError):
            chat(server, timeout=0.2)
        assert len(server.requests) == 1


@pytest.mark.parametrize("lib", [httpx, httpx2])
@pytest.mark.parametrize("stream", [False, True])
def test_a_reset_before_the_head_is_a_read_error(lib: Any, stream: bool) -> None:
    """An RST before the first byte raises ReadError."""
    with ProviderServer([Fault(kind="reset")]) as server:
        got, error = raw(server, lib, stream)
    assert got == []
    assert isinstance(error, lib.ReadError)


@pytest.mark.parametrize("lib", [httpx, httpx2])
def test_a_reset_mid_stream_comes_after_the_events(lib: Any) -> None:
    """The events before the RST arrive whole, and then ReadError is raised."""
    with ProviderServer([Fault(kind="reset", after_chunks=3, reply=LONG)]) as server:
        got, error = raw(server, lib, stream=True)
    assert b"".join(got).count(b"\n\n") == 3
    assert isinstance(error, lib.ReadError)


@pytest.mark.parametrize("lib", [httpx, httpx2])
@pytest.mark.parametrize("stream", [False, True])
def test_a_truncated_answer_is_a_protocol_error(lib: Any, stream: bool) -> None:
    """An orderly close before the end raises RemoteProtocolError, for JSON and for a stream."""
    with ProviderServer([Fault(kind="truncate", after_chunks=2, reply=LONG)]) as server:
        got, error = raw(server, lib, stream)
    body = b"".join(got)
    assert body.count(b"\n\n") == 2 if stream else len(body) == 128
    assert isinstance(error, lib.RemoteProtocolError)


def test_bad_framing_is_a_protocol_error() -> None:
    """An invalid chunk size breaks the connection, not the JSON parser."""
    with ProviderServer([Fault(kind="misframed")]) as server:
        assert isinstance(raw(server, httpx2, stream=True)[1], httpx2.RemoteProtocolError)


@pytest.mark.parametrize("stream", [False, True])
def test_malformed_json_is_a_decode_error(chat: Chat, stream: bool) -> None:
    """Valid HTTP around broken JSON reaches the SDK's decoder."""
    with (
        ProviderServer([Fault(kind="malformed")]) as server,
        pytest.raises((json.JSONDecodeError, openai.APIResponseValidationError)),
    ):
        chat(server, stream)


def test_an_error_event_ends_a_stream(chat: Chat) -> None:
    """The provider's error event in a stream raises the SDK's APIError."""
    fault = Fault(kind="stream_error", after_chunks=2, message="overloaded by script", reply=LONG)
    with (
        ProviderServer([fault]) as server,
        pytest.raises(openai.APIError, match="overloaded by script"),
    ):
        chat(server, stream=True)


def test_anthropics_error_event_is_a_status_error(anthropic_at: AnthropicAt) -> None:
    """Anthropic's `event: error` raises in the middle of a message stream."""
    fault = Fault(kind="stream_error", after_chunks=3, reply=LONG)
    with (
        ProviderServer([fault]) as server,
        pytest.raises(anthropic.APIStatusError, match="overloaded"),
        anthropic_at(server).messages.stream(**ASK) as stream,
    ):
        stream.until_done()


def test_without_a_fault_there_is_no_error(chat: Chat) -> None:
    """The negative control: the same clients read the same reply completely."""
    with ProviderServer([LONG, LONG]) as server:
        assert chat(server) == [LONG.text]
        assert "".join(filter(None, chat(server, stream=True))) == LONG.text
