"""The files of other tools become runs: their calls in order, inside their steps."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tracefork_core.exchange.contract import AFTER
from tracefork_core.interop.importing.claude_code import is_claude_code, read_claude_code
from tracefork_core.interop.importing.foreign_run import ForeignRun
from tracefork_core.interop.importing.langfuse import is_langfuse, read_langfuse
from tracefork_core.interop.importing.langsmith import is_langsmith, read_langsmith
from tracefork_core.interop.importing.otlp import is_otlp, is_sdk, read_otlp, read_sdk
from tracefork_core.interop.importing.recording import write
from tracefork_core.interop.importing.span_values import nanoseconds
from tracefork_core.interop.importing.trace_run import run_of
from tracefork_core.interop.importing.transcripts import (
    blamed_in,
    is_atif,
    is_who_and_when,
    read_atif,
    read_who_and_when,
)
from tracefork_core.interop.span import Span
from tracefork_core.providers import ModelCall, model_call
from tracefork_core.providers.call import (
    ReasoningPart,
    TextPart,
    ToolCallPart,
    ToolCallResponsePart,
)
from tracefork_core.providers.lenient import Json
from tracefork_core.tape import Tape

SECOND = 1_000_000_000
BEGAN = 1_700_000_000 * SECOND


def otlp(spans: list[Json]) -> Json:
    """Return an export with these spans."""
    return {"resourceSpans": [{"scopeSpans": [{"spans": spans}]}]}


def span(name: str, parent: str, at: int, **attributes: str) -> dict[str, Json]:
    """Return a span of OTLP JSON whose id is its name; `__` in an attribute stands for a dot."""
    return {
        "spanId": name,
        "parentSpanId": parent,
        "name": name,
        "startTimeUnixNano": str(BEGAN + at * SECOND),
        "endTimeUnixNano": str(BEGAN + (at + 1) * SECOND),
        "attributes": [
            {"key": key.replace("__", "."), "value": {"stringValue": value}}
            for key, value in attributes.items()
        ],
    }


def calls_on(run: ForeignRun, folder: Path) -> list[tuple[tuple[str, ...], ModelCall | str]]:
    """Return the steps and the call of each exchange of a run, read from a tape."""
    target = folder / "run.tape"
    write(run, Path("run.json"), b"{}", target)
    with Tape.open(target) as tape:
        return [(each.step_path, model_call(each) or each.url) for each in tape.exchanges]


def test_spans_become_exchanges_in_order_inside_their_steps(tmp_path: Path) -> None:
    """A span with others below it is a step; one inside a model call is part of that call."""
    chat = {"gen_ai__operation__name": "chat", "gen_ai__output": "Hello."}
    document = otlp(
        [
            span("tool", "agent", 3, gen_ai__operation__name="execute_tool", tool__name="t"),
            span("outer", "agent", 1, **chat),
            span("inner", "outer", 2, **chat, gen_ai__request__model="m"),
            span("POST", "inner", 2, http__request__method="POST", url__full="https://x.test/"),
            span("agent", "", 0, gen_ai__operation__name="invoke_agent", gen_ai__agent__name="A"),
        ]
    )
    assert is_otlp(document)
    asked = calls_on(run_of("OTLP", read_otlp(document)), tmp_path)
    assert [steps for steps, _ in asked] == [("A", "outer"), ("A",)]
    first, second = (call for _, call in asked)
    assert isinstance(first, ModelCall)
    assert first.request_model == "m"
    assert second == "tool:t"


def test_of_stacked_spans_the_one_with_the_messages_is_the_call(tmp_path: Path) -> None:
    """An SDK's own span has no messages, whether it lies inside or shares the response's id."""
    chat = {"gen_ai__operation__name": "chat"}
    told = {**chat, "gen_ai__prompt": "Hi", "gen_ai__output": "Hello."}
    document = otlp(
        [
            span("instrumented", "", 0, **told),
            span("inside", "instrumented", 1, **chat),
            span("beside", "", 2, **chat, gen_ai__response__id="r"),
            span("also", "", 3, **told, gen_ai__response__id="r"),
            span("next", "", 4, **told, gen_ai__response__id="r"),  # The id of a whole thread.
        ]
    )
    run = run_of("OTLP", read_otlp(document))
    assert [exchange.grade for exchange in run.exchanges] == ["content"] * 3
    texts = [call.text for _, call in calls_on(run, tmp_path) if isinstance(call, ModelCall)]
    assert texts == ["Hello."] * 3
    assert run.steps == []


def test_links_are_what_a_step_waited_for(tmp_path: Path) -> None:
    """A join knows the branches that it joins, under their ids on the tape."""
    join = span("join", "", 2) | {"links": [{"spanId": "a"}, {"spanId": "gone"}]}
    leaf = span("ask", "join", 3, gen_ai__operation__name="chat")
    write(
        run_of("OTLP", read_otlp(otlp([span("a", "", 1), join, leaf]))),
        Path("run.json"),
        b"{}",
        tmp_path / "run.tape",
    )
    with Tape.open(tmp_path / "run.tape") as tape:
        (step,) = tape.exchanges[0].steps
        ids = {each.name: each.id for each in tape.steps}
    assert step.detail[AFTER] == [ids["a"]]


def test_a_call_without_its_content_lowers_the_grade() -> None:
    """With the question and the answer it is content; with one of them structure."""
    whole: dict[str, Json] = {
        "gen_ai.operation.name": "chat",
        "gen_ai.prompt": "Hi",
        "gen_ai.completion": "Hello",
    }
    half: dict[str, Json] = {"gen_ai.operation.name": "chat", "gen_ai.completion": "Hello"}
    known = run_of("OTLP", [Span("1", "a", attributes=dict(whole))])
    partly = run_of(
        "OTLP", [Span("1", "a", attributes=dict(whole)), Span("2", "b", started=1, attributes=half)]
    )
    assert known.grade == "content"
    assert partly.grade == "structure"
    assert [exchange.grade for exchange in partly.exchanges] == ["content", "structure"]


def test_a_failed_call_keeps_its_error(tmp_path: Path) -> None:
    """The status of the span is the failure of the exchange."""
    failed = span("ask", "", 1, gen_ai__operation__name="chat")
    failed["status"] = {"code": 2, "message": "overloaded"}
    write(run_of("OTLP", read_otlp(otlp([failed]))), Path("o"), b"", tmp_path / "run.tape")
    with Tape.open(tmp_path / "run.tape") as tape:
        failure = tape.exchanges[0].failure
    assert failure is not None
    assert failure.message == "overloaded"


def test_spans_of_pythons_sdk_and_of_phoenix_read_alike(tmp_path: Path) -> None:
    """Ids as numbers or texts, attributes dotted, nested or in columns."""
    times: dict[str, Json] = {"name": "ask", "start_time": "2026-01-01T00:00:00Z"}
    dotted: Json = {
        "openinference.span.kind": "LLM",
        "llm.output_messages.0.message.content": "Hi",
        "llm.output_messages.0.message.role": "assistant",
    }
    nested: Json = {
        "openinference": {"span": {"kind": "LLM"}},
        "llm": {"output_messages": [{"message": {"content": "Hi", "role": "assistant"}}]},
    }
    columns: dict[str, Json] = {
        "attributes.openinference.span.kind": "LLM",
        "attributes.llm.output_messages": [{"message.content": "Hi", "message.role": "assistant"}],
    }
    documents: list[Json] = [
        {"spans": [{**times, "context": {"span_id": 255}, "parent": None, "attributes": dotted}]},
        [
            {
                **times,
                "context": {"span_id": "0x00000000000000ff"},
                "parent_id": None,
                "attributes": nested,
            }
        ],
        [{**times, "context.span_id": "00000000000000ff", **columns}],
    ]
    for n, document in enumerate(documents):
        assert is_sdk(document)
        (read,) = read_sdk(document)
        assert read.id == "00000000000000ff"
        (tmp_path / str(n)).mkdir()
        ((_, call),) = calls_on(run_of("spans", [read]), tmp_path / str(n))
        assert isinstance(call, ModelCall)
        assert call.text == "Hi"


def test_a_langfuse_trace_keeps_messages_models_and_counts(tmp_path: Path) -> None:
    """Langfuse moves the messages of a span to input and output."""
    observation: dict[str, Json] = {
        "id": "1",
        "type": "GENERATION",
        "name": "chat",
        "startTime": "2026-01-01T00:00:00.000Z",
        "endTime": "2026-01-01T00:00:02.000Z",
        "model": "gpt-5",
        "input": '[{"role":"user","content":"Hi"}]',
        "output": '{"role":"assistant","content":"Hello."}',
        "usageDetails": {"input": 3, "output": 4},
        "metadata": '{"attributes":{"gen_ai.system":"openai"}}',
    }
    document: Json = {"trace": {"id": "t"}, "observations": [observation]}
    assert is_langfuse(document)
    ((_, call),) = calls_on(run_of("Langfuse", read_langfuse(document)), tmp_path)
    assert isinstance(call, ModelCall)
    assert (call.provider, call.request_model, call.text) == ("openai", "gpt-5", "Hello.")
    assert call.usage is not None
    assert (call.usage.input_tokens, call.usage.output_tokens) == (3, 4)


def test_runs_of_langsmith_nest_and_keep_their_messages(tmp_path: Path) -> None:
    """Child runs inside of their parent, messages as LangChain serialises them."""
    message: Json = {
        "lc": 1,
        "type": "constructor",
        "id": ["langchain", "schema", "messages", "AIMessage"],
        "kwargs": {
            "content": "",
            "tool_calls": [{"name": "look_up", "args": {"city": "Oslo"}, "id": "c1"}],
            "usage_metadata": {"input_tokens": 3, "output_tokens": 4},
        },
    }
    model: Json = {
        "id": "2",
        "run_type": "llm",
        "name": "ChatOpenAI",
        "start_time": "2026-01-01T00:00:01",
        "extra": {"metadata": {"ls_provider": "openai", "ls_model_name": "gpt-5"}},
        "inputs": {"messages": [[{"type": "human", "data": {"content": "Hi"}}]]},
        "outputs": {"generations": [[{"text": "", "message": message}]]},
    }
    document: Json = {"id": "1", "run_type": "chain", "name": "agent", "child_runs": [model]}
    assert is_langsmith(document)
    (((step,), call),) = calls_on(run_of("LangSmith", read_langsmith(document)), tmp_path)
    assert step == "agent"
    assert isinstance(call, ModelCall)
    assert call.input[0].parts == (TextPart("Hi"),)
    assert call.tool_calls == (ToolCallPart("c1", "look_up", {"city": "Oslo"}),)
    assert call.usage is not None
    assert call.usage.input_tokens == 3


def test_a_trajectory_becomes_calls_and_their_tools(tmp_path: Path) -> None:
    """Each call shows what was new before it: the user's words, or what the tools returned."""
    document: Json = {
        "schema_version": "ATIF-v1.8",
        "agent": {"name": "coder", "model_name": "gpt-5"},
        "steps": [
            {"step_id": 1, "source": "user", "message": "Fix it."},
            {
                "step_id": 2,
                "source": "agent",
                "message": "I look.",
                "reasoning_content": "Hm.",
                "tool_calls": [{"tool_call_id": "c", "function_name": "ls", "arguments": {}}],
                "observation": {"results": [{"source_call_id": "c", "content": "a.py"}]},
            },
            {"step_id": 3, "source": "agent", "message": "Done."},
        ],
    }
    assert is_atif(document)
    (_, first), (_, tool), (_, last) = calls_on(run_of("ATIF", read_atif(document)), tmp_path)
    assert isinstance(first, ModelCall)
    assert isinstance(last, ModelCall)
    assert first.output[0].parts[0] == ReasoningPart("Hm.")
    assert tool == "tool:ls"
    assert [message.role for message in last.input] == ["tool"]


