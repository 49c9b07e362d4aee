"""Recorded traffic of real providers: each answer can be made again from its text and calls."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from tracefork_core.errors import UsageError
from tracefork_core.providers import Answer, ModelCall
from tracefork_core.providers.answering import answer, failure_answer, from_document
from tracefork_core.providers.asking import edit

from .asked import Ask


def calls(traffic: list[Any]) -> list[tuple[Any, Ask, ModelCall]]:
    """Return the calls that asked a model for text and got some."""
    found = [(one, one.decode()) for one in traffic]
    return [
        (one, Ask(one.url, one.request, tuple(one.request_headers)), call)
        for one, call in found
        if call and not call.error and call.operation in ("chat", "generate_content")
    ]


def recorded(one: Any) -> Answer:
    return Answer(one.status, tuple(one.response_headers), (one.response,))


def again(request: Ask, call: ModelCall, before: Answer | None) -> ModelCall:
    """Answer a request with the text and calls of a recorded one, and decode that."""
    said = [(one.name, one.arguments) for one in call.tool_calls]
    text = call.text if call.text or not said else None
    return request.read(answer(request, before, text=text, tool_calls=said))  # type: ignore[arg-type]


def said(call: ModelCall) -> tuple[Any, ...]:
    made = [(one.name, one.arguments) for one in call.tool_calls]
    return call.text, made, call.finish_reasons, call.stream


def test_every_answer_can_be_made_again(traffic: list[Any]) -> None:
    """Text, tool calls and finish reason of N of N are equal, with and without the recording."""
    done: Counter[str] = Counter()
    for one, request, call in calls(traffic):
        # One server said nothing of how it ended; what is made up ends as such answers do.
        expected = said(call) if call.finish_reasons else (*said(call)[:2], ("stop",), call.stream)
        for before in (None, recorded(one)):
            assert said(again(request, call, before)) == expected, one.cassette
        done[call.api] += 1
    assert len(done) == 4
    assert sum(done.values()) > 300


def test_ids_and_counts_are_copied(traffic: list[Any]) -> None:
    """The new answer equals the recorded one for an agent that uses its ids or token counts."""
    for one, request, call in calls(traffic):
        read = again(request, call, recorded(one))
        assert (read.response_id, read.response_model) == (call.response_id, call.response_model)
        assert [c.id for c in read.tool_calls] == [c.id for c in call.tool_calls], one.cassette
        asks_usage = not call.stream or read.usage is not None
        assert not asks_usage or read.usage == call.usage, one.cassette


def test_another_text_or_call_is_noticed(traffic: list[Any]) -> None:
    """The negative control of the comparison above."""
    for one, request, call in calls(traffic):
        other = request.read(
            answer(request, recorded(one), text="other", tool_calls=[("other", {"a": [one.url]})])
        )
        assert other.text == "other" != call.text
        assert [(c.name, c.arguments) for c in other.tool_calls] == [("other", {"a": [one.url]})]
        assert request.read(failure_answer(request, 500, "no")).error is not None


def test_a_recorded_document_is_sent_whole_or_streamed(traffic: list[Any]) -> None:
    """Each JSON answer decodes to the same call as a whole document and as a stream."""
    seen: Counter[str] = Counter()
    for one, request, call in calls(traffic):
        if call.stream or not one.response.startswith(b"{"):
            continue
        document = json.loads(one.response)
        whole = request.read(from_document(request, document, recorded(one)))
        assert whole == call, one.cassette
        if call.api == "gemini":
            url = request.url.replace(":generateContent", ":streamGenerateContent")
            asking = Ask(f"{url}{'&' if '?' in url else '?'}alt=sse", request.body)
        else:
            asking = request.but(stream=True, stream_options={"include_usage": True})
        streamed = asking.read(from_document(asking, document))
        assert streamed.output == call.output, one.cassette
        assert streamed.usage == call.usage, one.cassette
        assert streamed.finish_reasons == call.finish_reasons, one.cassette
        seen[call.api] += 1
    assert len(seen) == 4
    assert sum(seen.values()) > 100


CHANGES: dict[str, tuple[Any, Callable[[ModelCall, ModelCall], bool]]] = {
    "model": ("other", lambda new, old: new.request_model == "other"),
    "temperature": (0.125, lambda new, old: new.parameters["temperature"] == 0.125),
    "system": ("other", lambda new, old: "other" in str(new.system or new.input[0])),
    "prompt": ("other", lambda new, old: "other" in str(new.input)),
    "drop_message": (0, lambda new, old: len(new.input) < len(old.input)),
}


@pytest.mark.parametrize("change", CHANGES)
def test_every_real_request_can_be_edited(traffic: list[Any], change: str) -> None:
    """N of N decode as edited; only a request's single message cannot be dropped."""
    value, shows = CHANGES[change]
    done = 0
    for one, request, call in calls(traffic):
        if change == "drop_message" and len(call.input) == 1:
            with pytest.raises(UsageError):
                edit(request, drop_message=0)
            continue
        url, body = edit(request, **{change: value})
        asking = Ask(url, body)
        read = asking.read(recorded(one))
        assert shows(read, call), one.cassette
        assert said(read) == said(call), one.cassette
        done += 1
    assert done > 100
