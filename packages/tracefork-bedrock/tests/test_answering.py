"""Answers that a fork gives are valid: boto3's own parser reads them."""

from __future__ import annotations

import json
from typing import Any

import pytest
from botocore.exceptions import ClientError, EventStreamError

from tracefork_bedrock.formats.wire_format import FORMAT
from tracefork_core import UsageError
from tracefork_core.adapters.formats import Answer, ModelCall, Wanted

from .test_reading import CONVERSE, CONVERSED, CONVERSED_IN_PIECES, HI
from .test_reading_makers import INVOKED, PIECES
from .wire import Asked, answered, asked, by_boto3, chunked, of_model, read, streamed

CALLS = (("look", {"q": "ü", "deep": [1, {"a": None}]}),)
TALKING = [case for case in INVOKED if case[0] != "bedrock.text"]


def fork(wanted: Wanted, recorded: Answer | None = None) -> Any:
    """Return what answers a request in a fork."""
    return lambda request: FORMAT.encode(request, wanted, recorded)


@pytest.mark.parametrize("recorded", [None, answered(CONVERSED)], ids=["new", "recorded"])
def test_converse_is_answered_with_a_text_and_calls(recorded: Answer | None) -> None:
    """A recorded answer gives its thoughts and the ids of its calls to the new one."""
    arguments = {"modelId": "amazon.nova-lite-v1:0", "messages": HI}
    wanted = Wanted("Hello", CALLS)
    request, result = by_boto3("converse", arguments, fork(wanted, recorded))
    *_, text, tool = result["output"]["message"]["content"]
    assert text == {"text": "Hello"}
    assert (tool["toolUse"]["name"], tool["toolUse"]["input"]) == CALLS[0]
    assert result["stopReason"] == "tool_use"
    assert result["usage"]["inputTokens"] > 0
    if recorded is not None:
        assert tool["toolUse"]["toolUseId"] == "t2"
        assert "reasoningContent" in str(result["output"]["message"]["content"][0])
    assert FORMAT.encode(request, wanted, recorded) == FORMAT.encode(request, wanted, recorded)


@pytest.mark.parametrize("recorded", [None, streamed(CONVERSED_IN_PIECES)], ids=["new", "recorded"])
def test_a_stream_of_converse_is_answered_in_frames(recorded: Answer | None) -> None:
    """boto3 checks the checksums of each frame, and reads each as an event that it knows."""
    arguments = {"modelId": "amazon.nova-lite-v1:0", "messages": HI}
    wanted = Wanted("Hello, Zürich! How are you?", CALLS)
    _, result = by_boto3("converse_stream", arguments, fork(wanted, recorded))
    events = result["stream"]
    assert [name for event in events for name in event][0::100] == ["messageStart"]
    # boto3 of 2024 does not know the thoughts that the recorded answer has.
    assert recorded is not None or "SDK_UNKNOWN_MEMBER" not in str(events)
    call = read(of_model("converse-stream", CONVERSE), streamed(events))
    assert call.text == wanted.text
    assert [(tool.name, tool.arguments) for tool in call.tool_calls] == [*CALLS]
    assert call.finish_reasons == ("tool_use",)
    assert call.usage is not None


@pytest.mark.parametrize(("api", "model", "body", "document"), INVOKED, ids=lambda v: str(v)[:22])
@pytest.mark.parametrize("has_recorded", [False, True])
def test_each_maker_is_answered_in_its_own_form(
    api: str, model: str, body: Any, document: Any, has_recorded: bool
) -> None:
    """What was said comes back, and what the recorded answer said about itself is kept."""
    recorded = answered(document | {"more": 1}) if has_recorded else None
    wanted = Wanted("Bye, Zürich")
    arguments = {"modelId": model, "body": json.dumps(body)}
    request, result = by_boto3("invoke_model", arguments, fork(wanted, recorded))
    told = json.loads(result["body"])
    call = read(request, answered(told))
    assert (call.api, call.text) == (api, wanted.text)
    assert call.finish_reasons
    assert ("more" in told) == has_recorded


@pytest.mark.parametrize(("api", "model", "body", "document"), TALKING, ids=lambda v: str(v)[:22])
@pytest.mark.parametrize("streams", [False, True])
def test_a_model_that_talks_can_be_made_to_call_tools(
    api: str, model: str, body: Any, document: Any, streams: bool
) -> None:
    """In the whole answer and in the frames of a stream."""
    verb = "invoke-with-response-stream" if streams else "invoke"
    request = of_model(verb, body, model)
    call = read(request, FORMAT.encode(request, Wanted("Look:", CALLS), None))
    assert call.text == "Look:"
    assert [(tool.name, tool.arguments) for tool in call.tool_calls] == [*CALLS]


