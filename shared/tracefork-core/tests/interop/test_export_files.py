"""A run is written as a trajectory, or as an archive of its requests."""

from __future__ import annotations

import base64
import json
from pathlib import Path

import pytest
from atif import Trajectory
from pydantic import ValidationError

from tracefork_core.exchange.contract import Head, Request
from tracefork_core.interop.exporting import atif, har
from tracefork_core.interop.importing.foreign_run import ForeignExchange, ForeignRun
from tracefork_core.interop.importing.recognise import import_file
from tracefork_core.interop.importing.recording import write
from tracefork_core.providers import model_call
from tracefork_core.tape import Tape

from .runs import SAID, anthropic, openai_chat, run


def chat(*messages: tuple[str, str], answer: str) -> ForeignExchange:
    """Return a chat completion with these messages."""
    asked = {"model": "m", "messages": [{"role": role, "content": text} for role, text in messages]}
    answered = {"choices": [{"message": {"role": "assistant", "content": answer}}]}
    return ForeignExchange(
        Request(
            "POST",
            "https://api.openai.com/v1/chat/completions",
            (),
            json.dumps(asked).encode(),
            "httpx",
        ),
        Head(200, "OK", ()),
        (json.dumps(answered).encode(),),
    )


def trajectory(folder: Path, *exchanges: ForeignExchange) -> Trajectory:
    """Return the trajectory of a run, read by the models of the format."""
    target = folder / "run.tape"
    write(ForeignRun("test", list(exchanges)), Path("o"), b"", target)
    with Tape.open(target) as tape:
        return Trajectory.model_validate(atif.document(tape, "desk"))


def test_a_trajectory_is_valid_and_says_each_thing_once(tmp_path: Path) -> None:
    """A transcript that is sent again with each call is one line of turns."""
    first = chat(("system", "Be brief."), ("user", "One?"), answer="1")
    second = chat(
        ("system", "Be brief."), ("user", "One?"), ("assistant", "1"), ("user", "Two?"), answer="2"
    )
    written = trajectory(tmp_path, first, second)
    assert written.schema_version == "ATIF-v1.8"
    assert [(step.source, step.message) for step in written.steps] == [
        ("system", "Be brief."),
        ("user", "One?"),
        ("agent", "1"),
        ("user", "Two?"),
        ("agent", "2"),
    ]


def test_reasoning_tools_and_counts_are_in_their_places(tmp_path: Path) -> None:
    """Also images and files, which the format keeps apart, are named."""
    written = trajectory(tmp_path, anthropic(0), openai_chat(1))
    thinking = next(step for step in written.steps if step.reasoning_content)
    assert thinking.reasoning_content == "Where is it?"
    assert thinking.tool_calls is not None
    assert [(call.function_name, call.arguments) for call in thinking.tool_calls] == [
        ("find", {"id": "4711"})
    ]
    assert thinking.metrics is not None
    assert (thinking.metrics.prompt_tokens, thinking.metrics.cached_tokens) == (7, 2)
    assert any(f"{SAID}\n[blob]\n[uri]\n[file]" == step.message for step in written.steps)
    assert written.final_metrics is not None
    assert written.final_metrics.total_completion_tokens == 16


def test_the_results_of_tools_are_with_the_turn_that_asked(tmp_path: Path) -> None:
    """The next question brings them."""
    answered = anthropic(0)
    asked = json.loads(answered.request.body)
    said = json.loads(b"".join(answered.chunks))
    asked["messages"] += [
        {"role": "assistant", "content": said["content"]},
        {
            "role": "user",
            "content": [{"type": "tool_result", "tool_use_id": "t1", "content": "in Oslo"}],
        },
    ]
    later = anthropic(1)
    later.request = later.request._replace(body=json.dumps(asked).encode())
    written = trajectory(tmp_path, answered, later)
    first = next(step for step in written.steps if step.source == "agent")
    assert first.observation is not None
    assert [(each.source_call_id, each.content) for each in first.observation.results] == [
        ("t1", "in Oslo")
    ]


def test_a_trajectory_comes_back_with_its_turns(tmp_path: Path) -> None:
    """What was exported is imported again; a document that breaks the format is not valid."""
    document = json.loads(trajectory(tmp_path, anthropic(0)).model_dump_json(exclude_none=True))
    (tmp_path / "run.json").write_text(json.dumps(document))
    import_file(tmp_path / "run.json", tmp_path / "back.tape")
    with Tape.open(tmp_path / "back.tape") as tape:
        calls = [call for exchange in tape.exchanges if (call := model_call(exchange))]
    assert [call.text.splitlines()[-1] for call in calls] == ["I look."]
    with pytest.raises(ValidationError):
        Trajectory.model_validate(document | {"steps": [{"step_id": 7}]})


def test_an_archive_has_the_requests_as_they_were(tmp_path: Path) -> None:
    """Bodies, headers, times and chunks; a call of a tool is no request."""
    with Tape.open(run(tmp_path)) as tape:
        log = har.document(tape, content=True)["log"]
        recorded = tape.exchanges[0]
        assert [entry["request"]["method"] for entry in log["entries"]] == ["POST"] * 3 + ["GET"]
        first = log["entries"][0]
        assert first["request"]["postData"]["text"].encode() == recorded.request_body
        assert first["response"]["content"]["text"].encode() == recorded.response_body
        assert first["time"] == 1000
        assert first["timings"] == {"send": 0, "wait": 500, "receive": 500}
        failed = log["entries"][3]["response"]
        assert (failed["status"], failed["_error"].partition(":")[0]) == (0, "ConnectTimeout")
        without = json.dumps(har.document(tape, content=False))
    assert SAID not in without
    assert "/v1/parcels" in without


def test_a_body_that_is_not_text_is_base64(tmp_path: Path) -> None:
    """And comes back as the same bytes."""
    data = bytes(range(256))
    exchange = ForeignExchange(
        Request("GET", "https://example.com/a.png", (), b"", "httpx"),
        Head(200, "OK", (("Content-Type", "image/png"),)),
        (data[:100], data[100:]),
    )
    write(ForeignRun("test", [exchange]), Path("o"), b"", tmp_path / "run.tape")
    with Tape.open(tmp_path / "run.tape") as tape:
        (entry,) = har.document(tape, content=True)["log"]["entries"]
    held = entry["response"]["content"]
    assert held["encoding"] == "base64"
    assert base64.b64decode(held["text"]) == data
    assert entry["_chunks"]["sizes"] == [100, 156]
