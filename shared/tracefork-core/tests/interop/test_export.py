"""A tape is exported as a trace, and comes back from it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from pytest_genai_semconv import GenAISpanComplianceError, assert_genai_span_compliant

from tracefork_core.blaming.engine.probe import Settings
from tracefork_core.blaming.engine.result import Result
from tracefork_core.blaming.report import Report
from tracefork_core.blaming.trials.budget import Budget
from tracefork_core.blaming.trials.trial_journal import Header
from tracefork_core.blaming.trials.units import UnitName
from tracefork_core.exchange.contract import AFTER
from tracefork_core.interop.conventions import BLAME, EXCHANGE
from tracefork_core.interop.exporting import otlp
from tracefork_core.interop.exporting.tape_spans import Choice, spans_of, trace_id
from tracefork_core.interop.importing.recognise import import_file
from tracefork_core.interop.span import Span
from tracefork_core.providers import ModelCall, model_call
from tracefork_core.tape import Tape

from ..blaming.worlds import Agent, errs, judged, plain, ran
from .message_schema import SCHEMAS, violations
from .runs import BEGAN, SAID, SECOND, run


def exported(tape: Path, choice: Choice) -> dict[str, Any]:
    """Return the trace of a tape as OTLP JSON."""
    with Tape.open(tape) as opened:
        spans = list(spans_of(opened, "run", choice))
        return otlp.document(spans, trace_id(opened.digest), {otlp.SERVICE: "run"})


def spans_in(document: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the spans of OTLP JSON."""
    spans: list[dict[str, Any]] = document["resourceSpans"][0]["scopeSpans"][0]["spans"]
    return spans


def brought_back(document: dict[str, Any], folder: Path) -> Path:
    """Return the tape that a trace is imported as."""
    source, target = folder / "trace.json", folder / "back.tape"
    source.write_text(json.dumps(document), encoding="utf-8")
    import_file(source, target)
    return target


def calls_on(path: Path) -> list[ModelCall]:
    """Return the model calls of a tape."""
    with Tape.open(path) as tape:
        return [call for exchange in tape.exchanges if (call := model_call(exchange))]


@pytest.mark.parametrize(
    "choice",
    [Choice(content=True), Choice(content=True, openinference=False)],
    ids=["both", "OpenTelemetry"],
)
def test_every_part_of_every_message_comes_back(choice: Choice, tmp_path: Path) -> None:
    """Texts, reasoning, tools and their results, images, files, what a provider ran itself."""
    tape = run(tmp_path)
    ours, theirs = calls_on(tape), calls_on(brought_back(exported(tape, choice), tmp_path))
    assert len(ours) == len(theirs) == 3
    for before, after in zip(ours, theirs, strict=True):
        assert (after.system, after.input, after.output) == (
            before.system,
            before.input,
            before.output,
        )
        assert (after.api, after.provider, after.tools) == (
            before.api,
            before.provider,
            before.tools,
        )
        assert after.finish_reasons == before.finish_reasons
        assert before.usage is not None
        assert after.usage is not None
        assert after.usage.input_tokens == before.usage.input_tokens
        assert after.usage.output_tokens == before.usage.output_tokens
    kinds = {
        part.type for call in ours for said in (*call.input, *call.output) for part in said.parts
    }
    assert kinds >= {"text", "reasoning", "tool_call", "tool_call_response", "blob", "uri", "file"}
    assert kinds >= {"server_tool_call", "server_tool_call_response", "refusal"}


def test_openinference_alone_keeps_texts_and_tools(tmp_path: Path) -> None:
    """It has no names for some parts; those come back as texts, and nothing is dropped."""
    tape = run(tmp_path)
    document = exported(tape, Choice(content=True, gen_ai=False))
    ours, theirs = calls_on(tape), calls_on(brought_back(document, tmp_path))
    for before, after in zip(ours, theirs, strict=True):
        assert after.text == before.text
        assert after.tool_calls == before.tool_calls
        written = len([part for message in after.input for part in message.parts])
        assert written == len([*before.system, *(p for m in before.input for p in m.parts)])


def test_steps_times_tools_and_errors_come_back(tmp_path: Path) -> None:
    """The tree of steps with its join, the tool's values, and what failed."""
    tape = run(tmp_path)
    back = brought_back(exported(tape, Choice(content=True)), tmp_path)
    with Tape.open(tape) as one, Tape.open(back) as other:
        assert [(step.kind, step.name) for step in other.steps] == [
            (step.kind, step.name) for step in one.steps
        ]
        for before, after in zip(one.exchanges, other.exchanges, strict=True):
            assert after.step_path == before.step_path
            assert after.aside.started == before.aside.started
            assert after.aside.took == before.aside.took
        names = {step.id: step.name for step in other.steps}
        joined = next(step for step in other.steps if step.name == "join")
        assert [names[each] for each in joined.detail[AFTER]] == ["ask", "look"]  # type: ignore[attr-defined]
        called = other.exchanges[3]
        assert (called.url, json.loads(called.request_body)) == ("tool:find", {"id": SAID})
        assert json.loads(called.response_body) == {"place": SAID}
        failed = other.exchanges[4]
        assert failed.failure is not None
        assert SAID in failed.failure.message


