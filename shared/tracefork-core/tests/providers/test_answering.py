"""Generated answers decode to the text and tool calls that they were made from."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tracefork_core.errors import UsageError
from tracefork_core.providers.answering import answer

from .asked import (
    CHAT,
    EMBEDDINGS,
    EVERY_WAY,
    MESSAGES,
    RESPONSES,
    TEXT_REASONS,
    TOOL_REASONS,
    WAYS,
    Ask,
    asks,
)

TEXTS = st.text(st.characters(exclude_categories=["Cs"])) | st.sampled_from(
    ["", "\r\n\n", "data: x\n\n", "\u2028\x85\0", "\U0001f600" * 40, "a " * 2000, "[DONE]"]
)
VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | TEXTS,
    lambda child: st.lists(child, max_size=3) | st.dictionaries(TEXTS, child, max_size=3),
    max_leaves=12,
)
NAMES = st.text(st.characters(categories=["L", "N"]), min_size=1, max_size=20)
CALLS = st.lists(st.tuples(NAMES, st.dictionaries(TEXTS, VALUES, max_size=3)), max_size=3)

every_way = pytest.mark.parametrize("way", EVERY_WAY)


def payloads(body: bytes) -> list[Any]:
    """Return the JSON of each event."""
    lines = [line for line in body.decode().split("\n") if line.startswith("data: ")]
    return [json.loads(line[6:]) for line in lines if line != "data: [DONE]"]


@settings(max_examples=300, deadline=None)
@given(way=st.sampled_from(EVERY_WAY), text=st.none() | TEXTS, calls=CALLS)
def test_an_answer_decodes_to_its_text_and_calls(
    way: str, text: str | None, calls: list[tuple[str, dict[str, Any]]]
) -> None:
    """Any text and calls, in every format, whole or streamed; nothing is lost or added."""
    request = WAYS[way]
    if text is None and not calls:
        text = ""
    read = request.read(answer(request, text=text, tool_calls=calls))
    assert read.text == (text or "")
    assert [(call.name, call.arguments) for call in read.tool_calls] == calls
    assert set(read.finish_reasons) == {(TOOL_REASONS if calls else TEXT_REASONS)[read.api]}
    assert read.error is None
    assert read.stream == ("stream" in way or way in ("gemini-events", "gemini-array"))
    assert read.response_model == read.request_model
    ids = [call.id for call in read.tool_calls if call.id]
    assert len(ids) == len(set(ids))


@every_way
def test_another_text_or_call_fails_the_comparison(way: str) -> None:
    """The negative control."""
    request = WAYS[way]
    yes, no = (request.read(answer(request, text=text)) for text in ("yes", "no"))
    assert yes.text != no.text
    one, two = (
        request.read(answer(request, text=None, tool_calls=[("f", {"a": n})])) for n in (1, 2)
    )
    assert one.tool_calls[0].arguments != two.tool_calls[0].arguments


@every_way
def test_equal_answers_have_equal_bytes(way: str) -> None:
    """Ids are derived from request and answer, so they differ only if those differ."""
    request = WAYS[way]
    calls = [("f", {"a": 1}), ("f", {"a": 1})]
    first, again = (answer(request, text="yo", tool_calls=calls) for _ in range(2))
    assert first == again
    other = request.read(answer(request, text="yo!", tool_calls=calls))
    assert other.response_id != request.read(first).response_id
    elsewhere = Ask(request.url, request.body.replace(b"hi", b"ho"))
    assert elsewhere.read(answer(elsewhere, text="yo")).response_id != other.response_id


@every_way
def test_only_a_stream_has_several_chunks(way: str) -> None:
    """Each event is a chunk. A whole body is one chunk, with its length in a header."""
    request = WAYS[way]
    made = answer(request, text="a long enough text, of many words")
    streamed = request.read(made).stream
    assert (len(made.chunks) > 3) == streamed
    length = dict(made.headers).get("content-length")
    assert length == (None if streamed else str(len(made.body)))


@every_way
def test_tokens_are_counted(way: str) -> None:
    """A longer answer has more tokens. A chat stream has counts if the request asks for them."""
    request = WAYS[way]
    short, long = (request.read(answer(request, text="a" * n)).usage for n in (4, 400))
    if way in ("chat-stream", "chat-stream-choices", "azure-stream", "local-stream"):
        assert (short, long) == (None, None)
        return
    assert short is not None
    assert long is not None
    assert 0 < (short.output_tokens or 0) < (long.output_tokens or 0)
    assert short.input_tokens == long.input_tokens
    assert (short.input_tokens or 0) > 0


def test_a_chat_stream_begins_and_ends_like_openais() -> None:
    """It begins with the role, and ends with the finish reason, the usage and `[DONE]`."""
    made = answer(WAYS["chat-stream-usage"], text="yo")
    assert made.chunks[-1] == b"data: [DONE]\n\n"
    chunks = payloads(made.body)
    assert chunks[0]["choices"][0]["delta"]["role"] == "assistant"
    assert chunks[-2]["choices"][0]["finish_reason"] == "stop"
    assert chunks[-1]["choices"] == []
    assert [bool(chunk["usage"]) for chunk in chunks] == [False] * (len(chunks) - 1) + [True]


def test_an_answer_has_as_many_choices_as_requested() -> None:
    """All choices are equal."""
    read = WAYS["chat-stream-choices"].read(answer(WAYS["chat-stream-choices"], text="yo"))
    assert [message.parts for message in read.output] == [read.output[0].parts] * 3


def test_a_call_has_the_kind_of_its_tool() -> None:
    """Custom tools are called with text, built-in ones by an item; an old function alone."""
    tools = [{"type": "custom", "custom": {"name": "sql"}}]
    custom = answer(CHAT.but(tools=tools), text=None, tool_calls=[("sql", "select 1")])
    call = json.loads(custom.body)["choices"][0]["message"]["tool_calls"][0]
    assert (call["type"], call["custom"]) == ("custom", {"name": "sql", "input": "select 1"})
    offered = [{"type": "custom", "name": "sql"}, {"type": "local_shell"}]
    calls: list[Any] = [("sql", "select 1"), ("local_shell", {"command": ["ls"]})]
    items = json.loads(answer(RESPONSES.but(tools=offered), text=None, tool_calls=calls).body)[
        "output"
    ]
    assert [item["type"] for item in items] == ["custom_tool_call", "local_shell_call"]
    assert (items[0]["input"], items[1]["action"]) == ("select 1", {"command": ["ls"]})
    old = answer(CHAT.but(functions=[{"name": "f"}]), text=None, tool_calls=[("f", {})])
    choice = json.loads(old.body)["choices"][0]
    assert choice["message"]["function_call"] == {"name": "f", "arguments": "{}"}
    assert choice["finish_reason"] == "function_call"


def test_a_call_forced_by_name_finishes_with_stop() -> None:
    """If the model chose the tool itself, OpenAI's finish reason is `tool_calls`."""
    named = {"type": "function", "function": {"name": "f"}}
    for choice, reason in ((named, "stop"), ("required", "tool_calls")):
        request = CHAT.but(tool_choice=choice)
        read = request.read(answer(request, text=None, tool_calls=[("f", {})]))
        assert read.finish_reasons == (reason,)


