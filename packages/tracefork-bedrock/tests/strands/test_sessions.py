"""Replay and fork agents that remember conversations of earlier runs."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

import boto3
import pytest
from botocore.config import Config
from strands.session import FileSessionManager, RepositorySessionManager, S3SessionManager
from strands.session.session_repository import SessionRepository
from strands.types.exceptions import SessionException

import tracefork_core as tracefork
from tracefork_testkit import ProviderServer
from tracefork_testkit.http1 import Delivery, ReceivedRequest

KEYS = {
    "aws_access_key_id": "AKIAEXAMPLEOFTRACE4",
    "aws_secret_access_key": "secret-of-the-example/0123456789abcdef",
}
Call = Callable[..., Any]
_NEW = "strands.storage"
"""The module of Strands that not all versions have."""


class _Own(SessionRepository):
    """A repository of the program's own."""

    def __init__(self) -> None:
        self.records: dict[Any, Any] = {}

    def create_session(self, session: Any, **_: Any) -> Any:
        if self.records.setdefault(session.session_id, session) is not session:
            raise SessionException("There is such a session.")
        return session

    def read_session(self, session_id: str, **_: Any) -> Any:
        return self.records.get(session_id)

    def create_agent(self, session_id: str, session_agent: Any, **_: Any) -> None:
        self.records[session_id, session_agent.agent_id] = session_agent

    def read_agent(self, session_id: str, agent_id: str, **_: Any) -> Any:
        return self.records.get((session_id, agent_id))

    update_agent = create_agent

    def create_message(self, session_id: str, agent_id: str, session_message: Any, **_: Any) -> Any:
        self.records[session_id, agent_id, session_message.message_id] = session_message

    update_message = create_message

    def read_message(self, session_id: str, agent_id: str, message_id: int, **_: Any) -> Any:
        return self.records.get((session_id, agent_id, message_id))

    def list_messages(
        self, session_id: str, agent_id: str, limit: Any = None, offset: int = 0, **_: Any
    ) -> Any:
        keys = [key for key in self.records if len(key) == 3 and key[:2] == (session_id, agent_id)]
        return [self.records[key] for key in sorted(keys)][offset:][:limit]


class OwnStorage:
    """A storage of the program's own."""

    def __init__(self) -> None:
        self._held: dict[str, bytes] = {}

    async def read(self, key: str) -> bytes | None:
        return self._held.get(key)

    async def write(self, key: str, data: bytes) -> None:
        self._held[key] = data

    async def list(self, query: str = "") -> Any:
        return sorted(key for key in self._held if key.startswith(query))

    async def delete(self, key: str) -> None:
        self._held.pop(key, None)


class Bucket(ProviderServer):
    """A bucket of S3 in memory."""

    def __init__(self) -> None:
        super().__init__()
        self.objects: dict[str, bytes] = {}

    def answer(self, received: ReceivedRequest) -> Delivery:
        self._received.append(received)
        url = urlsplit(received.path)
        key = unquote(url.path).removeprefix("/bucket").lstrip("/")
        if not key:
            prefix = parse_qs(url.query)["prefix"][0]
            keys = (name for name in sorted(self.objects) if name.startswith(prefix))
            listed = "".join(f"<Contents><Key>{name}</Key></Contents>" for name in keys)
            return _delivery(200, f"<ListBucketResult>{listed}</ListBucketResult>".encode())
        if received.method == "PUT":
            self.objects[key] = received.body
        if key not in self.objects:
            return _delivery(404, b"<Error><Code>NoSuchKey</Code></Error>")
        return _delivery(200, b"" if received.method == "PUT" else self.objects[key])


def _delivery(status: int, body: bytes) -> Delivery:
    return Delivery(status, [("content-type", "application/xml")], [body])


def _file(folder: Path) -> Callable[[], Any]:
    return lambda: FileSessionManager("42", storage_dir=str(folder))


def _own(_: Path) -> Callable[[], Any]:
    repository = _Own()
    return lambda: RepositorySessionManager("42", repository)


def _snapshot(folder: Path) -> Callable[[], Any]:
    storage = pytest.importorskip(_NEW, reason="this version of Strands has no storages")
    from strands.session import SnapshotSessionManager

    return lambda: SnapshotSessionManager("42", storage=storage.LocalFileStorage(str(folder)))


_KINDS = [_file, _own, _snapshot]


def _answers(agent: Call, manager: Any, *asked: str) -> list[str]:
    helper = agent("Helper", agent_id="helper", session_manager=manager)
    return [str(helper(text)) for text in asked]


def _files(folder: Path) -> dict[str, str]:
    return {
        str(path): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in folder.rglob("*")
        if path.is_file()
    }