@pytest.mark.parametrize(("model", "body", "events"), PIECES, ids=lambda v: str(v)[:20])
@pytest.mark.parametrize("has_recorded", [False, True])
def test_each_makers_stream_is_answered_in_frames(
    model: str, body: Any, events: Any, has_recorded: bool
) -> None:
    """Clients look for the token counts in the last event."""
    wanted = Wanted("Bye, Zürich. Until the day after tomorrow.")
    arguments = {"modelId": model, "body": json.dumps(body)}
    recorded = chunked(events) if has_recorded else None
    request, result = by_boto3(
        "invoke_model_with_response_stream", arguments, fork(wanted, recorded)
    )
    told = [json.loads(event["chunk"]["bytes"]) for event in result["body"]]
    call = read(request, chunked(told))
    assert call.text == wanted.text
    assert call.finish_reasons
    assert told[-1]["amazon-bedrock-invocationMetrics"]["outputTokenCount"] > 0


@pytest.mark.parametrize("verb", ["converse", "converse-stream"])
def test_a_whole_document_is_an_answer(verb: str) -> None:
    """From a file, say: as it is, or as the events of a stream."""
    request = of_model(verb, CONVERSE)
    made = FORMAT.encode(request, Wanted(document=CONVERSED, has_document=True), None)
    call = read(request, made)
    assert call.tool_calls[0].arguments == {"q": "ü"}
    assert (len(made.chunks) == 1) == (verb == "converse")


@pytest.mark.parametrize(
    ("error", "status"),
    [("ThrottlingException", 429), ("ModelTimeoutException", 408), ("ValidationException", 400)],
)
@pytest.mark.parametrize("operation", ["converse", "converse_stream"])
def test_an_error_is_the_exception_of_that_name(error: str, status: int, operation: str) -> None:
    """boto3 makes the class of an exception from the name: agents catch that class."""
    assert FORMAT.status_of(error) == status
    wanted = Wanted("slow down", status=status, error=error)
    with pytest.raises(ClientError, match="slow down") as caught:
        by_boto3(operation, {"modelId": "m.x", "messages": HI}, fork(wanted))
    assert type(caught.value).__name__ == error
    assert caught.value.response["ResponseMetadata"]["HTTPStatusCode"] == status


@pytest.mark.parametrize(
    ("status", "error"), [(429, "ThrottlingException"), (500, "InternalServerException")]
)
def test_a_status_alone_gets_the_name_that_goes_with_it(status: int, error: str) -> None:
    """`--fail 429` is enough."""
    wanted = Wanted("injected", status=status)
    with pytest.raises(ClientError) as caught:
        by_boto3("converse", {"modelId": "m.x", "messages": HI}, fork(wanted))
    assert type(caught.value).__name__ == error


