"""A body of a known format reads, is answered and is changed without its provider's transport."""

from __future__ import annotations

import pytest

from tracefork_core import UsageError
from tracefork_core.adapters.formats import (
    Carried,
    Json,
    Wanted,
    answer_as,
    change_as,
    events_as,
    read_as,
)

APIS = ["anthropic.messages", "openai.chat_completions"]
ASKED: dict[str, Json] = {
    "model": "some-model",
    "max_tokens": 10,
    "messages": [{"role": "user", "content": "Where is it warm?"}],
}


@pytest.mark.parametrize("api", APIS)
@pytest.mark.parametrize("streams", [False, True])
def test_an_answer_reads_as_what_was_wanted(api: str, streams: bool) -> None:
    """Whole, and as events: an adapter puts either into its own frames."""
    asked = Carried(ASKED, streams=streams)
    wanted = Wanted("In Rome.", (("weather", {"city": "Rome"}),))
    document = answer_as(api, asked, wanted)
    events = tuple(events_as(api, asked, document)) if streams else ()
    answered = Carried(ASKED, 200, {} if streams else document, events, streams)
    call = read_as(api, answered, "acme")
    assert (call.text, call.provider, call.stream) == ("In Rome.", "acme", streams)
    (tool,) = call.tool_calls
    assert (tool.name, tool.arguments) == ("weather", {"city": "Rome"})


@pytest.mark.parametrize("api", APIS)
def test_another_answer_keeps_the_ids_of_the_recorded_one(api: str) -> None:
    """A fork that says something else differs in what was said only."""
    before = answer_as(api, Carried(ASKED), Wanted("In Rome."))
    after = answer_as(api, Carried(ASKED, 200, before | {"id": "recorded"}), Wanted("In Oslo."))
    assert after["id"] == "recorded"
    assert read_as(api, Carried(ASKED, 200, after), None).text == "In Oslo."


@pytest.mark.parametrize("api", APIS)
def test_an_error_is_no_answer_to_copy_from(api: str) -> None:
    """Its id and its words are those of the error."""
    failed: dict[str, Json] = {"id": "failed", "error": {"type": "overloaded", "message": "busy"}}
    document = answer_as(api, Carried(ASKED, 503, failed), Wanted("In Rome."))
    assert document["id"] != "failed"
    assert "error" not in document


@pytest.mark.parametrize("api", APIS)
def test_a_request_changes_without_its_transport(api: str) -> None:
    """The model stays: where it is named is a matter of the transport."""
    changed = change_as(
        api,
        Carried(ASKED),
        {"model": "other", "prompt": "Why?", "system": "Be brief.", "values": {"/max_tokens": 5}},
    )
    call = read_as(api, Carried(changed), None)
    assert (call.request_model, call.parameters["max_tokens"]) == ("some-model", 5)
    assert "Why?" in str(call.input[-1])
    assert "Be brief." in str((call.system, call.input))
    assert ASKED["max_tokens"] == 10


def test_an_answer_needs_words_or_a_call() -> None:
    """An empty text is one; nothing at all is not."""
    with pytest.raises(UsageError, match="needs a text"):
        answer_as("anthropic.messages", Carried(ASKED), Wanted())
