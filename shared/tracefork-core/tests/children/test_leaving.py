"""What goes wrong between processes is said where it can be heard, and hangs nobody."""

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
    """Return the address that processes which start now are given."""
    subprocess.run([sys.executable, "-c", "pass"], check=True)
    import json

    invitation = json.loads(os.environ["TRACEFORK_EGRESS"])["invitation"]
    return str(invitation["address"])


def is_hung_up_on(peer: socket.socket) -> bool:
    try:
        return peer.recv(1) == b""
    except ConnectionResetError:
        return True


def test_a_child_that_asks_something_else_diverges(tape: Path, moody: ProviderServer) -> None:
    """The child is told what its own session would tell it, and so is the parent's block."""
    url = moody.url
    with record(tape):
        start(SCRIPT, "ask", url, "one").communicate()
    with pytest.raises(DivergenceError, match="differs from recorded exchange 0") as raised:
        with replay(tape):
            _, told = start(SCRIPT, "ask", url, "two").communicate()
    assert f"DivergenceError: {raised.value}" in told
    assert raised.value.divergence.caller == "asking.py:22"


def test_a_child_that_is_not_started_is_missed(tape: Path, moody: ProviderServer) -> None:
    """What a child asked when this was recorded has to be asked again."""
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
    """`kill -9` in the middle of a stream: what was read is kept, and the parent goes on."""
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
    """It is part of the run until its parent has left the block, too."""
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


def test_a_child_that_outlives_its_recording_goes_on(tape: Path, moody: ProviderServer) -> None:
    """It gets its answer, and says on stderr that it is on no tape."""
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
    """Nothing goes live because the parent was quicker."""
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


def test_a_connection_without_the_token_is_turned_away(tape: Path) -> None:
    """Whoever does not know the token is hung up on before anything else, and named."""
    from tracefork_core.children import messages
    from tracefork_core.children.messages import frame

    with record(tape) as run:
        with socket.socket(socket.AF_UNIX) as stranger:
            stranger.connect(door())
            stranger.sendall(frame(messages.encode(messages.Hello("guess", "1", "main"))))
            assert is_hung_up_on(stranger)
    assert run.receipt is not None
    assert run.receipt.subprocesses == ["a process that did not know the token of the run's socket"]


@pytest.mark.parametrize(
    "garbage",
    [b"GET / HTTP/1.1\r\n\r\n", b"\xff\xff\xff\xff", b"\0\0\0\3\xc1\xc1\xc1"],
    ids=["http", "huge", "no message"],
)
def test_garbage_closes_its_connection_alone(
    garbage: bytes, tape: Path, moody: ProviderServer
) -> None:
    """What makes no sense is hung up on and named; a child beside it is served."""
    with record(tape) as run:
        with socket.socket(socket.AF_UNIX) as stranger:
            stranger.connect(door())
            stranger.sendall(garbage)
            assert is_hung_up_on(stranger)
            start(SCRIPT, "ask", moody.url, "one").communicate()
    assert run.receipt is not None
    assert run.receipt.exchanges == 1
    assert "spoke out of turn" in run.receipt.subprocesses[0]


def test_the_door_is_for_this_user_alone(tape: Path) -> None:
    """Folder and socket are nobody else's to open."""
    with record(tape):
        address = Path(door())
        assert address.stat().st_mode & 0o777 == 0o600
        assert address.parent.stat().st_mode & 0o777 == 0o700


def test_a_child_without_our_libraries_is_named(tape: Path, tmp_path: Path) -> None:
    """A Python that cannot speak to us carries the guard, and the receipt says what it lacks."""
    import venv

    venv.create(tmp_path / "other", with_pip=False)
    with record(tape) as run:
        subprocess.run([str(tmp_path / "other" / "bin" / "python"), "-c", "pass"], check=True)
    assert run.receipt is not None
    (named,) = run.receipt.subprocesses
    assert named.endswith("(guarded, not recorded: no msgspec and no time_machine)")


def test_a_secret_of_a_child_is_masked(tape: Path, moody: ProviderServer, written: Any) -> None:
    """What is secret in the environment of a child alone is on no tape, and still replays."""
    secret = "hunter2-hunter2-hunter2"
    url, environment = moody.url, {**os.environ, "CHILD_API_KEY": secret}
    with record(tape):
        start(SCRIPT, "ask", url, f"my key is {secret}", env=environment).communicate()
    assert secret.encode() not in written(tape)
    with replay(tape):
        start(SCRIPT, "ask", url, f"my key is {secret}", env=environment).communicate()


def test_a_fork_in_the_middle_of_an_exchange_writes_nothing(
    tape: Path, moody: ProviderServer
) -> None:
    """A forked child that reads on in a stream of its parent's leaves the tape alone."""
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


def test_a_child_that_goes_around_the_seam_is_still_refused(
    tape: Path, moody: ProviderServer
) -> None:
    """Joining opens one door and no other: a socket of the child's own is an EgressError."""
    code = "import socket, sys; socket.create_connection(('127.0.0.1', int(sys.argv[1])))"
    with record(tape):
        pass
    with pytest.raises(EgressError, match="tried to reach"), replay(tape):
        start("-c", code, str(moody.port)).communicate()