def test_an_error_of_a_stream_comes_in_the_middle_of_it() -> None:
    """Its name begins with a small letter, as in the frames. Half of the recorded ones precede."""
    wanted = Wanted("it died", status=424, error="modelStreamErrorException")
    recorded = streamed(CONVERSED_IN_PIECES)
    made = FORMAT.encode(of_model("converse-stream", CONVERSE), wanted, recorded)
    assert (made.status, len(made.chunks)) == (200, 1 + len(CONVERSED_IN_PIECES) // 2)
    arguments = {"modelId": "m.x", "messages": HI}
    with pytest.raises(EventStreamError, match=r"modelStreamErrorException.*it died"):
        by_boto3("converse_stream", arguments, fork(wanted, recorded))
    with pytest.raises(ClientError, match="it died"):
        by_boto3("converse", arguments, fork(wanted, answered(CONVERSED)))


def test_an_agent_is_answered_with_a_text() -> None:
    """Of what Bedrock runs itself, each answer has a form of its own."""
    service = "bedrock-agent-runtime"
    arguments = {"agentId": "A", "agentAliasId": "B", "sessionId": "s1", "inputText": "Hi"}
    _, result = by_boto3("invoke_agent", arguments, fork(Wanted("Grüße")), service)
    assert [event["chunk"]["bytes"].decode() for event in result["completion"]] == ["Grüße"]
    asks: dict[str, Any] = {"knowledgeBaseId": "K" * 10, "retrievalQuery": {"text": "Hi"}}
    _, result = by_boto3("retrieve", asks, fork(Wanted("Grüße")), service)
    assert [found["content"]["text"] for found in result["retrievalResults"]] == ["Grüße"]
    _, result = by_boto3(
        "retrieve_and_generate", {"input": {"text": "Hi"}}, fork(Wanted("Grüße")), service
    )
    assert result["output"]["text"] == "Grüße"


@pytest.mark.parametrize(
    ("request_made", "wanted", "said"),
    [
        (of_model("converse", CONVERSE), Wanted(), "needs a text"),
        (of_model("invoke", {"prompt": "Hi"}, "meta.llama4"), Wanted("", CALLS), "calls no tools"),
        (of_model("invoke", {"prompt": "Hi"}, "acme.one"), Wanted("x"), "acme.one answers"),
        (of_model("invoke", {"inputText": "Hi"}, "a.embed"), Wanted("x"), "not asked for a text"),
        (
            of_model("converse", CONVERSE),
            Wanted(document={"text": "x"}, has_document=True),
            "with 'output'",
        ),
        (
            of_model("converse-stream", CONVERSE),
            Wanted(document={"output": {"message": {"content": [{"x": {}}]}}}, has_document=True),
            "no block of 'x'",
        ),
        (asked("/flows/F/aliases/A", {}), Wanted("x"), "InvokeFlow is not answered with a text"),
        (asked("/flows/F/aliases/A", {}), Wanted("x", CALLS), "calls no tools"),
    ],
)
def test_what_cannot_be_answered_says_what_can(
    request_made: Asked, wanted: Wanted, said: str
) -> None:
    """The message is for a person at a terminal."""
    with pytest.raises(UsageError, match=said) as caught:
        FORMAT.encode(request_made, wanted, None)
    assert str(caught.value).startswith("tracefork: ")


def test_an_empty_text_is_an_answer() -> None:
    """`--drop` makes a model say nothing."""
    for verb in ("converse", "converse-stream", "invoke", "invoke-with-response-stream"):
        request = of_model(verb, CONVERSE)
        call = FORMAT.decode(request, FORMAT.encode(request, Wanted(""), None))
        assert isinstance(call, ModelCall)
        assert (call.text, call.error) == ("", None)


BLOCKS: list[dict[str, Any]] = [
    {"reasoningContent": {"reasoningText": {"text": "a thought", "signature": "s"}}},
    {"reasoningContent": {"redactedContent": "aGk="}},
    {"text": "Grüße from a stream that has more than one piece"},
    {"citationsContent": {"content": [{"text": "cited"}], "citations": [{"title": "t"}]}},
    {"toolUse": {"toolUseId": "a", "name": "look", "input": {"q": ["ü", {"deep": None}]}}},
    {"toolUse": {"toolUseId": "b", "name": "run", "input": {}, "type": "server_tool_use"}},
    {"toolResult": {"toolUseId": "b", "content": [{"json": {"found": 1}}], "type": "run_result"}},
]


def test_a_document_reads_alike_whole_and_streamed() -> None:
    """Each kind of block that Converse streams comes back from its events."""
    document: Any = {"output": {"message": {"role": "assistant", "content": BLOCKS}}}
    wanted = Wanted(document=document, has_document=True)
    whole, stream = (of_model(verb, CONVERSE) for verb in ("converse", "converse-stream"))
    calls = [read(request, FORMAT.encode(request, wanted, None)) for request in (whole, stream)]
    assert calls[0].output == calls[1].output
    assert len(calls[0].output[0].parts) == len(BLOCKS) - 2  # Thoughts are joined, and texts.


def test_a_conversation_with_command_r_reads_with_its_history() -> None:
    """Its messages, calls and results have names of their own."""
    body = {
        "preamble": "Be brief.",
        "chat_history": [
            {"role": "USER", "message": "Hi"},
            {"role": "CHATBOT", "tool_calls": [{"name": "look", "parameters": {"q": 1}}]},
        ],
        "message": "And now?",
        "tools": [{"name": "look", "description": "d", "parameter_definitions": {}}],
        "tool_results": [{"call": {"name": "look"}, "outputs": [{"found": 2}]}],
    }
    call = read(of_model("invoke", body, "cohere.command-r"))
    assert [message.role for message in call.input] == ["user", "assistant", "user"]
    assert [part.type for message in call.input for part in message.parts] == [
        "text",
        "tool_call",
        "text",
        "tool_call_response",
    ]
    assert (call.system[0].type, call.tools[0].name) == ("text", "look")


def test_an_image_is_an_answer_too() -> None:
    """Models that draw get a prompt as those that write do."""
    request = of_model("invoke", {"prompt": "a cat"}, "stability.sd3")
    (message,) = read(request, answered({"images": ["aGk="]})).output
    assert message.parts[0].type == "blob"
