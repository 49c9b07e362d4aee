"""Edited requests: each change in every wire format, and no other change with it."""

from __future__ import annotations

from typing import Any

import pytest

from tracefork_core.errors import UsageError
from tracefork_core.providers import Answer, BlobPart, Message, ModelCall, TextPart
from tracefork_core.providers.asking import edit

from .asked import AZURE, CHAT, CONTENTS, EMBEDDINGS, GEMINI, MESSAGES, RESPONSES, WAYS, Ask, asks

NOTHING = Answer(200, (), (b"{}",))


def edited(request: Ask, **changes: Any) -> Ask:
    return Ask(*edit(request, **changes))


def reading(request: Ask, **changes: Any) -> ModelCall:
    """Decode a request after these changes."""
    request = edited(request, **changes)
    return request.read(NOTHING)


@pytest.mark.parametrize("way", sorted(WAYS))
def test_model_and_temperature_are_changed_in_their_own_place(way: str) -> None:
    """The model is in the body, the path or the deployment; nothing else changes."""
    request = WAYS[way]
    before, after = request.read(NOTHING), reading(request, model="new-1", temperature=0.25)
    assert after.request_model == "new-1" != before.request_model
    assert after.parameters == before.parameters | {"temperature": 0.25}
    assert (after.input, after.api, after.provider) == (before.input, before.api, before.provider)
    assert edited(request).json == request.json


def test_a_new_model_in_the_path_keeps_the_rest_of_it() -> None:
    """Method, query and project stay; characters are quoted where needed."""
    url, _ = edit(WAYS["gemini-events"], model="models/new 1")
    assert url.endswith("/v1beta/models/new%201:streamGenerateContent?alt=sse")
    escaped = Ask(GEMINI.url.replace(":generate", "%3Agenerate"), GEMINI.body)
    assert edit(escaped, model="new")[0].endswith("/v1beta/models/new%3AgenerateContent")
    url, body = edit(AZURE, model="other")
    assert url == AZURE.url.replace("my-gpt", "other")
    assert "model" not in Ask(url, body).json
    url, body = edit(WAYS["messages-vertex"], model="c@2")
    assert url == WAYS["messages-vertex"].url.replace("c@1", "c@2")
    counted = GEMINI.url.replace("generateContent", "countTokens")
    counting = asks(counted, generateContentRequest={"model": "models/old", "contents": CONTENTS})
    inner = edited(counting, model="new", temperature=1).json["generateContentRequest"]
    assert inner["model"] == "models/new"
    assert inner["generationConfig"] == {"temperature": 1}
    own = asks(GEMINI.url.replace("models/gemini-3-pro", "endpoints/77"), contents=CONTENTS)
    with pytest.raises(UsageError, match="endpoints/77"):
        edit(own, model="new")


INSTRUCTED = [
    CHAT.but(messages=[{"role": "developer", "content": "old"}, *CHAT.json["messages"]]),
    RESPONSES.but(instructions="old"),
    RESPONSES.but(input=[{"role": "system", "content": "old"}, {"role": "user", "content": "hi"}]),
    MESSAGES.but(system="old"),
    MESSAGES.but(system=[{"type": "text", "text": "old", "cache_control": {"type": "ephemeral"}}]),
    GEMINI.but(systemInstruction={"parts": [{"text": "old"}]}),
    GEMINI.but(system_instruction={"parts": [{"text": "old"}]}),
]


@pytest.mark.parametrize("request_", [*INSTRUCTED, CHAT, RESPONSES, MESSAGES, GEMINI])
def test_a_system_prompt_is_replaced_or_added(request_: Ask) -> None:
    """There is exactly one afterwards, and the history stays."""
    before, after = request_.read(NOTHING), reading(request_, system="new")
    leading = [message for message in after.input if message.role in ("system", "developer")]
    said = after.system or leading[0].parts
    assert said == (TextPart("new"),)
    assert len(leading) + len(after.system) == 1
    assert "old" not in str(after)
    assert after.input[-1] == before.input[-1]


def test_a_new_system_prompt_keeps_its_cache_mark() -> None:
    """A developer message keeps its role, and a cached prompt its mark."""
    assert edited(INSTRUCTED[0], system="new").json["messages"][0]["role"] == "developer"
    assert edited(INSTRUCTED[4], system="new").json["system"] == [
        {"type": "text", "text": "new", "cache_control": {"type": "ephemeral"}}
    ]


IMAGE: dict[str, Any] = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}
SEEN: dict[str, Any] = {"type": "input_image", "image_url": "data:image/png;base64,AAAA"}
SOURCE: dict[str, Any] = {
    "type": "image",
    "source": {"type": "base64", "media_type": "image/png", "data": "AAAA"},
}
INLINE: dict[str, Any] = {"inlineData": {"mimeType": "image/png", "data": "AAAA"}}


def conversation(image: Any, kind: str, reply: Any, last: Any) -> list[Any]:
    content = [{"type": kind, "text": "one"}, image, {"type": kind, "text": "two"}]
    first = {"role": "user", "content": "first"}
    return [first, {"role": "user", "content": content}, reply, last]


