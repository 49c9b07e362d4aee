"""Recorded sessions of real providers over websockets, played by a local server, replay."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from websockets.sync.server import ServerConnection

from tracefork_core import DivergenceError, Tape, record, replay
from tracefork_core.providers.decode import model_call
from tracefork_testkit.websocket import websocket_server

from .talkers import TALKERS, Step

TRAFFIC = Path(__file__).parents[5] / "shared" / "real" / "websocket"
SESSIONS = 18
"""How many cassettes hold messages; the other four hold requests only."""
_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

pytestmark = pytest.mark.skipif(
    not TRAFFIC.is_dir(), reason="recorded traffic of real providers is not ours to publish"
)
Messages = list[tuple[str, str]]


def sessions() -> dict[str, Messages]:
    """Return the messages of each session, in order, with their directions."""
    read: dict[str, Messages] = {}
    for path in sorted(TRAFFIC.rglob("*.yaml")):
        entries: list[dict[str, Any]] = yaml.load(path.read_bytes(), Loader=_LOADER)["interactions"]
        messages = [
            (entry["direction"], json.dumps(entry["data"]))
            for entry in entries
            if entry.get("kind") == "message"
        ]
        if messages:
            read[f"{path.parent.name}/{path.stem}"] = messages
    return read


def steps_of(messages: Messages) -> list[Step]:
    """Return what an agent does in a session: send a message, or read one."""
    return [text if direction == "sent" else 1 for direction, text in messages]


def playing(messages: Messages) -> Any:
    """Return a server that plays its side of a session, and insists on the other."""

    def play(connection: ServerConnection) -> None:
        for direction, text in messages:
            if direction == "received":
                connection.send(text)
            else:
                assert connection.recv() == text
        assert list(connection) == []

    return play


def path_of(name: str) -> str:
    return "/ws/v1.BidiGenerateContent" if "google" in name else "/v1/realtime?model=gpt-realtime"


@pytest.mark.parametrize("library", TALKERS)
def test_every_session_replays(tmp_path: Path, library: str) -> None:
    """All of them: the agent gets every message in order, without a server."""
    talk, replayed = TALKERS[library], list[str]()
    for name, messages in sessions().items():
        tape, steps = tmp_path / f"{len(replayed)}.tape", steps_of(messages)
        with websocket_server(playing(messages)) as url, record(tape):
            recorded = talk(url + path_of(name), steps)
        assert recorded == [text for direction, text in messages if direction == "received"], name
        with replay(tape):
            assert talk(url + path_of(name), steps) == recorded, name
        replayed.append(name)
    assert len(replayed) == SESSIONS


def test_every_session_shows_its_model_calls(tmp_path: Path) -> None:
    """What a model said, or the tool that it called, is read from each of them."""
    silent, talk = [], TALKERS["websockets, threads"]
    for number, (name, messages) in enumerate(sessions().items()):
        path = tmp_path / f"{number}.tape"
        with websocket_server(playing(messages)) as url, record(path):
            talk(url + path_of(name), steps_of(messages))
        with Tape.open(path) as tape:
            calls = [call for it in tape.exchanges if (call := model_call(it)) is not None]
        if not any(call.output for call in calls):
            silent.append(name)
    assert silent == []


def test_a_session_with_one_other_message_diverges(tmp_path: Path) -> None:
    """The negative control: the last message of the agent differs in one letter."""
    name, messages = next(iter(sessions().items()))
    talk, steps, path = TALKERS["websockets, threads"], steps_of(messages), tmp_path / "a.tape"
    with websocket_server(playing(messages)) as url, record(path):
        talk(url + path_of(name), steps)
    last, text = max((n, step) for n, step in enumerate(steps) if isinstance(step, str))
    steps[last] = f"{text} "
    with pytest.raises(DivergenceError), replay(path):
        talk(url + path_of(name), steps)
