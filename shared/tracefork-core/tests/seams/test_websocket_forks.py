"""A fork at a message of a websocket: what can continue live does, and the rest is refused."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from websockets.sync import client as in_thread
from websockets.sync.server import ServerConnection

from tracefork_core import Edit, Tape, UsageError, WriteError, fork, record, replay
from tracefork_core.providers.decode import model_call
from tracefork_core.providers.prices import cost
from tracefork_testkit.websocket import websocket_server

from .talkers import TALKERS, Step


class Model:
    """A server that counts its answers, in the formats of OpenAI's Responses and Realtime APIs."""

    def __init__(self) -> None:
        self.heard: list[str] = []
        self.inputs: list[str | None] = []
        self.answered = 0
        self.url = ""

    def __call__(self, connection: ServerConnection) -> None:
        assert connection.request is not None
        is_realtime = "/realtime" in connection.request.path
        if is_realtime:
            connection.send(json.dumps({"type": "session.created"}))
        for text in connection:
            message = json.loads(text)
            self.heard.append(message["type"])
            self.inputs.append(message.get("input"))
            if message["type"] == "response.create":
                self._answer(connection, "response.done" if is_realtime else "response.completed")
            elif message["type"] == "session.update":
                connection.send(json.dumps({"type": "session.updated"}))

    def _answer(self, connection: ServerConnection, ending: str) -> None:
        self.answered += 1
        said = {"type": "output_text", "text": f"answer {self.answered}"}
        item = {"type": "message", "role": "assistant", "content": [said]}
        response = {"id": f"resp_{self.answered}", "model": "gpt-4.1", "output": [item]}
        response["usage"] = {"input_tokens": 3, "output_tokens": 2}  # type: ignore[assignment]
        connection.send(json.dumps({"type": "response.created", "response": {}}))
        connection.send(json.dumps({"type": ending, "response": response}))


@pytest.fixture
def model() -> Iterator[Model]:
    model = Model()
    with websocket_server(model) as url:
        model.url = url
        yield model


def ask(socket: Any, message: dict[str, Any]) -> str:
    """Send a question, and return what the model says. Nothing else may come before that."""
    socket.send(json.dumps({"type": "response.create", **message}))
    event = json.loads(socket.recv())
    assert event["type"] == "response.created"
    while event["type"] not in ("response.done", "response.completed"):
        event = json.loads(socket.recv())
    return str(event["response"]["output"][0]["content"][0]["text"])


def responses(model: Model) -> list[str]:
    with in_thread.connect(f"{model.url}/v1/responses") as socket:
        first = ask(socket, {"model": "gpt-4.1", "input": "first"})
        return [first, ask(socket, {"model": "gpt-4.1", "input": f"second after {first}"})]


def realtime(model: Model) -> list[str]:
    with in_thread.connect(f"{model.url}/v1/realtime?model=gpt-realtime") as socket:
        assert "session.created" in str(socket.recv())
        socket.send(json.dumps({"type": "session.update", "session": {}}))
        assert "session.updated" in str(socket.recv())
        return [ask(socket, {}), ask(socket, {"response": {"instructions": "again"}})]


def test_a_question_on_a_websocket_is_a_model_call(tape: Path, model: Model) -> None:
    """Its model, its usage and its answer are read as those of a request of HTTP."""
    with record(tape):
        responses(model)
        realtime(model)
    with Tape.open(tape) as recorded:
        calls = [call for it in recorded.exchanges if (call := model_call(it)) is not None]
    assert [(call.api, call.request_model) for call in calls] == [
        *[("openai.responses", "gpt-4.1")] * 2,
        *[("openai.realtime", "gpt-realtime")] * 2,
    ]
    assert [call.usage.input_tokens for call in calls if call.usage] == [3] * 4
    assert calls[0].output[0].parts[0].content == "answer 1"  # type: ignore[union-attr]
    prices = [cost(replace(call, provider="openai"), None) for call in calls]
    assert [price is None for price in prices] == [False, False, True, True]


def test_a_fork_asks_the_responses_api_live_and_sends_nothing_again(
    tape: Path, model: Model
) -> None:
    """Each question carries its input, so a new connection needs nothing else."""
    with record(tape):
        assert responses(model) == ["answer 1", "answer 2"]
    model.heard.clear()
    with fork(tape, at=2) as branch:
        assert responses(model) == ["answer 1", "answer 3"]
    assert model.heard == ["response.create"]
    assert (branch.replayed, branch.live) == (2, 1)
    with replay(branch.path):
        assert responses(model) == ["answer 1", "answer 3"]


@pytest.mark.parametrize("library", TALKERS)
def test_every_library_continues_a_fork_live(tape: Path, model: Model, library: str) -> None:
    """The replayed beginning has no connection; the first live message opens one."""
    asked = [json.dumps({"type": "response.create", "input": text}) for text in ("one", "two")]
    steps: list[Step] = [asked[0], 2, asked[1], 2, asked[1], 2]
    url = f"{model.url}/v1/responses"
    with record(tape):
        recorded = TALKERS[library](url, steps)
    with fork(tape, at=2) as branch:
        seen = TALKERS[library](url, steps)
    assert seen[:2] == recorded[:2]
    assert ["answer 4" in seen[3], "answer 5" in seen[5]] == [True, True]
    assert model.inputs[3:] == ["two", "two"]
    with replay(branch.path):
        assert TALKERS[library](url, steps) == seen


def test_a_fork_gives_another_answer(tape: Path, model: Model) -> None:
    """The question after it differs, and is asked live on a new connection."""
    with record(tape):
        responses(model)
    with fork(tape, at=1, replace="something else") as branch:
        assert responses(model) == ["something else", "answer 3"]
    with replay(branch.path):
        assert responses(model) == ["something else", "answer 3"]


def test_a_fork_changes_a_question(tape: Path, model: Model) -> None:
    """What is sent is changed, and so is what follows from the answer."""
    with record(tape):
        responses(model)
    with fork(tape, at=1, replace=Edit(values={"/input": "another"})):
        assert responses(model) == ["answer 3", "answer 4"]
    assert model.inputs[2:] == ["another", "second after answer 3"]


def test_a_fork_sets_a_realtime_session_up_again(tape: Path, model: Model) -> None:
    """What the server says to that is dropped: the agent has it from the tape."""
    with record(tape):
        assert realtime(model) == ["answer 1", "answer 2"]
    model.heard.clear()
    with fork(tape, at=2) as branch:
        assert realtime(model) == ["answer 3", "answer 4"]
    assert model.heard == ["session.update", "response.create", "response.create"]
    with replay(branch.path):
        assert realtime(model) == ["answer 3", "answer 4"]


def test_a_fork_behind_an_answer_of_a_realtime_session_is_refused(tape: Path, model: Model) -> None:
    """To ask the model again would give, and cost, other answers than the recorded ones."""
    with record(tape):
        realtime(model)
    model.heard.clear()
    with pytest.raises(UsageError, match=r"would not\. Fork at that message"), fork(tape, at=3):
        realtime(model)
    assert model.heard == []


def test_a_fork_refuses_messages_of_an_unknown_protocol(tape: Path, model: Model) -> None:
    """They may have side effects, as any request of HTTP that is not known to read."""

    def order(_: Model) -> None:
        with in_thread.connect(f"{model.url}/orders") as socket:
            socket.send(json.dumps({"type": "buy"}))

    with record(tape):
        order(model)
    with pytest.raises(WriteError, match="SEND"), fork(tape, at=1):
        order(model)
    with fork(tape, at=1, writes="allow") as branch:
        order(model)
    assert branch.live == 1
    assert model.heard == ["buy", "buy"]