ANSWER = {"type": "tool_result", "tool_use_id": "t1", "content": "7"}
CALL = {"type": "tool_use", "id": "t1", "name": "f", "input": {}}
LONG = {
    "chat": CHAT.but(
        messages=conversation(
            IMAGE,
            "text",
            {"role": "assistant", "tool_calls": [{"id": "t1", "function": {"name": "f"}}]},
            {"role": "tool", "tool_call_id": "t1", "content": "7"},
        )
    ),
    "responses": RESPONSES.but(
        input=conversation(
            SEEN,
            "input_text",
            {"type": "function_call", "call_id": "t1", "name": "f", "arguments": "{}"},
            {"type": "function_call_output", "call_id": "t1", "output": "7"},
        )
    ),
    "messages": MESSAGES.but(
        messages=conversation(
            SOURCE,
            "text",
            {"role": "assistant", "content": [CALL]},
            {"role": "user", "content": [ANSWER]},
        )
    ),
    "gemini": GEMINI.but(
        contents=[
            {"parts": [{"text": "first"}]},
            {"role": "user", "parts": [{"text": "one"}, INLINE, {"text": "two"}]},
            {"role": "model", "parts": [{"functionCall": {"name": "f", "args": {}}}]},
            {"role": "user", "parts": [{"functionResponse": {"name": "f", "response": {}}}]},
        ]
    ),
}


@pytest.mark.parametrize("wire", LONG)
def test_the_last_text_of_the_user_is_replaced(wire: str) -> None:
    """All text of the last message that has any; attachments and other messages stay."""
    before, after = LONG[wire].read(NOTHING), reading(LONG[wire], prompt="new")
    image = BlobPart("image", "image/png", "AAAA")
    assert after.input[1] == Message("user", (image, TextPart("new")))
    assert (after.input[0], after.input[2:]) == (before.input[0], before.input[2:])


def test_an_input_of_a_single_string_is_replaced() -> None:
    """A request may hold one string in place of messages."""
    assert edited(RESPONSES, prompt="new").json["input"] == "new"
    with pytest.raises(UsageError, match="'messages'"):
        edit(CHAT.but(messages=[{"role": "system", "content": "x"}]), prompt="new")


def test_any_value_can_be_set_by_its_pointer() -> None:
    """Values are replaced, new fields added, `-` appends, and escapes are decoded."""
    request = CHAT.but(metadata={"a/b": 1, "c~d": 2})
    changed = edited(
        request,
        set={
            "/messages/0/content": "ho",
            "/messages/-": {"role": "user", "content": "more"},
            "/metadata/a~1b": None,
            "/metadata/c~0d": [1, {"x": 2.5}],
            "/top_p": 0.5,
        },
    ).json
    assert [message["content"] for message in changed["messages"]] == ["ho", "more"]
    assert changed["metadata"] == {"a/b": None, "c~d": [1, {"x": 2.5}]}
    assert changed["top_p"] == 0.5


@pytest.mark.parametrize(
    ("request_", "change", "why"),
    [
        (CHAT, {"set": {"messages": 1}}, "'messages'"),
        (CHAT, {"set": {"": 1}}, "''"),
        (CHAT, {"set": {"/nothing/here": 1}}, "/nothing .*'model', 'messages'"),
        (CHAT, {"set": {"/messages/1/content": 1}}, r"has no /messages/1 \(the array has 1"),
        (CHAT, {"set": {"/messages/01": 1}}, "messages/01"),
        (CHAT, {"set": {"/messages/-1": 1}}, "messages/-1"),
        (CHAT, {"set": {"/model/x": 1}}, "neither an object nor an array"),
        (CHAT, {"set": {"/x": float("nan")}}, "as JSON"),
        (CHAT, {"prompt": "\ud800"}, "half of a surrogate pair"),
        (EMBEDDINGS, {"temperature": 1.0}, "'temperature'"),
        (EMBEDDINGS, {"tools": []}, "'tools'"),
        (asks("https://x.example/mail?key=s3cret", a=1), {"model": "m"}, "x.example/mail is not"),
        (Ask(CHAT.url, b"\xff"), {"model": "m"}, "chat/completions"),
        (Ask(CHAT.url, CHAT.body, (("Content-Encoding", "gzip"),)), {"model": "m"}, "compressed"),
    ],
)
def test_a_change_that_the_request_cannot_express_is_refused(
    request_: Ask, change: dict[str, Any], why: str
) -> None:
    """The message says which change, and what the request has."""
    with pytest.raises(UsageError) as refused:
        edit(request_, **change)
    assert "s3cret" not in str(refused.value)


def test_the_model_of_an_embeddings_request_can_be_changed() -> None:
    """Values can be set too, as in any request."""
    changed = edited(EMBEDDINGS, model="e2", set={"/input": "ho"}).json
    assert (changed["model"], changed["input"]) == ("e2", "ho")
    one = {"model": "models/old", "content": {"parts": [{"text": "hi"}]}}
    batch = asks(GEMINI.url.replace("generateContent", "batchEmbedContents"), requests=[one, one])
    assert edited(batch, model="new").json["requests"] == [one | {"model": "models/new"}] * 2