def test_arguments_may_be_invalid_json_where_they_are_text() -> None:
    """OpenAI's formats send arguments as text. The other formats need an object."""
    for way in ("chat", "chat-stream", "responses", "responses-stream"):
        request = WAYS[way]
        read = request.read(answer(request, text=None, tool_calls=[("f", '{"a": ')]))
        assert read.tool_calls[0].arguments == '{"a": '
    for way in ("messages", "gemini"):
        with pytest.raises(UsageError, match="'f'"):
            answer(WAYS[way], text=None, tool_calls=[("f", '{"a": ')])


def test_a_call_for_gemini_has_a_placeholder_signature() -> None:
    """Models that demand a signature get it on the first call of a step."""
    calls: list[Any] = [("f", {}), ("g", {})]
    new = json.loads(answer(WAYS["gemini"], text=None, tool_calls=calls).body)
    parts = new["candidates"][0]["content"]["parts"]
    assert ["thoughtSignature" in part for part in parts] == [True, False]
    old = Ask(WAYS["gemini"].url.replace("gemini-3", "gemini-2.5"), WAYS["gemini"].body)
    assert b"Signature" not in answer(old, text=None, tool_calls=calls).body


def nested(depth: int) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for _ in range(depth):
        found = {"a": found}
    return found


@pytest.mark.parametrize(
    ("request_", "said", "why"),
    [
        (CHAT, {"text": None}, "a text .* or a tool call"),
        (CHAT, {"text": "a\ud800"}, "half of a surrogate pair"),
        (MESSAGES.but(stream=True), {"text": "\udc00"}, "half of a surrogate pair"),
        (CHAT, {"text": None, "tool_calls": [("f\ud800", {})]}, "half of a surrogate pair"),
        (CHAT, {"text": None, "tool_calls": [("f", {"a": ["\ud800"]})]}, "half of a surrogate"),
        (CHAT, {"text": None, "tool_calls": [("f", {"a": float("nan")})]}, "as JSON"),
        (CHAT, {"text": None, "tool_calls": [("f", {"a": object()})]}, "as JSON"),
        (CHAT, {"text": None, "tool_calls": [("f", nested(120))]}, "deep"),
        (CHAT, {"text": None, "tool_calls": [("f", nested(100_000))]}, "as JSON"),
        (CHAT, {"text": None, "tool_calls": [("", {})]}, "name"),
        (EMBEDDINGS, {"text": "a"}, "embeddings"),
        (asks("https://x.example/mail?key=s3cret", a=1), {"text": "a"}, "x.example/mail is not a"),
    ],
)
def test_an_impossible_answer_is_refused(request_: Ask, said: dict[str, Any], why: str) -> None:
    """The message says why, and does not contain the query of the URL."""
    with pytest.raises(UsageError, match=why) as refused:
        answer(request_, **said)
    assert "s3cret" not in str(refused.value)


@every_way
def test_arguments_of_the_maximum_depth_are_read_back(way: str) -> None:
    """The deepest arguments that are not refused survive every format."""
    deepest = nested(115)
    read = WAYS[way].read(answer(WAYS[way], text=None, tool_calls=[("f", deepest)]))
    assert read.tool_calls[0].arguments == deepest