def test_a_second_export_is_the_same_trace(tmp_path: Path) -> None:
    """Ids come from the digest, so a collector that has the trace keeps it once."""
    tape = run(tmp_path)
    assert exported(tape, Choice()) == exported(tape, Choice())
    (tmp_path / "other").mkdir()
    same = run(tmp_path / "other")
    assert spans_in(exported(same, Choice())) == spans_in(exported(tape, Choice()))


def test_spans_nest_and_have_the_recorded_times(tmp_path: Path) -> None:
    """Each parent is a span of the trace that begins before its children."""
    spans = spans_in(exported(run(tmp_path), Choice()))
    by_id = {span["spanId"]: span for span in spans}
    assert len(by_id) == len(spans) == 10
    (root,) = [span for span in spans if "parentSpanId" not in span]
    for span in spans:
        if span is not root:
            around = by_id[span["parentSpanId"]]
            assert int(around["startTimeUnixNano"]) <= int(span["startTimeUnixNano"])
    chat = next(span for span in spans if span["name"] == "chat gpt-5-mini")
    assert chat["startTimeUnixNano"] == str(BEGAN)
    assert chat["endTimeUnixNano"] == str(BEGAN + SECOND)
    assert {len(span["traceId"]) for span in spans} == {32}


def test_without_content_nothing_that_was_said_is_written(tmp_path: Path) -> None:
    """Neither messages nor arguments, results, queries of URLs, or texts of errors."""
    tape = run(tmp_path)
    assert SAID in json.dumps(exported(tape, Choice(content=True)))
    told = json.dumps(exported(tape, Choice()))
    for word in SAID.split():
        assert f" {word}" not in told
        assert f"+{word}" not in told
    assert "gpt-5-mini" in told
    assert "ConnectTimeout" in told


def test_spans_comply_with_the_conventions(tmp_path: Path) -> None:
    """As an independent checker of the conventions says; it does refuse a span that does not."""
    with Tape.open(run(tmp_path)) as tape:
        spans = list(spans_of(tape, "run", Choice(content=True)))
        trace = trace_id(tape.digest)
    asked = [span for span in spans if "gen_ai.operation.name" in span.attributes]
    assert len(asked) == 5
    for span in otlp.readable(asked, trace, {otlp.SERVICE: "run"}):
        assert_genai_span_compliant(span)
    broken = Span(id="00000000000000aa", name="chat", attributes=dict(asked[1].attributes))
    del broken.attributes["gen_ai.provider.name"]
    with pytest.raises(GenAISpanComplianceError):
        assert_genai_span_compliant(otlp.readable([broken], trace, {})[0])


def test_messages_have_the_schema_of_the_conventions(tmp_path: Path) -> None:
    """Those of each provider's format, and the tools; a broken one is found."""
    checked = 0
    with Tape.open(run(tmp_path)) as tape:
        for span in spans_of(tape, "run", Choice(content=True)):
            for attribute in SCHEMAS.keys() & span.attributes.keys():
                value = span.attributes[attribute]
                assert isinstance(value, str)
                assert violations(attribute, json.loads(value)) == []
                checked += 1
    assert checked == 9
    broken = [{"role": "user", "parts": [{"type": "blob", "modality": "image"}]}]
    assert violations("gen_ai.input.messages", broken) == ["'content' is a required property"]


def report_of(result: Result) -> Report:
    """Return the report of a blame with this result."""
    names = tuple(UnitName(unit=n, asked="m", step=("m",)) for n in range(5))
    header = Header(
        digest="d",
        units=5,
        seed=0,
        settings=Settings(),
        groups=(),
        agent="a",
        oracle="o",
        regrades=0,
        tail={},
        version="1",
    )
    return Report(tape="run.tape", header=header, budget=Budget(), units=names, result=result)


def test_what_a_blame_found_is_on_the_spans_that_it_names(tmp_path: Path) -> None:
    """Effect, interval and verdict: as attributes, and as an event of the named exchange."""
    agent = Agent(plain(5, u2=errs(0.1)), ran(5, 2), lambda run: float(run[2] == 1))
    result = judged(agent, 1)
    assert result.verdict.units == (2,)
    assert result.decisive is not None
    blamed = report_of(result)
    with Tape.open(run(tmp_path)) as tape:
        spans = list(spans_of(tape, "run", Choice(blame=blamed)))
    root, named = spans[0], next(s for s in spans if s.attributes.get(EXCHANGE) == 2)
    assert root.attributes[f"{BLAME}.verdict"] == result.verdict.kind
    assert root.attributes[f"{BLAME}.exchanges"] == [2]
    assert named.attributes[f"{BLAME}.effect"] == result.decisive.effect
    (event,) = named.events
    low, high = result.decisive.interval
    assert event.name == BLAME
    assert event.attributes[f"{BLAME}.effect.low"] == low
    assert event.attributes[f"{BLAME}.effect.high"] == high
    assert not any(span.events for span in spans if span is not named)
