"""An exchange ends at replay as it ended in the recording: complete, closed early, cancelled."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import socket
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import Any

import httpx2
import pytest

from tracefork_core import DivergenceError, Tape, record, replay
from tracefork_core.order import turnstile
from tracefork_core.tape.log import LogWriter
from tracefork_testkit import Hold, ProviderServer, Reply

Run = Callable[[str], Any]
STREAM = {"model": "m", "stream": True, "messages": [{"role": "user", "content": "@say a b c d"}]}


def both(tape: Path, run: Run) -> tuple[Any, Any, str]:
    """Record and replay a run; return both results and how its first exchange ended."""
    with ProviderServer() as server, record(tape):
        url = server.url
        first = run(url)
    with replay(tape) as replaying:
        again = run(url)
    assert replaying.digest == replaying.tape.digest
    with Tape.open(tape) as recorded:
        return first, again, recorded.exchanges[0].end


@pytest.mark.parametrize("method", ["GET", "POST", "HEAD"])
@pytest.mark.parametrize(
    "path", ["/status/204", "/status/304", "/bytes/0", "/echo", "/bytes/70000"]
)
def test_bodies_of_every_size_replay(
    tape: Path, http: httpx2.Client, method: str, path: str
) -> None:
    """No body, an empty one, one without length, a large one."""

    def run(url: str) -> tuple[int, bytes]:
        answer = http.request(method, f"{url}{path}")
        return answer.status_code, answer.content

    first, again, end = both(tape, run)
    assert first == again
    assert end == "eof"


def test_a_stream_closed_early_replays_up_to_there(tape: Path, http: httpx2.Client) -> None:
    """What the agent did not read is not on the tape, and need not be read."""

    def run(url: str) -> list[bytes]:
        with http.stream("POST", f"{url}/v1/chat/completions", json=STREAM) as answer:
            pieces = answer.iter_raw()
            return [next(pieces), next(pieces)]

    first, again, end = both(tape, run)
    assert (first, end) == (again, "abandoned")


def test_reading_further_than_the_recorded_agent_diverges(
    tape: Path, provider: ProviderServer, http: httpx2.Client
) -> None:
    """The tape does not hold the rest."""

    def run(upto: int) -> None:
        with http.stream("GET", f"{provider.url}/chunked?n=5") as answer:
            pieces = answer.iter_raw()
            for _ in range(upto):
                next(pieces)

    with record(tape):
        run(2)
    with pytest.raises(DivergenceError, match="16 bytes") as raised, replay(tape):
        run(3)
    assert raised.value.divergence.kind == "read"
    with replay(tape):
        run(2)


@pytest.mark.parametrize("path", ["/chunked?n=5", "/bytes/9"])
def test_reading_less_than_the_recorded_agent_diverges(
    tape: Path, provider: ProviderServer, http: httpx2.Client, path: str
) -> None:
    """The rest of the answer had no effect on the run, so it is another run."""

    def run(upto: int | None) -> None:
        with http.stream("GET", f"{provider.url}{path}") as answer:
            list(islice(answer.iter_raw(), upto))

    with record(tape):
        run(None)
    with Tape.open(tape) as recorded:
        chunks = len(recorded.exchanges[0].aside.sizes)
    for upto in range(chunks):
        now = f"{upto} chunk.* now, {chunks} chunk.* then"
        with pytest.raises(DivergenceError, match=now) as raised, replay(tape):
            run(upto)
        assert raised.value.divergence.kind == "read"
        assert raised.value.divergence.n == 0
    with replay(tape):  # The end of the body need not be asked for.
        run(chunks)


def test_an_abandoned_stream_does_not_disturb_the_run(tape: Path) -> None:
    """The garbage collector closes it at some time, or the end of the session does."""

    def run(url: str) -> bytes:
        client = httpx2.Client(verify=False)
        request = client.build_request("GET", f"{url}/chunked?n=5")
        pieces = client.send(request, stream=True).iter_raw()
        first = next(pieces)
        del pieces
        gc.collect()
        forgotten.append(client)
        return first

    forgotten: list[httpx2.Client] = []
    first, again, end = both(tape, run)
    assert first == again
    assert end in ("open", "abandoned")
    for client in forgotten:
        client.close()


def test_a_thread_still_waiting_at_the_end_does_not_diverge(tape: Path) -> None:
    """Neither recording nor replay waits for the late answer of a daemon thread."""
    hold = Hold(after_chunks=2)

    def run(url: str) -> list[bytes]:
        seen: list[bytes] = []
        two = threading.Event()

        def daemon() -> None:
            with httpx2.Client(verify=False) as client, suppress(Exception):
                body = {**STREAM, "messages": [{"role": "user", "content": "x"}]}
                with client.stream("POST", f"{url}/v1/chat/completions", json=body) as answer:
                    for piece in answer.iter_raw():
                        seen.append(piece)
                        if len(seen) == 2:
                            two.set()

        thread = threading.Thread(target=daemon)
        thread.start()
        assert two.wait(10)
        threads.append(thread)
        return seen

    threads: list[threading.Thread] = []
    with ProviderServer(lambda request: Reply(text="a b c d e", hold=hold)) as server:
        url = server.url
        with record(tape):
            first = list(run(url))
        hold.release()
        threads.pop().join()
    with replay(tape) as replaying:
        again = run(url)
    threads.pop().join()
    assert first == again
    assert replaying.tape.exchanges[0].end == "open"


async def cancelled_by_a_timeout(url: str) -> str:
    async with httpx2.AsyncClient(verify=False) as client:
        try:
            async with asyncio.timeout(0.2):
                await client.post(f"{url}/v1/chat/completions", json=SLOW)
        except TimeoutError:
            return "gave up"
    return "answered"


async def cancelled_in_the_stream(url: str) -> int:
    count = 0
    async with httpx2.AsyncClient(verify=False) as client:
        try:
            async with (
                asyncio.timeout(0.3),
                client.stream("GET", f"{url}/chunked?n=3&delay=0.25") as answer,
            ):
                async for _ in answer.aiter_raw():
                    count += 1
        except TimeoutError:
            return -count
    return count


async def the_first_of_three(url: str) -> int:
    async with httpx2.AsyncClient(verify=False) as client:
        asks = [
            asyncio.ensure_future(client.get(f"{url}/chunked?n=1&delay={delay}&i={i}"))
            for i, delay in enumerate((0, 0.5, 0.5))
        ]
        done, rest = await asyncio.wait(asks, return_when=asyncio.FIRST_COMPLETED)
        for task in rest:
            task.cancel()
        await asyncio.wait(asks)
        return len(done)


SLOW = {"model": "m", "messages": [{"role": "user", "content": "@slow 5"}]}


@pytest.mark.parametrize("agent", [cancelled_by_a_timeout, cancelled_in_the_stream])
def test_a_timeout_of_the_agent_fires_again_at_replay(
    tape: Path, agent: Callable[[str], Any]
) -> None:
    """The answer that came too late does not come at replay either."""
    first, again, end = both(tape, lambda url: asyncio.run(agent(url)))
    assert (first, end) == (again, "cancelled")


def test_tasks_cancelled_by_a_faster_one_are_cancelled_again(tape: Path) -> None:
    """The same task wins at replay."""
    first, again, _ = both(tape, lambda url: asyncio.run(the_first_of_three(url)))
    assert first == again


def test_waiting_longer_than_the_recorded_agent_diverges(
    tape: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without its timeout the agent would wait for ever."""
    monkeypatch.setattr(turnstile, "STALL_SECONDS", 0.1)
    with ProviderServer() as server, record(tape):
        url = server.url
        asyncio.run(cancelled_by_a_timeout(url))

    async def patient() -> None:
        async with httpx2.AsyncClient(verify=False) as client:
            await client.post(f"{url}/v1/chat/completions", json=SLOW)

    with pytest.raises(DivergenceError, match="exchange 0"), replay(tape):
        asyncio.run(patient())


