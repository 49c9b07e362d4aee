"""Which clients are recorded, and what becomes of the others."""

from __future__ import annotations

import gc
import io
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import boto3
import pytest
from botocore.awsrequest import AWSResponse
from urllib3.response import HTTPResponse

import tracefork_bedrock
import tracefork_core as tracefork
from tracefork_bedrock import attempts, clients
from tracefork_testkit import ProviderServer

from .conftest import HELLO, KEYS, both, client_at, exchanges


@pytest.fixture(autouse=True)
def _nothing_added() -> Iterator[None]:
    yield
    clients._added.clear()


def ask(client: Any) -> Any:
    return client.converse(modelId="m", messages=HELLO)


def put(s3: Any) -> Any:
    answer = s3.put_object(Bucket="a-bucket", Key="a/key", Body=b"<some/>")
    return answer["ResponseMetadata"]["HTTPStatusCode"]


def s3_at(server: ProviderServer) -> Any:
    """Return a client of S3 at an address that echoes."""
    return client_at(server, "s3", endpoint_url=f"{server.url}/echo")


def test_clients_made_before_and_in_a_session_are_recorded(
    server: ProviderServer, client: Any, tape: Path
) -> None:
    """Neither needs a change."""

    def run() -> Any:
        return ask(client), ask(client_at(server))

    recorded, replayed = both(tape, run)
    assert replayed == recorded
    assert len(exchanges(tape)) == 2
    assert ask(client) != recorded[0]


def test_a_client_is_left_as_it_was(server: ProviderServer, client: Any, tape: Path) -> None:
    """Its events have no handler of ours once the session is over, and those of others stay."""
    called: list[Any] = []
    client.meta.events.register(
        "before-send.bedrock-runtime", lambda **options: called.append(options)
    )
    of_ours = attempts._HANDLERS["before-send"]
    with tracefork.record(tape):
        ask(client)
        assert of_ours in handlers_of(client)
    ask(client)
    assert of_ours not in handlers_of(client)
    assert len(called) == 2


def handlers_of(client: Any) -> list[Any]:
    """Return what is called before a request is sent, without calling it."""
    emitter = client.meta.events._emitter
    return list(emitter._handlers.prefix_search("before-send.bedrock-runtime.Converse"))


def test_an_attached_client_is_recorded_with_ambient_off(
    server: ProviderServer, client: Any, tape: Path
) -> None:
    """No other is, until it is attached, and not after it is detached."""
    other = client_at(server)
    assert tracefork_bedrock.attach(client) is client
    tracefork_bedrock.attach(client)

    def run() -> Any:
        return ask(client)

    recorded, replayed = both(tape, run, ambient=False)
    assert replayed == recorded
    assert len(exchanges(tape)) == 1
    with tracefork.record(tape, ambient=False, overwrite=True):
        ask(other)
        ask(tracefork_bedrock.detach(client))
    assert exchanges(tape) == []


def test_an_attached_session_records_its_later_clients(server: ProviderServer, tape: Path) -> None:
    """Those of Bedrock, and those of the services that it names."""
    session = tracefork_bedrock.attach(boto3.Session(**KEYS), services=["s3"])
    given = {"region_name": "us-east-1", "endpoint_url": server.url}
    bedrock = session.client("bedrock-runtime", **given)
    s3 = session.client("s3", **{**given, "endpoint_url": f"{server.url}/echo"})
    tables = session.client("dynamodb", **{**given, "endpoint_url": f"{server.url}/echo"})

    def run() -> Any:
        return ask(bedrock), put(s3)

    recorded, replayed = both(tape, run, ambient=False)
    assert replayed == recorded
    assert len(exchanges(tape)) == 2
    with tracefork.record(tape, ambient=False, overwrite=True):
        tables.list_tables()
    assert exchanges(tape) == []
    tracefork_bedrock.detach(session)
    for client in (bedrock, s3, tables):
        client.close()


def test_what_is_no_client_cannot_be_attached() -> None:
    """Nor can a service that boto3 does not have."""
    with pytest.raises(tracefork.UsageError, match="neither a client nor a session"):
        tracefork_bedrock.attach(object())
    with pytest.raises(tracefork.UsageError, match="no service 's33'"):
        tracefork_bedrock.attach(boto3.Session(), services=["s33"])


@pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning")
def test_another_service_is_named_as_not_captured(server: ProviderServer, tape: Path) -> None:
    """It is no silent hole: the receipt names where it went, and a replay refuses it."""
    s3 = s3_at(server)
    with tracefork.record(tape) as recording:
        put(s3)
    assert exchanges(tape) == []
    assert recording.receipt is not None
    assert recording.receipt.strays == [f"127.0.0.1:{server.port}"]
    fresh = s3_at(server)
    asked = len(server.requests)
    with pytest.raises(tracefork.EgressError, match=str(server.port)), tracefork.replay(tape):
        put(fresh)
    gc.collect()  # The guard refused a socket, which urllib3 closes after errors of the OS only.
    assert len(server.requests) == asked


def test_an_added_service_is_recorded(server: ProviderServer, tape: Path, tmp_path: Path) -> None:
    """Its bodies may be files, and its calls are writes of the agent."""
    file = tmp_path / "file.xml"
    file.write_text("<a>of a file</a>")
    tracefork_bedrock.add_services("s3", "dynamodb")
    s3, tables = s3_at(server), client_at(server, "dynamodb", endpoint_url=f"{server.url}/echo")

    def run() -> Any:
        with file.open("rb") as opened:
            s3.put_object(Bucket="a-bucket", Key="a/key", Body=opened)
        return put(s3), tables.list_tables()["ResponseMetadata"]["HTTPStatusCode"]

    recorded, replayed = both(tape, run)
    assert recorded == (200, 200)
    assert replayed == recorded
    assert len(exchanges(tape)) == 3
    assert file.read_bytes() in server.requests[0].body


def test_what_a_mock_answers_is_no_exchange(
    server: ProviderServer, client: Any, tape: Path
) -> None:
    """moto and others answer in `before-send`: such a request leaves no process."""

    def mock(request: Any, **_: Any) -> AWSResponse:
        message = b'{"role": "assistant", "content": [{"text": "mocked"}]}'
        body = b'{"stopReason": "end_turn", "output": {"message": %b}}' % message
        raw = HTTPResponse(io.BytesIO(body), preload_content=False)
        return AWSResponse(request.url, 200, {}, raw)

    client.meta.events.register("before-send.bedrock-runtime", mock)
    with tracefork.record(tape):
        assert ask(client)["stopReason"] == "end_turn"
    assert exchanges(tape) == []
    assert not server.requests


def test_threads_get_their_own_answers_in_the_recorded_order(tape: Path) -> None:
    """The order in which they ask is another one in the replay: the barrier sees to that."""
    order: list[str] = []

    def run(first: str, second: str, client: Any) -> dict[str, Any]:
        answers: dict[str, Any] = {}
        begun = threading.Event()

        def work(name: str, wait: bool) -> None:
            if wait:
                begun.wait(10)
            else:
                begun.set()
            asked: Any = [{"role": "user", "content": [{"text": f"@slow 0.1\n@say {name}"}]}]
            answers[name] = client.converse(modelId="m", messages=asked)["output"]
            order.append(name)

        threads = [
            threading.Thread(target=work, args=(name, name == second), name=name)
            for name in ("one", "two")
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert first in answers
        return answers

    with ProviderServer(nondeterministic=True) as server:
        client = client_at(server)
        with tracefork.record(tape):
            recorded = run("one", "two", client)
        was = list(order)
        order.clear()
        with tracefork.replay(tape):
            assert run("two", "one", client) == recorded
    assert order == was


PROGRAM = """
import sys
import boto3
client = boto3.client("bedrock-runtime", region_name="us-east-1", endpoint_url=sys.argv[1])
client.converse(modelId="m", messages=[{"role": "user", "content": [{"text": "who are you"}]}])
"""


@pytest.mark.many_processes
def test_a_child_process_is_not_recorded_and_named(
    server: ProviderServer, tape: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No adapter runs there: the receipt names where it went, and a replay refuses it."""
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    for name in ("aws_access_key_id", "aws_secret_access_key"):
        monkeypatch.setenv(name.upper(), KEYS[name])

    def run() -> int:
        command = [sys.executable, str(program), server.url]
        return subprocess.run(command, capture_output=True, check=False).returncode

    with tracefork.record(tape) as recording:
        assert run() == 0
    assert exchanges(tape) == []
    assert recording.receipt is not None
    assert recording.receipt.strays == [f"127.0.0.1:{server.port}"]
    with pytest.raises(tracefork.EgressError, match=str(server.port)), tracefork.replay(tape):
        assert run() != 0
    assert len(server.requests) == 1
