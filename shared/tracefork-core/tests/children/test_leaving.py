"""Errors between processes are reported where the user can see them, and nothing hangs."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tracefork_core import DivergenceError, EgressError, Tape, record, replay
from tracefork_core.exchange.current import current_session
from tracefork_testkit import ProviderServer

from ..forking import fork
from .conftest import SCRIPT, jobs


def start(*words: str, **more: Any) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        **more,
    )


def door() -> str:
    """Return the address that is passed to processes started now."""
    subprocess.run([sys.executable, "-c", "pass"], check=True)
    import json

    invitation = json.loads(os.environ["TRACEFORK_EGRESS"])["invitation"]
    return str(invitation["address"])


def is_hung_up_on(peer: socket.socket) -> bool:
    try:
        return peer.recv(1) == b""
    except ConnectionResetError:
        return True


def test_a_child_with_another_request_diverges(tape: Path, moody: ProviderServer) -> None:
    """The child gets the divergence, and the parent's block raises it too."""
    url = moody.url
    with record(tape):
        start(SCRIPT, "ask", url, "one").communicate()
    with pytest.raises(DivergenceError, match="differs from recorded exchange 0") as raised:
        with replay(tape):
            _, told = start(SCRIPT, "ask", url, "two").communicate()
    assert f"DivergenceError: {raised.value}" in told
    assert raised.value.divergence.caller == "asking.py:22"


def test_a_child_that_is_not_started_diverges(tape: Path, moody: ProviderServer) -> None:
    """Its recorded requests are left over."""
    with record(tape):
        start(SCRIPT, "ask", moody.url, "one").communicate()
    with pytest.raises(DivergenceError, match="never asked for"), replay(tape):
        pass


def test_a_divergence_of_the_parent_reaches_its_children(tape: Path, moody: ProviderServer) -> None:
    """A poisoned session is poisoned for all processes."""
    url = moody.url
    with record(tape):
        start(SCRIPT, "ask", url, "one").communicate()
    run = replay(tape)
    run.__enter__()
    with pytest.raises(DivergenceError):
        jobs().ask(url, "two")
    _, told = start(SCRIPT, "ask", url, "one").communicate()
    with pytest.raises(DivergenceError):
        run.__exit__(None, None, None)
    assert "DivergenceError" in told


def test_a_killed_child_leaves_its_exchange_open(tape: Path, moody: ProviderServer) -> None:
    """After `kill -9` in the middle of a stream, the tape holds what was read so far."""
    url = moody.url

    def agent() -> str:
        child = start(SCRIPT, "die_while_asking", url, "tell me")
        child.communicate()
        assert child.returncode == -9
        return jobs().ask(url, "and now?")

    with record(tape) as run:
        answer = agent()
    with Tape.open(tape) as written:
        cut, whole = written.exchanges
        assert (cut.end, whole.end) == ("open", "eof")
        assert next(iter(cut.chunks))
    with replay(tape) as again:
        assert agent() == answer
    assert again.digest == run.digest


LATE = """
import sys
print("ready", flush=True)
sys.stdin.readline()
sys.path.insert(0, sys.argv[1])
import asking
print(asking.ask(sys.argv[2], "late"))
"""


def test_a_forked_child_that_leaves_the_block_first_stays_on_its_lane(
    tape: Path, moody: ProviderServer
) -> None:
    """It is part of the run until its parent leaves the block too."""
    with record(tape):
        if child := os.fork():
            os.waitpid(child, 0)
    if not child:
        try:
            jobs().ask(moody.url, "behind the block")
        finally:
            os._exit(0)
    with Tape.open(tape) as written:
        assert [exchange.lane for exchange in written.exchanges] == ["main/fork.1"]


def test_a_child_that_outlives_its_recording_continues_unrecorded(
    tape: Path, moody: ProviderServer
) -> None:
    """It gets its answer, and a warning on stderr says that it is not recorded."""
    with record(tape) as run:
        child = start("-c", LATE, str(Path(SCRIPT).parent), moody.url, stdin=subprocess.PIPE)
        assert child.stdout is not None
        assert child.stdout.readline() == "ready\n"
    out, told = child.communicate("\n")
    assert child.returncode == 0
    assert out.strip()
    assert "the recording that this process (main/python.1) belonged to has ended" in told
    assert run.receipt is not None
    assert run.receipt.exchanges == 0


