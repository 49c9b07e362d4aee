"""After dropping messages or tools, the request is still one that the provider accepts."""

from __future__ import annotations

from typing import Any

import pytest

from tracefork_core.errors import UsageError
from tracefork_core.providers import Answer, ToolCallPart, ToolCallResponsePart
from tracefork_core.providers.asking import edit

from .asked import CHAT, GEMINI, MESSAGES, RESPONSES, Ask

NOTHING = Answer(200, (), (b"{}",))
USER = {"role": "user", "content": "do it"}


def calls(*ids: str) -> list[Any]:
    return [{"id": i, "type": "function", "function": {"name": "f"}} for i in ids]


def use(id_: str) -> dict[str, Any]:
    return {"type": "tool_use", "id": id_, "name": "f", "input": {}}


def result(id_: str) -> dict[str, Any]:
    return {"type": "tool_result", "tool_use_id": id_, "content": "7"}


def item(id_: str) -> dict[str, Any]:
    return {"type": "function_call", "id": f"fc{id_}", "call_id": id_, "name": "f"}


FUNCTION = {"functionCall": {"name": "f", "args": {}}}
ANSWERED = {"functionResponse": {"name": "f", "response": {}}}
LONG = {
    "chat": CHAT.but(
        messages=[
            USER,
            {"role": "assistant", "content": None, "tool_calls": calls("a", "b")},
            {"role": "tool", "tool_call_id": "a", "content": "7"},
            {"role": "tool", "tool_call_id": "b", "content": "8"},
            {"role": "assistant", "content": "on", "tool_calls": calls("c")},
            {"role": "tool", "tool_call_id": "c", "content": "9"},
            {"role": "assistant", "content": "done"},
        ]
    ),
    "responses": RESPONSES.but(
        input=[
            USER,
            {"type": "reasoning", "id": "rs1", "summary": []},
            item("a"),
            item("b"),
            {"type": "function_call_output", "call_id": "a", "output": "7"},
            {"type": "function_call_output", "call_id": "b", "output": "8"},
            {"type": "reasoning", "id": "rs2", "summary": []},
            item("c"),
            {"type": "function_call_output", "call_id": "c", "output": "9"},
        ]
    ),
    "messages": MESSAGES.but(
        messages=[
            USER,
            {"role": "assistant", "content": [use("a"), use("b")]},
            {"role": "user", "content": [result("a"), result("b")]},
            {
                "role": "assistant",
                "content": [{"type": "thinking", "thinking": "", "signature": "s"}, use("c")],
            },
            {"role": "user", "content": [result("c"), {"type": "text", "text": "and?"}]},
        ]
    ),
    "gemini": GEMINI.but(
        contents=[
            {"role": "user", "parts": [{"text": "do it"}]},
            {"role": "model", "parts": [FUNCTION, FUNCTION]},
            {"role": "user", "parts": [ANSWERED, ANSWERED]},
            {"role": "model", "parts": [{"text": "on"}, FUNCTION]},
            {"role": "user", "parts": [ANSWERED]},
        ]
    ),
}


@pytest.mark.parametrize("wire", LONG)
def test_every_call_keeps_its_result_and_every_result_its_call(wire: str) -> None:
    """Whichever message is dropped."""
    before = len(LONG[wire].read(NOTHING).input)
    for index in range(before):
        read = Ask(*edit(LONG[wire], drop_message=index)).read(NOTHING)
        parts = [part for message in read.input for part in message.parts]
        made = [part.id for part in parts if isinstance(part, ToolCallPart)]
        heard = [part.id for part in parts if isinstance(part, ToolCallResponsePart)]
        assert len(made) == len(heard), index
        assert wire == "gemini" or made == heard, index
        assert len(read.input) < before
        assert all(message.parts for message in read.input), index


def test_dropping_a_message_drops_its_calls_and_answers_only() -> None:
    """A dropped result drops only its call. An assistant message with text stays."""
    kept = Ask(*edit(LONG["chat"], drop_message=2)).json["messages"]
    assert [call["id"] for call in kept[1]["tool_calls"]] == ["b"]
    kept = Ask(*edit(LONG["chat"], drop_message=5)).json["messages"]
    assert kept[4] == {"role": "assistant", "content": "on"}
    kept = Ask(*edit(LONG["messages"], drop_message=3)).json["messages"]
    assert kept[-1]["content"] == [{"type": "text", "text": "and?"}]
    kept = Ask(*edit(LONG["messages"], drop_message=2)).json["messages"]
    assert len(kept) == 3
    kept = Ask(*edit(LONG["gemini"], drop_message=4)).json["contents"]
    assert kept[-1] == {"role": "model", "parts": [{"text": "on"}]}
    assert Ask(*edit(LONG["chat"], drop_message=-1)).json["messages"][-1]["role"] == "tool"


