"""Conversations of the real SDKs are exported whole, as the conventions ask, or not at all."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import atif
import pytest

from tracefork_core import record, tool
from tracefork_core.adapters import begin_step, end_step, step
from tracefork_core.interop.exporting import atif as trajectories
from tracefork_core.interop.exporting import har
from tracefork_core.interop.exporting.tape_spans import Choice, spans_of
from tracefork_core.interop.span import Span
from tracefork_core.providers.call import TextPart
from tracefork_core.tape import Tape
from tracefork_testkit import ProviderServer

from .conversations import CONVERSATIONS, record_conversation
from .message_schema import SCHEMAS, violations
from .test_export import brought_back, calls_on, exported

WHOLE = Choice(content=True)


@pytest.fixture(scope="module")
def tapes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Path]]:
    """Record each conversation once."""
    folder = tmp_path_factory.mktemp("conversations")
    with ProviderServer() as provider:
        yield {
            name: record_conversation(name, folder / f"{name}.tape", provider)
            for name in CONVERSATIONS
        }


def spans_on(tape: Path, choice: Choice = WHOLE) -> list[Span]:
    """Return the spans of a tape."""
    with Tape.open(tape) as opened:
        return list(spans_of(opened, "run", choice))


@pytest.mark.parametrize("name", CONVERSATIONS)
def test_a_conversation_has_the_form_that_the_conventions_ask_for(
    name: str, tapes: dict[str, Path]
) -> None:
    """Images, tools, reasoning, streams and errors, in the format of each provider."""
    held = [
        (attribute, json.loads(str(span.attributes[attribute])))
        for span in spans_on(tapes[name])
        for attribute in SCHEMAS
        if attribute in span.attributes
    ]
    # OpenAI's chat completions have the instructions among the messages.
    outside = {"gen_ai.system_instructions"} if name == "openai_chat" else set()
    assert {attribute for attribute, _ in held} == SCHEMAS.keys() - outside
    assert [line for attribute, value in held for line in violations(attribute, value)] == []


def test_an_answer_without_a_reason_is_a_violation() -> None:
    """The control: the conventions ask for it of answers, and not of questions."""
    message: Any = [{"role": "assistant", "parts": [{"type": "text", "content": "x"}]}]
    assert violations("gen_ai.output.messages", message) == [
        "'finish_reason' is a required property"
    ]
    assert violations("gen_ai.input.messages", message) == []


@pytest.mark.parametrize("name", CONVERSATIONS)
def test_a_conversation_comes_back_with_every_part(
    name: str, tapes: dict[str, Path], tmp_path: Path
) -> None:
    """Streams and errors too; the call of the tool comes back as one exchange."""
    back = brought_back(exported(tapes[name], WHOLE), tmp_path)
    before, after = calls_on(tapes[name]), calls_on(back)
    assert len(before) >= 2
    for one, other in zip(before, after, strict=True):
        assert (one.system, one.input, one.output) == (other.system, other.input, other.output)
        assert (one.tools, one.request_model) == (other.tools, other.request_model)
    with Tape.open(tapes[name]) as tape, Tape.open(back) as copy:
        assert len(tape.exchanges) == len(copy.exchanges)
        assert [each.name for each in copy.steps] == [each.name for each in tape.steps]


@pytest.mark.parametrize("name", CONVERSATIONS)
def test_nothing_of_a_conversation_is_exported_without_content(
    name: str, tapes: dict[str, Path]
) -> None:
    """The control: it is there with content."""
    with Tape.open(tapes[name]) as tape:
        archive = json.dumps(har.document(tape, content=False))
    without = json.dumps(exported(tapes[name], Choice())) + archive
    said = ["Oslo", "Sunny", "Look it up", "Be brief", "iVBORw0KGgo", "scripted fault"]
    assert [text for text in said if text in without] == []
    whole = json.dumps(exported(tapes[name], WHOLE))
    assert [text for text in said[:4] if text not in whole] == []


@pytest.mark.parametrize("name", CONVERSATIONS)
def test_a_conversation_is_a_valid_trajectory(name: str, tapes: dict[str, Path]) -> None:
    """The models of ATIF accept it; the first answer asks for the tool, and has its result."""
    with Tape.open(tapes[name]) as tape:
        document = trajectories.document(tape, "desk")
    turns = atif.Trajectory.model_validate(document).steps
    answer = next(turn for turn in turns if turn.source == "agent")
    assert answer.tool_calls is not None
    assert answer.tool_calls[0].function_name == "look_up"


def test_embeddings_have_their_texts_and_dimensions(tapes: dict[str, Path]) -> None:
    """OpenInference has attributes for the texts, which are content."""
    embeddings = spans_on(tapes["openai_chat"])[-1].attributes
    assert embeddings["openinference.span.kind"] == "EMBEDDING"
    assert embeddings["embedding.embeddings.1.embedding.text"] == "two"
    assert embeddings["input.value"] == "one\ntwo"
    without = spans_on(tapes["openai_chat"], Choice())[-1].attributes
    assert not any("embeddings." in name and name.endswith("text") for name in without)


def test_texts_of_embeddings_come_back_from_openinference_alone(
    tapes: dict[str, Path], tmp_path: Path
) -> None:
    """Its numbered texts are not read, but the input of the span is."""
    alone = exported(tapes["openai_chat"], Choice(gen_ai=False, content=True))
    asked = calls_on(brought_back(alone, tmp_path))[-1]
    assert asked.operation == "embeddings"
    assert [part for message in asked.input for part in message.parts] == [TextPart("one\ntwo")]


def test_an_error_of_a_step_has_its_class_alone_without_content(tmp_path: Path) -> None:
    """Adapters record the whole error, which may quote what was said."""
    with record(tmp_path / "run.tape"):
        end_step(begin_step("node", "ask"), KeyError("a secret"))
        end_step(begin_step("node", "tell"), "no class, but words")
    ask, tell = spans_on(tmp_path / "run.tape", Choice())[1:]
    assert (ask.error, ask.attributes["error.type"]) == ("KeyError", "KeyError")
    assert (tell.error, tell.attributes["error.type"]) == ("_OTHER", "_OTHER")
    assert spans_on(tmp_path / "run.tape")[1].error == "KeyError('a secret')"


def test_tools_and_retrievers_of_frameworks_are_spans_of_their_kind(tmp_path: Path) -> None:
    """A step around a recorded call of a tool is a plain step, so that the call counts once."""

    @tool
    def count(text: str) -> Iterator[int]:
        yield from range(len(text))

    with record(tmp_path / "run.tape"):
        with step("tool", "inner"):
            pass
        with step("tool", "outer"):
            assert list(count("ab")) == [0, 1]
        with step("retriever", "docs"):
            pass
    spans = {span.name: span.attributes for span in spans_on(tmp_path / "run.tape")}
    assert spans["execute_tool inner"]["gen_ai.tool.name"] == "inner"
    assert spans["execute_tool inner"]["openinference.span.kind"] == "TOOL"
    assert "gen_ai.operation.name" not in spans["outer"]
    called = next(spans[name] for name in spans if name.endswith("count"))
    assert called["gen_ai.tool.call.result"] == "[0,1]"
    assert spans["retrieval docs"]["gen_ai.operation.name"] == "retrieval"
    assert spans["retrieval docs"]["openinference.span.kind"] == "RETRIEVER"