def test_a_child_that_outlives_its_replay_is_refused(tape: Path, moody: ProviderServer) -> None:
    """It must not go live because the parent ended first."""
    with record(tape):
        pass
    with replay(tape):
        child = start("-c", LATE, str(Path(SCRIPT).parent), moody.url, stdin=subprocess.PIPE)
        assert child.stdout is not None
        assert child.stdout.readline() == "ready\n"
    _, told = child.communicate("\n")
    assert child.returncode == 1
    assert "ReplayError: tracefork: the replay that this process (main/python.1)" in told
    assert len(moody.requests) == 0


def test_a_connection_without_the_token_is_refused(tape: Path) -> None:
    """It is closed after its first message, and the receipt names it."""
    from tracefork_core.children import messages
    from tracefork_core.children.messages import frame

    with record(tape, scope="process") as run:
        with socket.socket(socket.AF_UNIX) as stranger:
            stranger.connect(door())
            stranger.sendall(frame(messages.encode(messages.Hello("guess", "1", "main"))))
            assert is_hung_up_on(stranger)
    assert run.receipt is not None
    (refused,) = run.receipt.subprocesses
    assert "token" in refused


@pytest.mark.parametrize(
    "garbage",
    [b"GET / HTTP/1.1\r\n\r\n", b"\xff\xff\xff\xff", b"\0\0\0\3\xc1\xc1\xc1"],
    ids=["http", "huge", "no message"],
)
def test_garbage_closes_only_its_own_connection(
    garbage: bytes, tape: Path, moody: ProviderServer
) -> None:
    """The receipt names it, and another child is still served."""
    with record(tape, scope="process") as run:
        with socket.socket(socket.AF_UNIX) as stranger:
            stranger.connect(door())
            stranger.sendall(garbage)
            assert is_hung_up_on(stranger)
            start(SCRIPT, "ask", moody.url, "one").communicate()
    assert run.receipt is not None
    assert run.receipt.exchanges == 1
    (refused,) = run.receipt.subprocesses
    assert "invalid message" in refused


def test_only_this_user_can_open_the_socket(tape: Path) -> None:
    """By the permissions of its folder and of itself."""
    with record(tape, scope="process"):
        address = Path(door())
        assert address.stat().st_mode & 0o777 == 0o600
        assert address.parent.stat().st_mode & 0o777 == 0o700


def test_a_child_without_our_libraries_is_named(tape: Path, tmp_path: Path) -> None:
    """It carries the guard but cannot join, and the receipt names the missing libraries."""
    import venv

    venv.create(tmp_path / "other", with_pip=False)
    with record(tape, scope="process") as run:
        subprocess.run([str(tmp_path / "other" / "bin" / "python"), "-c", "pass"], check=True)
    assert run.receipt is not None
    (named,) = run.receipt.subprocesses
    assert named.endswith("(guarded, not recorded: no msgspec and no time_machine)")


def test_a_secret_of_a_child_is_masked(tape: Path, moody: ProviderServer, written: Any) -> None:
    """Also a secret that only the child's environment holds; the tape still replays."""
    secret = "hunter2-hunter2-hunter2"
    url, environment = moody.url, {**os.environ, "CHILD_API_KEY": secret}
    with record(tape, scope="process"):
        start(SCRIPT, "ask", url, f"my key is {secret}", env=environment).communicate()
    assert secret.encode() not in written(tape)
    with replay(tape):
        start(SCRIPT, "ask", url, f"my key is {secret}", env=environment).communicate()


def test_a_fork_in_the_middle_of_an_exchange_writes_nothing(
    tape: Path, moody: ProviderServer
) -> None:
    """A forked child that reads on in its parent's stream does not change the tape."""
    import httpx2

    with record(tape) as run, httpx2.Client(verify=False) as client:
        body = {**jobs().question("tell me"), "stream": True}
        with client.stream("POST", f"{moody.url}/v1/chat/completions", json=body) as answer:
            pieces = answer.iter_raw()
            first = next(pieces)
            child = fork(lambda: list(pieces))
            assert os.waitpid(child, 0)[1] == 0
    assert current_session() is None
    assert run.receipt is not None
    with Tape.open(tape) as written:
        (exchange,) = written.exchanges
        assert (b"".join(exchange.chunks), exchange.end) == (first, "abandoned")


def test_a_raw_socket_of_a_child_is_refused(tape: Path, moody: ProviderServer) -> None:
    """Joining allows only the session's socket; any other is an EgressError."""
    code = "import socket, sys; socket.create_connection(('127.0.0.1', int(sys.argv[1])))"
    with record(tape):
        pass
    with pytest.raises(EgressError, match="tried to reach"), replay(tape):
        start("-c", code, str(moody.port)).communicate()
