"""What is written to a tape can be read from it unchanged."""

from __future__ import annotations

import platform
import subprocess
from importlib.metadata import version
from pathlib import Path
from typing import Any

import httpx2
import pytest

from tracefork_core import Tape, record
from tracefork_core.adapters import begin_step, end_step
from tracefork_core.exchange.current import current_step
from tracefork_testkit import ProviderServer


def test_an_exchange_reads_as_it_was_written(
    tape: Path, provider: ProviderServer, http: httpx2.Client
) -> None:
    """Method, URL, headers, bodies, status and reason are those of the wire."""
    with record(tape):
        answer = http.post(
            f"{provider.url}/echo?q=1", content=b"\0\xffbody", headers={"accept": "a/b", "x-y": "z"}
        )
    with Tape.open(tape) as recorded:
        (exchange,) = recorded.exchanges
        assert (exchange.n, exchange.lane, exchange.end) == (0, "main", "eof")
        assert (exchange.method, exchange.url) == ("POST", f"{provider.url}/echo?q=1")
        assert exchange.request_body == b"\0\xffbody"
        assert ("accept", "a/b") in exchange.request.headers
        assert ("x-y", "z") in exchange.request_headers
        assert (exchange.status, exchange.reason) == (200, "OK")
        assert exchange.response_body == b"\0\xffbody"
        assert exchange.response_headers == answer.headers.multi_items()
        assert exchange.aside.seam == "httpx2"
        assert (exchange.aside.caller or "").startswith("test_round_trip.py:")


def test_chunks_keep_their_boundaries(
    tape: Path, provider: ProviderServer, http: httpx2.Client
) -> None:
    """The chunks of a stream are those that arrived."""
    with record(tape), http.stream("GET", f"{provider.url}/chunked?n=4") as answer:
        pieces = list(answer.iter_raw())
    with Tape.open(tape) as recorded:
        assert recorded.exchanges[0].chunks == pieces
        assert recorded.exchanges[0].aside.sizes == [8, 8, 8, 8]


def test_a_failure_keeps_its_kind(
    tape: Path, provider: ProviderServer, http: httpx2.Client
) -> None:
    """An attempt that raised an exception is an exchange with a failure."""
    body = {"messages": [{"role": "user", "content": "@fail reset"}], "model": "m"}
    with record(tape), pytest.raises(httpx2.TransportError) as raised:
        http.post(f"{provider.url}/v1/chat/completions", json=body)
    with Tape.open(tape) as recorded:
        (exchange,) = recorded.exchanges
        assert exchange.failure is not None
        assert (exchange.failure.kind, exchange.end) == (type(raised.value).__name__, "failed")
        assert exchange.failure.message == str(raised.value)
        assert (exchange.status, exchange.response_body) == (None, b"")


def test_steps_read_as_a_graph(tape: Path, provider: ProviderServer, http: httpx2.Client) -> None:
    """Steps have kind, name, parent, detail and end, and an exchange names its step."""
    with record(tape):
        run = begin_step("run", "graph", detail={"nodes": 2})
        model = begin_step("model", "gpt", parent=run)
        token = current_step.set(model)
        http.get(f"{provider.url}/status/200")
        current_step.reset(token)
        end_step(model, ValueError("no"))
        end_step(run, "given up")
    with Tape.open(tape) as recorded:
        first, second = recorded.steps
        assert (first.kind, first.name, first.parent, first.detail) == (
            "run",
            "graph",
            None,
            {"nodes": 2},
        )
        assert (second.parent, second.error) == (first.id, "ValueError('no')")
        assert first.error == "given up"
        assert first.ended is not None
        assert first.ended >= first.started
        assert recorded.step_path(recorded.exchanges[0].step) == ("graph", "gpt")


