"""A fork changes a request: its model in the URL, and the rest in a body of the model's maker."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tracefork_bedrock.formats.wire_format import FORMAT
from tracefork_core import UsageError

from .test_reading import CONVERSE
from .test_reading_makers import CLAUDE, INVOKED
from .wire import HOST, Asked, answered, asked, by_boto3, of_model, read

ARN = "arn:aws:bedrock:us-east-1:123456789012:application-inference-profile/x1"


def changed(request: Asked, **changes: Any) -> tuple[str, Any]:
    """Return the URL and the body of a request with changes."""
    url, body = FORMAT.reword(request, changes)
    return url, json.loads(body)


@pytest.mark.parametrize("verb", ["converse", "converse-stream", "invoke", "count-tokens"])
@pytest.mark.parametrize("written", ["a.b-v1:0", "a.b-v1%3A0", "arn%3Aaws%3Ax%2Fy", "arn:aws:x/y"])
def test_another_model_is_another_path(verb: str, written: str) -> None:
    """The body stays byte for byte: its spaces too."""
    request = of_model(verb, CONVERSE, written, "https://llm.example/bedrock")
    url, body = FORMAT.reword(request, {"model": "us.amazon.nova-lite-v1:0"})
    assert url == f"https://llm.example/bedrock/model/us.amazon.nova-lite-v1%3A0/{verb}"
    assert body == request.body
    assert read(request._replace(url=url)).request_model == "us.amazon.nova-lite-v1:0"


@pytest.mark.parametrize("model", ["us.amazon.nova-lite-v1:0", ARN])
def test_the_path_of_another_model_is_the_one_that_boto3_would_ask(model: str) -> None:
    """boto3 escapes colons and slashes."""
    url, _ = FORMAT.reword(of_model("converse", CONVERSE), {"model": model})
    arguments = {"modelId": model, "messages": CONVERSE["messages"][:1]}
    document = {"output": {"message": {"content": []}}, "stopReason": "end_turn"}
    request, _ = by_boto3("converse", arguments, lambda _: answered(document))
    assert url == request.url


def test_a_conversation_changes_in_the_places_of_converse() -> None:
    """System prompt, prompt, temperature, tools, messages and any value."""
    request = of_model("converse", CONVERSE)
    _, body = changed(
        request,
        system="Be long.",
        temperature=0.1,
        prompt="Ho",
        tools=["look"],
        values={"/inferenceConfig/maxTokens": 5},
    )
    assert body["system"] == [{"text": "Be long."}, {"cachePoint": {"type": "default"}}]
    assert body["inferenceConfig"] == {"maxTokens": 5, "temperature": 0.1, "stopSequences": ["."]}
    assert body["messages"][0]["content"] == [{"text": "Ho"}]
    assert body["toolConfig"]["tools"] == CONVERSE["toolConfig"]["tools"][:1]
    _, body = changed(request, tools=[])
    assert "toolConfig" not in body
    _, body = changed(of_model("converse", {"messages": []}), system="New", temperature=1)
    assert (body["system"], body["inferenceConfig"]) == ([{"text": "New"}], {"temperature": 1})


def test_a_message_goes_with_the_result_of_its_call() -> None:
    """The service refuses a call without its result, and a result without its call."""
    _, body = changed(of_model("converse", CONVERSE), drop_message=1)
    roles = [message["role"] for message in body["messages"]]
    assert roles == ["user", "user"]
    assert "toolResult" not in str(body["messages"])
    _, body = changed(of_model("converse", CONVERSE), drop_message=-1)
    assert len(body["messages"]) == 1


@pytest.mark.parametrize(("api", "model", "body", "document"), INVOKED, ids=lambda v: str(v)[:22])
def test_each_makers_request_changes_in_its_own_places(
    api: str, model: str, body: Any, document: Any
) -> None:
    """A prompt and a temperature, wherever that maker puts them."""
    request = of_model("invoke", body, model)
    _, told = changed(request, prompt="Ho", temperature=0.25)
    call = read(request._replace(body=json.dumps(told).encode()))
    assert call.input[-1].parts[0].content == "Ho"  # type: ignore[union-attr]
    assert call.parameters["temperature"] == 0.25
    assert set(told) - set(body) <= {"temperature"}


def test_claudes_system_prompt_is_where_anthropic_has_it() -> None:
    """Its body has no model and no stream, and gets none."""
    _, body = changed(of_model("invoke", CLAUDE), system="Be brief.")
    assert body == {**CLAUDE, "system": "Be brief."}


@pytest.mark.parametrize(
    ("request_made", "changes", "said"),
    [
        (of_model("converse", CONVERSE), {"drop_message": 9}, "no message 9"),
        (of_model("converse", {"messages": []}), {"prompt": "x"}, "no user text"),
        (
            of_model("converse", {"messages": CONVERSE["messages"][:1]}),
            {"drop_message": 0},
            "no message would be left",
        ),
        (of_model("converse", CONVERSE), {"tools": ["x"]}, "does not offer the tool 'x'"),
        (of_model("converse", CONVERSE), {"values": {"/no/where": 1}}, "/no"),
        (of_model("invoke", {"prompt": "Hi"}, "meta.l"), {"system": "x"}, "it has no 'system'"),
        (of_model("invoke", {"message": "Hi"}, "cohere.r"), {"tools": []}, "no 'tools'"),
        (of_model("invoke", {"inputText": "Hi"}, "a.embed"), {"prompt": "x"}, "no 'prompt'"),
        (asked("/flows/F/aliases/A", {}), {"prompt": "x"}, "no call of a model"),
    ],
)
def test_a_change_without_a_place_says_so(
    request_made: Asked, changes: dict[str, Any], said: str
) -> None:
    """The message names the request and what it lacks."""
    with pytest.raises(UsageError, match=said) as caught:
        FORMAT.reword(request_made, changes)
    assert str(caught.value).startswith("tracefork: ")


def test_a_question_to_an_agent_changes_by_its_value() -> None:
    """Its body is that of no model."""
    request = asked("/agents/A/agentAliases/B/sessions/s/text", {"inputText": "Hi"}, HOST)
    assert changed(request, values={"/inputText": "Ho"}) == (request.url, {"inputText": "Ho"})