@pytest.mark.parametrize("seconds", [0.0, 0.3])
def test_a_thread_gets_a_moment_to_make_its_last_call(tape: Path, seconds: float) -> None:
    """In the recording the call was in flight when the block ended, and no code waited for it."""
    hold, over = Hold(after_chunks=0), threading.Event()
    threads = []

    def run(url: str, late: float) -> None:
        def ask() -> None:
            until = time.monotonic() + late
            while time.monotonic() < until:
                if over.is_set():
                    return
            with contextlib.suppress(Exception), httpx2.Client(verify=False) as client:
                client.post(f"{url}/v1/chat/completions", json=SLOW)

        threads.append(threading.Thread(target=ask))
        threads[-1].start()

    with ProviderServer(lambda _: Reply(text="x", hold=hold)) as provider:
        url = provider.url
        with record(tape):
            run(url, 0)
            while not provider.requests:
                time.sleep(0.01)
        hold.release()
        threads[-1].join()
    with replay(tape) as replaying:
        run(url, seconds)
    assert replaying.digest == replaying.tape.digest
    with pytest.raises(DivergenceError, match="#"), replay(tape):
        run(url, 60)
    over.set()
    for thread in threads:
        thread.join()


def test_non_ascii_headers_replay(tape: Path, http: httpx2.Client) -> None:
    """Header values are bytes, and return unchanged."""
    headers = b"x-name: caf\xe9 \xff\r\nX-Name: twice\r\ncontent-length: 2"
    raw = b"HTTP/1.1 200 Fine \xe9\r\n" + headers + b"\r\n\r\nok"

    def serve(listener: socket.socket) -> None:
        connection, _ = listener.accept()
        with connection:
            connection.recv(65536)
            connection.sendall(raw)

    with socket.create_server(("127.0.0.1", 0)) as listener:
        url = f"http://127.0.0.1:{listener.getsockname()[1]}/"
        threading.Thread(target=serve, args=(listener,)).start()
        with record(tape):
            first = http.get(url)
    with replay(tape):
        again = http.get(url)
    assert again.headers.raw == first.headers.raw
    assert (b"x-name", b"caf\xe9 \xff") in [(n.lower(), v) for n, v in again.headers.raw]
    assert again.extensions["reason_phrase"] == first.extensions["reason_phrase"]