def test_the_environment_is_that_of_the_recording(
    tape: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """These are Python, platform, package versions and the git commit of the current folder."""
    monkeypatch.chdir(tmp_path)
    for command in (["init", "-q"], ["-c", "user.name=a", "-c", "user.email=a@b", "commit", "-q"]):
        more = ["--allow-empty", "-m", "x"] if command[-2:] == ["commit", "-q"] else []
        subprocess.run(["git", *command, *more], check=True)
    head = subprocess.run(["git", "rev-parse", "HEAD"], capture_output=True, check=True, text=True)
    with record(tape):
        pass
    with Tape.open(tape) as recorded:
        environment = recorded.environment
        assert environment is not None
        assert environment.python == platform.python_version()
        assert environment.platform == platform.platform()
        assert environment.packages["httpx2"] == version("httpx2")
        assert environment.git_commit == head.stdout.strip()


def test_the_commit_of_a_git_worktree_is_found(
    tape: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """There, `.git` is a file with a path, and branches are in the common folder."""
    main, tree = tmp_path / "main", tmp_path / "tree"
    git = ["git", "-C", str(main), "-c", "user.name=a", "-c", "user.email=a@b"]
    subprocess.run(["git", "init", "-q", str(main)], check=True)
    subprocess.run([*git, "commit", "-q", "--allow-empty", "-m", "x"], check=True)
    subprocess.run([*git, "worktree", "add", "-q", str(tree)], check=True)
    monkeypatch.chdir(tree)
    head = subprocess.run(["git", "rev-parse", "HEAD"], capture_output=True, check=True, text=True)
    with record(tape):
        pass
    with Tape.open(tape) as recorded:
        assert recorded.environment is not None
        assert recorded.environment.git_commit == head.stdout.strip()


@pytest.mark.parametrize(
    ("then", "is_known"),
    [
        (["pack-refs", "--all"], True),
        (["checkout", "-q", "--detach"], True),
        (["symbolic-ref", "HEAD", "refs/heads/unborn"], False),
    ],
)
def test_the_commit_is_found_wherever_git_keeps_it(
    tape: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, then: list[str], is_known: bool
) -> None:
    """It may be packed with other refs, or have no branch; without a commit, none is recorded."""
    git = ["git", "-C", str(tmp_path), "-c", "user.name=a", "-c", "user.email=a@b"]
    for words in (
        ["init", "-q"],
        ["commit", "-q", "--allow-empty", "-m", "x"],
        ["branch", "other"],
    ):
        subprocess.run([*git, *words], check=True)
    made = subprocess.run([*git, "rev-parse", "HEAD"], capture_output=True, check=True, text=True)
    subprocess.run([*git, *then], check=True)
    (tmp_path / "inside").mkdir()
    monkeypatch.chdir(tmp_path / "inside")
    with record(tape):
        pass
    with Tape.open(tape) as recorded:
        assert recorded.environment is not None
        assert recorded.environment.git_commit == (made.stdout.strip() if is_known else None)


def test_the_receipt_says_what_the_tape_holds(
    tape: Path, provider: ProviderServer, http: httpx2.Client
) -> None:
    """It counts exchanges and connections, and is the same on the tape."""
    with record(tape) as run:
        http.get(f"{provider.url}/status/200")
        http.get(f"{provider.url}/status/404")
    with Tape.open(tape) as recorded:
        assert recorded.complete
        assert recorded.receipt == run.receipt
        assert run.receipt is not None
        assert (run.receipt.exchanges, run.receipt.outcome) == (2, "ok")
        assert (run.receipt.connections, run.receipt.crossed) == (1, 1)
        assert run.receipt.digest == recorded.digest


def test_a_closed_tape_is_one_plain_file(
    tape: Path, provider: ProviderServer, http: httpx2.Client
) -> None:
    """There is no log, even if the tape was read while it was written."""
    with record(tape):
        http.get(f"{provider.url}/status/200")
        with Tape.open(tape) as growing:
            assert (growing.complete, len(growing.exchanges)) == (False, 1)
    assert [file.name for file in tape.parent.iterdir()] == [tape.name]


def test_a_reader_does_not_block_the_end_of_a_recording(
    tape: Path, provider: ProviderServer, http: httpx2.Client
) -> None:
    """The tape is closed all the same, and its file is complete."""
    with record(tape):
        http.get(f"{provider.url}/status/200")
        reader = Tape.open(tape)
    alone = tape.with_name("alone.tape")
    alone.write_bytes(tape.read_bytes())
    reader.close()
    with Tape.open(alone) as recorded:
        assert recorded.complete
        assert len(recorded.exchanges) == 1


def test_events_and_fields_from_a_newer_tracefork_are_kept_and_skipped(
    tape: Path, provider: ProviderServer, http: httpx2.Client, alter: Any
) -> None:
    """They change nothing for a reader, the digest included."""
    with record(tape) as run:
        http.get(f"{provider.url}/status/200")

    def newer(line: bytes) -> bytes:
        if not line.startswith(b'{"kind":"exchange"'):
            return line
        dream = b'{"kind":"dream","payload":{"a":1},"age":3}\n'
        return dream + line.replace(b'"aside":{', b'"aside":{"mood":["new"],')

    alter(tape, events=newer)
    with Tape.open(tape) as recorded:
        assert recorded.digest == run.digest
        assert recorded.exchanges[0].status == 200


def test_ten_thousand_exchanges_are_listed(tape: Path) -> None:
    """Opening, listing and hashing them reads no body."""
    from tracefork_core.tape import Receipt, TapeWriter
    from tracefork_core.tape.digest import sha256
    from tracefork_core.tape.environment import describe
    from tracefork_core.tape.event import EXCHANGE, ExchangeAside, ExchangePayload, RequestRecord

    writer = TapeWriter(tape, describe())
    for n in range(10_000):
        request = RequestRecord("GET", f"http://h/{n}", [], sha256(b""))
        aside = ExchangeAside(lane="main", seam="test", started=n, end="cancelled")
        writer.note(EXCHANGE, payload=ExchangePayload(n, request), aside=aside)
    receipt = writer.close(Receipt(digest="", exchanges=0))
    with Tape.open(tape) as recorded:
        assert [exchange.n for exchange in recorded.exchanges] == list(range(10_000))
        assert recorded.digest == receipt.digest