@pytest.mark.parametrize("kind", _KINDS)
def test_a_run_replays_with_the_conversation_that_it_began_with(
    agent: Call, server: ProviderServer, tape: Path, tmp_path: Path, kind: Any
) -> None:
    """The recording went on with that conversation, which a replay must neither see nor repeat."""
    make = kind(tmp_path / "sessions")
    _answers(agent, make(), "zero")

    def run() -> list[str]:
        return [*_answers(agent, make(), "one"), *_answers(agent, make(), "two")]

    with tracefork.record(tape):
        recorded = run()
    assert len(server.requests[-1].json()["messages"]) == 5  # It holds what went before.
    later = _answers(agent, make(), "three")
    before = _files(tmp_path / "sessions")
    server.stop()
    with tracefork.replay(tape, strict=True) as replayed:
        assert run() == recorded
    assert replayed.digest == replayed.tape.digest
    assert _files(tmp_path / "sessions") == before
    assert later


@pytest.mark.parametrize("kind", _KINDS)
def test_a_fork_remembers_what_it_said_itself(
    agent: Call, server: ProviderServer, tape: Path, tmp_path: Path, kind: Any
) -> None:
    """Behind the fork point the conversation has the fork's answer in place of the recorded one."""
    make = kind(tmp_path / "sessions")

    def run() -> list[str]:
        return [*_answers(agent, make(), "one"), *_answers(agent, make(), "two")]

    with tracefork.record(tape):
        recorded = run()
    before = _files(tmp_path / "sessions")
    with tracefork.fork(tape, 0, tracefork.Replace(text="Forked.")):
        first, second = run()
    assert first.strip() == "Forked."
    assert second != recorded[1]
    asked = str(server.requests[-1].json()["messages"])
    assert "Forked." in asked
    assert recorded[0].strip() not in asked
    assert _files(tmp_path / "sessions") == before


@pytest.mark.parametrize("kind", _KINDS[:1] + _KINDS[2:])
def test_a_replay_makes_no_folder(agent: Call, twice: Call, tmp_path: Path, kind: Any) -> None:
    """Another machine replays the tape, and has no folder of that name."""
    folder = tmp_path / "sessions"
    make = kind(folder)

    def run() -> list[str]:
        answers = _answers(agent, make(), "one")
        if folder.exists():
            folder.rename(tmp_path / "moved")
        return answers

    recorded, again = twice(run)
    assert recorded == again
    assert not folder.exists()


def test_a_bucket_is_asked_while_recording_only(
    agent: Call, server: ProviderServer, tape: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The tape has what the run read there, and no request, nor a key of AWS."""
    with Bucket() as bucket:
        monkeypatch.setenv("AWS_ENDPOINT_URL_S3", bucket.url)
        config = Config(s3={"addressing_style": "path"}, retries={"total_max_attempts": 1})
        session = boto3.Session(region_name="us-east-1", **KEYS)

        def run() -> list[str]:
            found = []
            for text in ("one", "two"):
                manager = S3SessionManager("42", "bucket", "of", session, config)
                found += _answers(agent, manager, text)
                manager.client.close()
            return found

        run()
        with tracefork.record(tape):
            recorded = run()
        asked, objects = len(bucket.requests), dict(bucket.objects)
        assert len(server.requests[-1].json()["messages"]) == 7
        server.stop()
        with tracefork.replay(tape, strict=True):
            assert run() == recorded
        assert (len(bucket.requests), bucket.objects) == (asked, objects)
    with tracefork.Tape.open(tape) as opened:
        assert len(opened.exchanges) == 2
    assert KEYS["aws_secret_access_key"].encode() not in tape.read_bytes()


def test_a_storage_of_the_programs_own_is_read_again(agent: Call, tape: Path) -> None:
    """Strands asks a storage for four methods, and no class tells a session that it is one."""
    pytest.importorskip(_NEW, reason="this version of Strands has no storages")
    from strands.session import SnapshotSessionManager

    storage = OwnStorage()

    def run() -> None:
        _answers(agent, SnapshotSessionManager("42", storage=storage), "one")

    with tracefork.record(tape):
        run()
    with pytest.raises(tracefork.DivergenceError), tracefork.replay(tape):
        run()


def test_memories_are_searched_while_recording_only(
    agent: Call, twice: Call, server: ProviderServer, tmp_path: Path
) -> None:
    """A tool of Strands runs in replays too, and finds what the recording found."""
    pytest.importorskip(_NEW, reason="this version of Strands has no storages")
    from strands.memory import MemoryManager
    from strands.storage import LocalFileStorage
    from strands.vended_memory_stores.file_memory_store import FileMemoryStore

    folder = tmp_path / "memory" / "memories"
    folder.mkdir(parents=True)
    (folder / "colour.md").write_text("# Colour\nThe colour is blue.")
    words = '@call search_memory {"query": "colour"}\n@call add_memory {"entries": ["# Taste"]}'

    def run() -> list[Any]:
        store = FileMemoryStore(name="memories", storage=LocalFileStorage(str(tmp_path)))
        manager = MemoryManager(stores=[store], add_tool_config=True)
        helper = agent("Helper", words + "\n@then\n@say Done.", memory_manager=manager)
        helper("Which colour?")
        (folder / "colour.md").write_text("# Colour\nThe colour is red.")
        return list(helper.messages)

    recorded, again = twice(run)
    assert recorded == again
    assert "The colour is blue." in str(recorded)
    assert "The colour is blue." in str(server.requests[0].json()["messages"])
    assert (folder / "taste.md").exists()
