"""Each exchange is in the step of its run, agent, turn, model call or tool."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from agents import (
    GuardrailFunctionOutput,
    InputGuardrailTripwireTriggered,
    RunConfig,
    Runner,
    function_tool,
    handoff,
    input_guardrail,
    set_tracing_disabled,
)
from agents.tracing import (
    TracingProcessor,
    get_trace_provider,
    set_trace_processors,
)

import tracefork_core as tracefork

Call = Callable[..., Any]
RUN = "run:Agent workflow"
NESTED = f"{RUN} ▸ agent:Specialist ▸ turn:turn 1 ▸ model:gpt-5-mini"
DESK = [
    f"{RUN} ▸ agent:Triage ▸ turn:turn 1 ▸ model:gpt-5-mini",
    f"{RUN} ▸ agent:Triage ▸ turn:turn 1 ▸ handoff:Billing",
    f"{RUN} ▸ agent:Billing ▸ turn:turn 2 ▸ model:gpt-5-mini",
    f"{RUN} ▸ agent:Billing ▸ turn:turn 2 ▸ tool:refund",
    f"{RUN} ▸ agent:Billing ▸ turn:turn 2 ▸ tool:specialist ▸ {NESTED}",
    f"{RUN} ▸ agent:Billing ▸ turn:turn 3 ▸ model:gpt-5-mini",
]


@function_tool
def refund(order: int) -> str:
    """Refund an order."""
    return f"refunded {order}"


def desk(agent: Call, **options: Any) -> Any:
    """Triage hands off to Billing, which calls a tool and an agent at once."""
    specialist = agent("Specialist", "@say Yes.", **options).as_tool("specialist", "Ask it.")
    calls = '@call refund {"order": 7}\n@call specialist {"input": "@say Go on."}'
    words = f"@then\n{calls}\n@then\n@say Done."  # The hand-off is a turn of its own.
    billing = agent("Billing", words, tools=[refund, specialist], **options)
    return agent("Triage", "@call transfer_to_billing {}", handoffs=[billing], **options)


@pytest.fixture
def tracing() -> Any:
    """Tracing as it is without the variable that the other tests set, but without exports."""
    set_trace_processors([])
    set_tracing_disabled(False)
    yield
    get_trace_provider()._manual_disabled = None


@pytest.mark.parametrize("chat", [False, True])
def test_exchanges_belong_to_agents_turns_and_tools(
    agent: Call,
    ask: Call,
    twice: Call,
    paths: Call,
    chat: bool,
) -> None:
    """A hand-off, parallel calls and an agent as a tool each have their place."""
    recorded, again = twice(lambda: ask(desk(agent, chat=chat), "Refund order 7."))
    assert again.final_output == recorded.final_output
    assert recorded.final_output.startswith("Done.")
    assert sorted(paths()) == sorted(DESK)


@pytest.mark.parametrize("how", ["none", "variable", "function", "run"])
def test_steps_are_complete_however_tracing_is_disabled(
    agent: Call,
    ask: Call,
    twice: Call,
    paths: Call,
    tracing: None,
    monkeypatch: pytest.MonkeyPatch,
    how: str,
) -> None:
    """The variable, the function and the option of a run each switch off what we do not need."""
    if how == "variable":
        get_trace_provider()._manual_disabled = None
        monkeypatch.setattr(get_trace_provider(), "_env_disabled", True)
    if how == "function":
        set_tracing_disabled(True)
    config = RunConfig(tracing_disabled=how == "run")
    twice(lambda: ask(desk(agent), "Refund order 7.", config))
    assert sorted(paths()) == sorted(DESK)


class Heard(TracingProcessor):
    """Writes down the types of the spans that the program's own processor gets."""

    def __init__(self) -> None:
        self.types: list[str] = []

    def on_trace_start(self, trace: Any) -> None:
        self.types.append("trace")

    def on_trace_end(self, trace: Any) -> None: ...

    def on_span_start(self, span: Any) -> None:
        assert span.trace_id.startswith("trace_")
        self.types.append(span.span_data.type)

    def on_span_end(self, span: Any) -> None: ...

    def shutdown(self) -> None: ...

    def force_flush(self) -> None: ...


