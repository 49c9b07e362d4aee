"""A streamed request differs from a whole one. The divergence names the flag; you can pin it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from langgraph.graph import START, MessagesState, StateGraph

import tracefork_core as tracefork
from tracefork_testkit import ProviderServer

pytestmark = [
    pytest.mark.filterwarnings("ignore:Inheritance class:DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::langchain_core._api.LangChainBetaWarning"),
]

ALWAYS_STREAMS = {"ollama"}


def test_divergence_names_the_stream_flag(chat: Any, ask: Any, tape: Path, name: str) -> None:
    """The hint says whether the response was recorded whole or as a stream."""
    model = chat(name)
    for then, now, recorded in (
        ("invoke", "stream", "recorded whole"),
        ("astream", "ainvoke", "recorded as a stream"),
    ):
        with tracefork.record(tape, overwrite=True):
            ask(model, then)
        if name in ALWAYS_STREAMS:
            with tracefork.replay(tape):
                ask(model, now)
            continue
        with pytest.raises(tracefork.DivergenceError) as raised, tracefork.replay(tape):
            ask(model, now)
        (hint,) = raised.value.divergence.hints
        assert hint.startswith("the stream flag: ")
        assert recorded in hint


def test_disable_streaming_replays_whole_answers(
    chat: Any, ask: Any, tape: Path, server: ProviderServer, name: str
) -> None:
    """Every way to stream gets the recorded answer, in a graph too."""
    with tracefork.record(tape):
        recorded = ask(chat(name), "invoke")
    model = chat(name, disable_streaming=True)
    server.stop()
    builder = StateGraph(MessagesState)
    builder.add_node("node", lambda _: {"messages": [model.invoke("hello")]})
    graph = builder.add_edge(START, "node").compile()
    for way in ("stream", "astream", "astream_events"):
        with tracefork.replay(tape):
            assert "".join(ask(model, way)) == recorded[0]
    with tracefork.replay(tape):
        pieces = graph.stream({}, stream_mode="messages")
        assert recorded[0] in "".join(str(message.text) for message, _ in pieces)
    with tracefork.replay(tape):
        assert graph.stream_events({}, version="v3").output["messages"][-1].text == recorded[0]
    if name not in ALWAYS_STREAMS:
        # Even if the flag is pinned, a model's own v3 events are a stream.
        with pytest.raises(tracefork.DivergenceError, match="the stream flag"):
            with tracefork.replay(tape):
                ask(model, "stream_events")


def test_streaming_replays_streamed_answers(chat: Any, ask: Any, tape: Path, name: str) -> None:
    """With `streaming`, `invoke` requests a stream too."""
    options = {} if name in ALWAYS_STREAMS else {"streaming": True}
    recorder, model = chat(name), chat(name, **options)
    for then, now in (("stream", "invoke"), ("astream", "ainvoke")):
        with tracefork.record(tape, overwrite=True):
            recorded = ask(recorder, then)
        with tracefork.replay(tape):
            assert "".join(ask(model, now)) == "".join(recorded)


def test_a_stream_is_read_further_in_async_code(chat: Any, ask: Any, tape: Path) -> None:
    """OpenAI's SDK stops at [DONE] only in sync code: such a tape lacks the end of the stream."""
    model = chat("openai")
    with tracefork.record(tape):
        ask(model, "stream")
    with pytest.raises(tracefork.DivergenceError, match="read further"), tracefork.replay(tape):
        ask(model, "astream")
    with tracefork.record(tape, overwrite=True):
        recorded = ask(model, "astream")
    with tracefork.replay(tape):
        assert ask(model, "stream") == recorded