def test_step_n_of_who_and_when_is_exchange_n(tmp_path: Path) -> None:
    """So its label names an exchange, and a person in between is no model call."""
    document: Json = {
        "question": "How many?",
        "history": [
            {"role": "human", "content": "How many?"},
            {"role": "Orchestrator (thought)", "content": "Let me see."},
            {"role": "user", "name": "Counter_Expert", "content": '{"answer": 3}'},
        ],
        "mistake_agent": "Counter_Expert",
        "mistake_step": "2",
        "mistake_reason": "It is four.",
    }
    assert is_who_and_when(document)
    first, second, third = calls_on(run_of("W", read_who_and_when(document)), tmp_path)
    assert first == (("run", "human"), "tool:human")
    assert isinstance(second[1], ModelCall)
    assert third[0] == ("run", "Counter_Expert")
    assert isinstance(third[1], ModelCall)
    assert third[1].text == '{"answer": 3}'
    blamed = blamed_in(document)
    assert blamed is not None
    assert (blamed.exchange, blamed.agent, blamed.reason) == (2, "Counter_Expert", "It is four.")


def test_a_session_of_claude_code_is_calls_and_their_tools(tmp_path: Path) -> None:
    """A message in several pieces is one call; the next question brings the tool's result."""
    thinks: Json = {"id": "m1", "model": "c", "content": [{"type": "thinking", "thinking": "Hm."}]}
    asks: Json = {
        "id": "m1",
        "model": "c",
        "usage": {"input_tokens": 3, "cache_read_input_tokens": 4, "output_tokens": 5},
        "content": [{"type": "tool_use", "id": "t", "name": "Bash", "input": {"command": "ls"}}],
    }
    heard: Json = [{"type": "tool_result", "tool_use_id": "t", "content": "a.py"}]
    document: list[Json] = [
        {"type": "user", "message": {"role": "user", "content": "What is there?"}},
        {"type": "assistant", "message": thinks},
        {"type": "assistant", "message": asks},
        {"type": "user", "message": {"role": "user", "content": heard}},
        {"type": "assistant", "message": {"id": "m2", "content": "One file."}},
    ]
    assert is_claude_code(document)
    run = run_of("Claude Code", read_claude_code(document))
    (_, first), (_, tool), (_, last) = calls_on(run, tmp_path)
    assert isinstance(first, ModelCall)
    assert isinstance(last, ModelCall)
    assert first.output[0].parts == (
        ReasoningPart("Hm."),
        ToolCallPart("t", "Bash", {"command": "ls"}),
    )
    assert first.usage is not None
    assert (first.usage.input_tokens, first.usage.output_tokens) == (7, 5)
    assert tool == "tool:Bash"
    assert last.input[0].parts == (ToolCallResponsePart("t", "a.py"),)
    assert last.text == "One file."
    both_sides: Json = {"messages": [{"direction": "recv", "message": each} for each in document]}
    assert is_claude_code(both_sides)
    assert read_claude_code(both_sides) == read_claude_code(document)


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("2023-11-14T22:13:20Z", BEGAN),
        ("2023-11-14 22:13:20", BEGAN),
        (1_700_000_000, BEGAN),
        (1_700_000_000_000, BEGAN),
        ("1700000000000000000", BEGAN),
        ("yesterday", None),
        (True, None),
        (-1, None),
        ("9" * 400, None),
    ],
)
def test_times_are_read_in_each_unit(written: Json, expected: int | None) -> None:
    """Seconds, milliseconds, nanoseconds, ISO 8601."""
    assert nanoseconds(written) == expected


def test_a_real_file_of_another_kind_is_not_taken_for_a_trace() -> None:
    """A document is recognised by its own fields, or not at all."""
    package: Json = json.loads('{"name": "left-pad", "version": "1.0.0", "dependencies": {}}')
    checks = (is_otlp, is_sdk, is_langfuse, is_langsmith, is_atif, is_who_and_when)
    assert not any(check(package) for check in checks)