def test_the_users_processors_hear_a_recording_and_no_replay(
    agent: Call, ask: Call, twice: Call, tracing: None
) -> None:
    """A recording exports what a run without a session exports; a replay exports nothing."""
    heard = Heard()
    set_trace_processors([heard])
    ask(agent("Helper", "@say Hi."), "Hello.")
    plain, heard.types = heard.types, []
    assert plain == ["trace", "task", "agent", "turn", "response"]
    twice(lambda: ask(agent("Helper", "@say Hi."), "Hello."))
    assert heard.types == plain


def test_runs_and_turns_are_steps_where_their_spans_are_left_out(
    agent: Call,
    ask: Call,
    twice: Call,
    paths: Call,
    tracing: None,
) -> None:
    """An option leaves them out of exports; the tape has them all the same."""
    heard = Heard()
    set_trace_processors([heard])
    config = RunConfig(tracing={"include_task_and_turn_spans": False})
    twice(lambda: ask(desk(agent), "Refund order 7.", config))
    assert sorted(paths()) == sorted(DESK)
    assert {"task", "turn"}.isdisjoint(heard.types)
    assert heard.types.count("agent") == 3


def test_a_handoff_runs_again_and_counts_as_taped(
    agent: Call, ask: Call, twice: Call, tape: Path
) -> None:
    """Its callback may change the context, so a replay runs it; no fork has to be allowed."""
    heard: list[str] = []
    billing = agent("Billing", "@then\n@say Done.")
    to_billing = handoff(billing, on_handoff=lambda context: heard.append("handed off"))
    triage = agent("Triage", "@call transfer_to_billing {}", handoffs=[to_billing])
    twice(lambda: ask(triage, "Hello.").last_agent.name)
    assert heard == ["handed off", "handed off"]
    with tracefork.fork(tape, "agent:Billing", tracefork.Replace(text="Bye.")) as forked:
        assert ask(triage, "Hello.").final_output == "Bye."
    assert (forked.replayed, forked.live) == (2, 0)


def test_parallel_runs_keep_their_steps_apart(
    agent: Call,
    ask: Call,
    twice: Call,
    paths: Call,
) -> None:
    """Runs of one loop that overlap do not get into each other's steps."""

    async def both() -> list[str]:
        agents = [agent(f"Helper {n}", "@slow 0.02\n@say Hi.") for n in range(4)]
        results = await asyncio.gather(*(Runner.run(one, "Hello.") for one in agents))
        return [result.final_output for result in results]

    recorded, again = twice(lambda: asyncio.run(both()))
    assert recorded == again
    assert sorted(paths()) == [
        f"{RUN} ▸ agent:Helper {n} ▸ turn:turn 1 ▸ model:gpt-5-mini" for n in range(4)
    ]


def test_a_tripwire_that_cancels_the_first_call_replays(
    agent: Call, ask: Call, twice: Call, tape: Path
) -> None:
    """The guardrail is faster than the model, whose call ends unanswered on the tape."""

    @input_guardrail
    async def guard(context: Any, of: Any, text: Any) -> GuardrailFunctionOutput:
        await asyncio.sleep(0.1)
        return GuardrailFunctionOutput(None, tripwire_triggered=True)

    def run() -> str:
        with pytest.raises(InputGuardrailTripwireTriggered):
            ask(agent("Helper", "@slow 5\n@say Hi.", input_guardrails=[guard]), "Hello.")
        return "tripped"

    twice(run)
    with tracefork.Tape.open(tape) as opened:
        assert ("guardrail", "guard") in {(step.kind, step.name) for step in opened.steps}


def test_an_abandoned_stream_replays(agent: Call, ask: Call, twice: Call) -> None:
    """The program stops reading in the middle of an answer and cancels the run."""

    async def first_words() -> str:
        words = "@say " + " ".join(["word"] * 200)
        stream = Runner.run_streamed(agent("Helper", words), "Hello.")
        async for event in stream.stream_events():
            if getattr(getattr(event, "data", None), "type", "") == "response.output_text.delta":
                stream.cancel()
                return str(event.data.delta)
        return ""

    recorded, again = twice(lambda: asyncio.run(first_words()))
    assert recorded == again != ""