def test_a_message_left_empty_is_dropped() -> None:
    """An assistant message with only the dropped call, or with thinking before it, is empty."""
    silent = LONG["chat"].but(messages=LONG["chat"].json["messages"][4:6])
    assert len(Ask(*edit(silent, drop_message=1)).json["messages"]) == 1
    asked = [USER, {"role": "assistant", "content": None, "tool_calls": calls("c")}]
    silent = LONG["chat"].but(messages=[*asked, LONG["chat"].json["messages"][5]])
    assert Ask(*edit(silent, drop_message=2)).json["messages"] == [USER]
    kept = Ask(*edit(LONG["messages"], drop_message=4)).json["messages"]
    assert [message["role"] for message in kept] == ["user", "assistant", "user"]
    contents = LONG["gemini"].json["contents"]
    contents[3]["parts"][0]["thought"] = True
    kept = Ask(*edit(GEMINI.but(contents=contents), drop_message=4)).json["contents"]
    assert kept == contents[:3]


def test_reasoning_is_dropped_with_its_result() -> None:
    """A reasoning item needs the item after it, and that item's id needs the reasoning."""
    kept = Ask(*edit(LONG["responses"], drop_message=8)).json["input"]
    assert [one.get("id") for one in kept if one.get("type") == "reasoning"] == ["rs1"]
    kept = Ask(*edit(LONG["responses"], drop_message=6)).json["input"]
    assert kept[6] == {"type": "function_call", "call_id": "c", "name": "f"}


@pytest.mark.parametrize("index", [7, -8])
def test_dropping_a_missing_message_is_refused(index: int) -> None:
    """The message says how many there are."""
    with pytest.raises(UsageError, match=f"no message {index} in 'messages': it has 7"):
        edit(LONG["chat"], drop_message=index)


def function(name: str) -> dict[str, Any]:
    return {"type": "function", "function": {"name": name}}


OFFERS = {
    "chat": CHAT.but(
        tools=[function("f"), function("g"), {"type": "custom", "custom": {"name": "h"}}],
        tool_choice=function("g"),
        parallel_tool_calls=False,
    ),
    "functions": CHAT.but(
        functions=[{"name": "f"}, {"name": "g"}, {"name": "h"}], function_call={"name": "g"}
    ),
    "responses": RESPONSES.but(
        tools=[
            {"type": "function", "name": "f"},
            {"type": "namespace", "name": "n", "tools": [{"name": "g"}, {"name": "x"}]},
            {"type": "custom", "name": "h"},
        ],
        tool_choice={"type": "function", "name": "g"},
    ),
    "messages": MESSAGES.but(
        tools=[{"name": "f"}, {"type": "bash_20250124", "name": "g"}, {"name": "h"}],
        tool_choice={"type": "tool", "name": "g"},
    ),
    "gemini": GEMINI.but(
        tools=[
            {"functionDeclarations": [{"name": "f"}, {"name": "g"}]},
            {"function_declarations": [{"name": "h"}]},
            {"googleSearch": {}},
        ],
        toolConfig={"functionCallingConfig": {"mode": "ANY", "allowedFunctionNames": ["g", "f"]}},
    ),
}


@pytest.mark.parametrize("wire", OFFERS)
def test_only_the_tools_named_are_offered(wire: str) -> None:
    """In their order. A choice of a dropped tool is dropped, any other choice stays."""
    request = OFFERS[wire]
    kept = Ask(*edit(request, tools=["h", "f"]))
    assert [tool.name for tool in kept.read(NOTHING).tools] == ["f", "h"]
    assert not {"tool_choice", "function_call"} & kept.json.keys()
    chosen = Ask(*edit(request, tools=["g"]))
    names = [tool.name for tool in chosen.read(NOTHING).tools]
    assert names == (["n", "g"] if wire == "responses" else ["g"])
    for key in ("tool_choice", "function_call"):
        assert chosen.json.get(key) == request.json.get(key)
    if wire == "gemini":
        limits = [one.json["toolConfig"]["functionCallingConfig"] for one in (kept, chosen)]
        assert [limit["allowedFunctionNames"] for limit in limits] == [["f"], ["g"]]


@pytest.mark.parametrize("wire", OFFERS)
def test_without_tools_every_field_about_tools_is_dropped(wire: str) -> None:
    """Providers refuse an empty list, or a choice without tools."""
    kept = Ask(*edit(OFFERS[wire], tools=[])).json
    assert not [key for key in kept if "tool" in key.lower() or "function" in key]


@pytest.mark.parametrize("wire", OFFERS)
def test_keeping_an_unknown_tool_is_refused(wire: str) -> None:
    """The message lists the tools that the request offers."""
    with pytest.raises(UsageError, match="'zap'"):
        edit(OFFERS[wire], tools=["f", "zap"])
