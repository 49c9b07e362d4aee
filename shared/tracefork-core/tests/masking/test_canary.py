"""No secret of the environment is stored, in any spelling, in any file, at any time."""

from __future__ import annotations

import base64
import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any
from urllib.parse import quote, quote_plus

import httpx2
import pytest

from tracefork_core import DivergenceError, Tape, record, replay
from tracefork_core.exchange.current import current_session

from .conftest import (
    KEY,
    OTHER_KEY,
    OTHER_PASSWORD,
    PASSWORD,
    Send,
    everything_kept,
    forms,
)


def say_it(secret: str) -> bytes:
    """Return a body that contains a secret in every spelling, and in base64 with other text."""
    said = {
        "tool": json.dumps({"arguments": secret}),
        "basic": base64.b64encode(f"user:{secret}".encode()).decode(),
        "aligned": [
            base64.b64encode(b"u" * n + secret.encode() + b"ww").decode() for n in range(3)
        ],
        "urlsafe": base64.urlsafe_b64encode(secret.encode()).decode().rstrip("="),
    }
    return b" ".join([json.dumps(said).encode(), *forms(secret).values()])


async def tour(send: Send, url: str, key: str, password: str) -> list[bytes]:
    """Send and receive a secret in every part of a request and a response."""
    heard = []
    for secret in (key, password):
        body, spelled = say_it(secret), quote(secret, safe="")
        heard += await send("POST", f"{url}/echo", content=body)
        heard += await send("POST", f"{url}/gzip", content=body)
        heard += await send("POST", f"{url}/split?at=150", content=body)
        heard += await send("GET", f"{url}/path/{spelled}?q={quote_plus(secret)}")
        # What came back, which is a placeholder at replay, goes out again in another form.
        answer = b"".join(await send("POST", f"{url}/echo", content=f"is {secret}!".encode()))
        heard.append(answer)
        heard += await send("POST", f"{url}/echo", content=base64.b64encode(b"so:" + answer))
        heard += await send("POST", f"{url}/echo", content=json.dumps(answer.decode()).encode())
    heard += await send("POST", f"{url}/head", content=key.encode(), headers={"x-note": key})
    heard += await send("POST", f"{url}/head", content=password.encode())
    return heard


def other_ways(folder: Path, key: str) -> None:
    """Put a secret into steps, failures and the names of subprocesses."""
    session = current_session()
    assert session is not None
    step = session.begin_step("tool", f"look up {key}", None, {key: {"deep": [f"with {key}"]}})
    session.end_step(step, f"ValueError: {key}")
    transport = httpx2.MockTransport(lambda request: fail(key))
    with httpx2.Client(transport=transport) as client, pytest.raises(httpx2.ConnectError):
        client.get("http://nowhere/")
    program = folder.parent / f"program-{key}"
    if not program.exists():
        program.symlink_to("/bin/true")
    subprocess.run([str(program)], check=True)


