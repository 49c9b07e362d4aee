"""Record and replay what models are asked over a websocket."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import tracefork_core as tracefork
from tracefork_core.providers import TextPart, model_call

CALLS = "@call lookup {}\n@then\n@say done"


@pytest.mark.parametrize("streamed", [False, True])
def test_a_run_over_a_websocket_replays_without_its_server(
    ask: Any, sockets: Any, tape: Path, calls: list[int], streamed: bool
) -> None:
    """Each answer is one exchange, also where both came over one connection."""
    with tracefork.record(tape) as recording:
        recorded = ask(CALLS, streamed=streamed)
    assert len(sockets.handshakes) == 1
    sockets.stop()
    with tracefork.replay(tape, strict=True) as replayed:
        assert ask(CALLS, streamed=streamed) == recorded
    assert len(calls) == 1
    assert replayed.digest == recording.digest
    assert [it.url.rpartition("/")[2] for it in replayed.tape.exchanges] == [
        "responses",
        "tool:lookup",
        "responses",
    ]


def test_a_request_reads_as_a_call_of_a_model(ask: Any, tape: Path) -> None:
    """`show` prints what was asked and said, with tokens, and nothing of the transport."""
    with tracefork.record(tape):
        ask("@say done")
    with tracefork.Tape.open(tape) as opened:
        (exchange,) = opened.exchanges
        call = model_call(exchange)
        step = next(step for step in opened.steps if step.id == exchange.step)
    assert call is not None
    assert (call.api, call.request_model, call.stream) == ("openai.responses", "gpt-5-mini", True)
    said = call.output[0].parts[0]
    assert isinstance(said, TextPart)
    assert str(said.content).startswith("done")
    assert call.usage is not None
    assert call.usage.output_tokens
    assert "type" not in call.parameters
    assert step.kind == "model"


def test_the_key_of_a_handshake_is_not_on_the_tape(ask: Any, tape: Path) -> None:
    """It is a header of each connection."""
    with tracefork.record(tape):
        ask("@say done")
    assert b"Websocket1234567890" not in tape.read_bytes()


def test_another_question_is_a_divergence(ask: Any, sockets: Any, tape: Path) -> None:
    """Nothing is sent for it."""
    with tracefork.record(tape):
        ask("@say done")
    with pytest.raises(tracefork.DivergenceError, match="/input/0/content"), tracefork.replay(tape):
        ask("@say other")
    assert len(sockets.frames) == 1


def test_a_connection_that_closed_replays(ask: Any, sockets: Any, tape: Path) -> None:
    """The error says how far the answer had come, as when it was recorded."""
    sockets.closes_after = 3
    with tracefork.record(tape), pytest.raises(Exception, match="received 1000") as recorded:
        ask("@say done")
    sockets.stop()
    with (
        tracefork.replay(tape, strict=True),
        pytest.raises(Exception, match="received 1000") as again,
    ):
        ask("@say done")
    assert type(again.value).__name__ == type(recorded.value).__name__
    assert str(again.value) == str(recorded.value)


def test_a_connection_that_was_refused_replays(
    ask: Any, sockets: Any, server: Any, tape: Path
) -> None:
    """The failure has no head: the agent learns that nothing was sent."""
    sockets.stop()
    with tracefork.record(tape), pytest.raises(OSError, match=r"refused|failed") as recorded:
        ask("@say done")
    with (
        tracefork.replay(tape, strict=True),
        pytest.raises(OSError, match=r"refused|failed") as again,
    ):
        ask("@say done")
    assert str(again.value) == str(recorded.value)


def test_an_error_of_the_provider_replays(ask: Any, sockets: Any, tape: Path) -> None:
    """It arrives as an event, and `show` calls it an error."""
    with tracefork.record(tape), pytest.raises(Exception, match="error") as recorded:
        ask("@fail 500")
    sockets.stop()
    with tracefork.replay(tape, strict=True), pytest.raises(Exception, match="error") as again:
        ask("@fail 500")
    assert str(again.value) == str(recorded.value)
    with tracefork.Tape.open(tape) as opened:
        call = model_call(opened.exchanges[0])
    assert call is not None
    assert call.error is not None


def test_an_abandoned_answer_replays(ask: Any, sockets: Any, tape: Path) -> None:
    """The agent read as much of it as when it was recorded."""
    with tracefork.record(tape):
        first = ask("@say one two three four five six seven", stop_after=4)
    sockets.stop()
    with tracefork.replay(tape, strict=True):
        assert ask("@say one two three four five six seven", stop_after=4) == first