def test_a_divergence_wakes_waiting_threads(tape: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """They raise its error instead of waiting for turns that never come."""
    errors: list[DivergenceError] = []

    def ask(url: str, i: int) -> None:
        with httpx2.Client(verify=False) as client:
            try:
                client.get(f"{url}/bytes/{i}")
            except DivergenceError as error:
                errors.append(error)

    def run(url: str, first: int) -> None:
        threads = [threading.Thread(target=ask, args=(url, i)) for i in (2, 3, 4)]
        for thread in threads:
            thread.start()
        ask(url, first)
        for thread in threads:
            thread.join()

    monkeypatch.setattr(turnstile, "GRACE_SECONDS", 50.0)
    with ProviderServer() as server, record(tape):
        url = server.url
        ask(url, 1)
        run(url, 5)
    with pytest.raises(DivergenceError, match="bytes/9"), replay(tape):
        run(url, 9)
    assert len(errors) == 4
    assert len({id(error) for error in errors}) == 4


class Forgotten:
    """Closes a stream when it is collected."""

    def __init__(self, answer: httpx2.Response) -> None:
        self.answer = answer
        self.pieces = answer.iter_raw()
        self.itself = self

    def __del__(self) -> None:
        self.answer.close()


def test_a_stream_collected_during_a_commit_does_not_break_the_tape(
    tape: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The garbage collector may close a stream while another exchange is written."""

    def run(url: str) -> list[bytes]:
        seen = []
        with httpx2.Client(verify=False) as client:
            for i in range(5):
                request = client.build_request("GET", f"{url}/chunked?n=5&i={i}")
                answer = client.send(request, stream=True)
                seen.append(next(Forgotten(answer).pieces))
                del answer
                seen.append(client.get(f"{url}/bytes/{i}").content)
        return seen

    append = LogWriter.append
    collected: list[int] = []

    def collect_and_append(*args: Any) -> None:
        collected.append(gc.collect())
        append(*args)

    monkeypatch.setattr(LogWriter, "append", collect_and_append)
    first, again, end = both(tape, run)
    assert (first, end) == (again, "abandoned")
    assert max(collected) > 0