def fail(key: str) -> httpx2.Response:
    raise httpx2.ConnectError(f"refused to {key}")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a folder for a single tape."""
    (found := tmp_path / "tapes").mkdir()
    return found


@pytest.mark.parametrize("mode", ["safe", "raw"])
@pytest.mark.usefixtures("secrets")
async def test_no_form_of_a_secret_is_kept(
    folder: Path, parrot: str, send: Send, mode: Any
) -> None:
    """In no file, during the recording and after it; mode `raw` is the negative control."""
    with record(folder / "run.tape", mode=mode):
        other_ways(folder, KEY)
        heard = b"".join(await tour(send, parrot, KEY, PASSWORD))
        kept = everything_kept(folder)
    kept += everything_kept(folder)
    for secret in (KEY, PASSWORD):
        assert secret.encode() in heard
        for name, form in forms(secret).items():
            assert (form in kept) == (mode == "raw"), name
    if mode == "safe":
        assert b"tracefork-secret-SERVICE_API_KEY" in kept
        assert b"tracefork-secret-DB_PASSWORD" in kept


@pytest.mark.usefixtures("secrets")
async def test_the_agent_receives_unmasked_bytes(folder: Path, parrot: str, send: Send) -> None:
    """Masking changes only the tape."""
    with record(folder / "safe.tape"):
        safe = await tour(send, parrot, KEY, PASSWORD)
    with record(folder / "raw.tape", mode="raw"):
        raw = await tour(send, parrot, KEY, PASSWORD)
    assert b"".join(safe) == b"".join(raw)


@pytest.mark.usefixtures("secrets")
async def test_a_tape_replays_with_other_secrets(
    folder: Path, parrot: str, send: Send, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With values of other lengths, every masked request is still the same."""
    tape = folder / "run.tape"
    with record(tape) as recording:
        other_ways(folder, KEY)
        await tour(send, parrot, KEY, PASSWORD)
    assert recording.receipt is not None
    assert recording.receipt.secrets["SERVICE_API_KEY"] > 20
    monkeypatch.setenv("SERVICE_API_KEY", OTHER_KEY)
    monkeypatch.setenv("DB_PASSWORD", OTHER_PASSWORD)
    with replay(tape) as run:
        other_ways(folder, OTHER_KEY)
        await tour(send, parrot, OTHER_KEY, OTHER_PASSWORD)
    assert run.digest == recording.digest
    monkeypatch.delenv("SERVICE_API_KEY")
    with pytest.raises(DivergenceError), replay(tape):
        await tour(send, parrot, OTHER_KEY, OTHER_PASSWORD)


@pytest.mark.usefixtures("secrets")
async def test_a_tape_replays_without_the_secret(
    tape: Path, parrot: str, send: Send, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A key that is only sent in a header is not needed at replay."""

    async def ask() -> list[bytes]:
        headers = {"authorization": f"Bearer {os.environ.get('SERVICE_API_KEY', 'none')}"}
        return await send("GET", f"{parrot}/echo?hex={b'no secret'.hex()}", headers=headers)

    with record(tape):
        first = await ask()
    monkeypatch.delenv("SERVICE_API_KEY")
    with replay(tape):
        assert await ask() == first


async def test_a_secret_set_during_the_recording_is_masked(
    tape: Path, parrot: str, send: Send, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Agents load their `.env` file when they run, and some delete a key once they have read it."""
    with record(tape):
        monkeypatch.setenv("LATE_TOKEN", KEY)
        await send("POST", f"{parrot}/echo", content=KEY.encode())
        monkeypatch.delenv("LATE_TOKEN")
        await send("POST", f"{parrot}/echo", content=b"again " + KEY.encode())
    assert KEY.encode() not in everything_kept(tape.parent)


KILLED = """
import os, sys
import httpx2
from tracefork_core import record

with record(sys.argv[1], mode=sys.argv[3]), httpx2.Client() as client:
    client.post(sys.argv[2] + "/echo", content=os.environ["SERVICE_API_KEY"].encode())
    body = b"x" * 5 + os.environ["SERVICE_API_KEY"].encode() + b"\\nseen\\n"
    with client.stream("POST", sys.argv[2] + "/hang", content=body) as response:
        for piece in response.iter_raw():
            os.write(1, piece)
"""


@pytest.mark.parametrize("mode", ["safe", "raw"])
@pytest.mark.usefixtures("secrets")
def test_a_killed_recording_keeps_no_secret(folder: Path, parrot: str, mode: str) -> None:
    """Neither its journal nor SQLite's log holds the secret; the other data is there."""
    tape = folder / "run.tape"
    command = [sys.executable, "-c", KILLED, str(tape), parrot, mode]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        while b"seen" not in process.stdout.readline():
            pass
        process.send_signal(signal.SIGKILL)
    kept = everything_kept(folder)
    assert (KEY.encode() in kept) == (mode == "raw")
    with Tape.open(tape) as cut_off:
        assert not cut_off.complete
        assert cut_off.exchanges[1].response_body.endswith(b"\nseen\n")
