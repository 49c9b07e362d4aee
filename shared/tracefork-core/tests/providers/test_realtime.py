"""Messages of realtime sessions are read as model calls where a model was asked or has answered."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tracefork_core.providers import ModelCall, ToolCallPart, ToolCallResponsePart
from tracefork_core.providers.decode import decode, is_model_call, is_session_message
from tracefork_core.seams.websockets.messages import Message, encoded

OPENAI = "wss://api.openai.com/v1/realtime?model=gpt-realtime"
AZURE = "wss://desk.openai.azure.com/openai/realtime?deployment=voice"
GEMINI = (
    "wss://generativelanguage.googleapis.com/ws/google.ai.generativelanguage.v1beta"
    ".GenerativeService.BidiGenerateContentConstrained"
)
STREAM = (("content-type", "text/event-stream"),)
CALL = {"type": "function_call", "id": "item_1", "call_id": "call_1", "name": "find"}
CALL["arguments"] = '{"order": 17}'
SPOKEN = {"type": "message", "id": "item_2", "role": "assistant"}
AUDIO = {**SPOKEN, "content": [{"type": "output_audio", "transcript": "Hello!"}]}
USAGE = {"input_tokens": 5, "output_tokens": 7, "input_token_details": {"cached_tokens": 2}}


def read(url: str, asked: dict[str, Any], *events: dict[str, Any]) -> ModelCall | None:
    """Read a message and what the server sent next."""
    body = b"".join(encoded(Message(json.dumps(event).encode())) for event in events)
    return decode("SEND", url, (), json.dumps(asked).encode(), 200, STREAM, body)


def done(*items: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the events that end a response with these items."""
    ended = [{"type": "response.output_item.done", "item": item} for item in items]
    return [*ended, {"type": "response.done", "response": {"output": items, "usage": USAGE}}]


@pytest.mark.parametrize(("url", "model"), [(OPENAI, "gpt-realtime"), (AZURE, "voice")])
def test_an_answer_of_the_realtime_api_is_read(url: str, model: str) -> None:
    """Its model, its words, the call of a tool and its usage."""
    call = read(url, {"type": "response.create"}, *done(AUDIO, CALL))
    assert call is not None
    assert (call.api, call.request_model) == ("openai.realtime", model)
    spoken, called = call.output[0].parts
    assert getattr(spoken, "content", None) == "Hello!"
    assert called == ToolCallPart("call_1", "find", {"order": 17})
    assert call.usage is not None
    assert (call.usage.input_tokens, call.usage.cache_read_input_tokens) == (5, 2)


def test_a_model_that_answers_by_itself_is_read() -> None:
    """It heard that the user stopped speaking; the message is the last piece of audio."""
    call = read(OPENAI, {"type": "input_audio_buffer.append", "audio": "AAAA"}, *done(AUDIO))
    assert call is not None
    assert [getattr(part, "content", None) for part in call.output[0].parts] == ["Hello!"]


def test_an_answer_that_only_ends_with_a_message_is_not_shown_twice() -> None:
    """The call of the tool came before, and is with that message; its usage is here."""
    ending = {"type": "response.done", "response": {"output": [CALL], "usage": USAGE}}
    call = read(OPENAI, {"type": "conversation.item.create", "item": {}}, ending)
    assert call is not None
    assert (call.output, call.usage and call.usage.output_tokens) == ((), 7)


def test_a_turn_of_gemini_live_is_read() -> None:
    """What is said aloud, the call of a tool, and the result that is sent back."""
    turns = [{"role": "user", "parts": [{"text": "Where?"}]}]
    called = {"id": "1", "name": "find", "args": {"order": 17}}
    call = read(
        GEMINI,
        {"client_content": {"turns": turns, "turnComplete": True}},
        {"serverContent": {"outputTranscription": {"text": "One "}}},
        {"serverContent": {"outputTranscription": {"text": "moment."}}},
        {"toolCall": {"functionCalls": [called]}},
        {"serverContent": {"turnComplete": True}, "usageMetadata": {"promptTokenCount": 9}},
    )
    assert call is not None
    assert getattr(call.input[0].parts[0], "content", None) == "Where?"
    assert getattr(call.output[0].parts[0], "content", None) == "One moment."
    assert call.output[0].parts[1] == ToolCallPart("1", "find", {"order": 17})
    assert (call.usage and call.usage.input_tokens) == 9
    result = {"functionResponses": [{"id": "1", "name": "find", "response": {"at": "Oslo"}}]}
    back = read(GEMINI, {"tool_response": result})
    assert back is not None
    assert back.input[0].parts == (ToolCallResponsePart("1", {"at": "Oslo"}),)


@pytest.mark.parametrize(
    ("url", "message"),
    [
        (OPENAI, {"type": "session.update"}),
        (OPENAI, {"type": "conversation.item.create"}),
        (GEMINI, {"setup": {}}),
        (GEMINI, {"client_content": {"turnComplete": False}}),
    ],
)
def test_settings_ask_no_model(url: str, message: dict[str, Any]) -> None:
    """They belong to the session, so that a fork may send them."""
    body = json.dumps(message).encode()
    assert not is_model_call("SEND", url, (), body)
    assert is_session_message(url, (), body)
    assert not is_session_message("wss://shop.example/orders", (), body)


@given(st.binary(max_size=200), st.binary(max_size=200))
def test_reading_never_raises(asked: bytes, answered: bytes) -> None:
    """A tape may hold anything."""
    for url in (OPENAI, GEMINI):
        decode("SEND", url, (), asked, 200, STREAM, answered)
        decode("SEND", url, (), b'{"type":"response.create"}', 200, STREAM, b"data: " + answered)
