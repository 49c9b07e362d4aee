"""A recording that was cut off replays as far as it goes, and then says that it is incomplete.

The tape is taken away in the middle of its recording, as a crash would leave it.
"""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx2
import pytest

from tracefork_core import DivergenceError, ReplayError, Tape, record, replay
from tracefork_testkit import Hold, ProviderServer, Reply


def as_a_crash_leaves(tape: Path) -> Path:
    """Copy a tape while it is written, with its log and journal."""
    cut = tape.with_name("cut.tape")
    for suffix in ("", "-wal", "-flight"):
        shutil.copyfile(tape.with_name(tape.name + suffix), cut.with_name(cut.name + suffix))
    return cut


def test_a_cut_off_recording_replays_up_to_its_end(
    tape: Path, provider: ProviderServer, http: httpx2.Client
) -> None:
    """Three answers replay; the fourth call and the end of the block raise ReplayError."""

    def ask(i: int) -> bytes:
        return http.get(f"{provider.url}/bytes/{i}").content

    with record(tape):
        first = [ask(i) for i in (1, 2, 3)]
        cut = as_a_crash_leaves(tape)
        ask(4)
    with Tape.open(cut) as recorded:
        assert (recorded.complete, recorded.receipt, len(recorded.exchanges)) == (False, None, 3)

    def run() -> None:
        with replay(cut):
            assert [ask(i) for i in (1, 2, 3)] == first
            with pytest.raises(ReplayError):
                ask(4)

    with pytest.raises(ReplayError):
        run()


def test_a_changed_request_on_a_cut_off_tape_still_diverges(
    tape: Path, provider: ProviderServer, http: httpx2.Client
) -> None:
    """The negative control: the tape must hold as far as it goes."""
    with record(tape):
        http.get(f"{provider.url}/bytes/1")
        cut = as_a_crash_leaves(tape)
    with pytest.raises(DivergenceError), replay(cut):
        http.get(f"{provider.url}/bytes/2")


@pytest.mark.parametrize("kind", ["chunked", "length"])
def test_a_cut_off_stream_replays_every_chunk_that_was_read(tape: Path, kind: str) -> None:
    """Head and chunks are on the tape before the agent gets them."""
    hold = Hold(after_chunks=3)
    chunked = kind == "chunked"
    messages = [{"role": "user", "content": "x"}]
    body = {"model": "m", "messages": messages, "stream": chunked}

    def run(url: str, seen: list[bytes], after: Callable[[], object]) -> None:
        with (
            httpx2.Client(verify=False) as client,
            client.stream("POST", f"{url}/v1/chat/completions", json=body) as answer,
        ):
            for piece in answer.iter_raw():
                seen.append(piece)
                after()

    first: list[bytes] = []
    cuts: list[Path] = []

    def after() -> None:
        if len(first) == (3 if chunked else 1):
            cuts.append(as_a_crash_leaves(tape))
            hold.release()

    if not chunked:
        hold.release()
    reply = Reply(text="one two three four " * (9 if chunked else 20_000), hold=hold)
    with ProviderServer(lambda request: reply) as server, record(tape):
        url = server.url
        run(url, first, after)
    with Tape.open(cuts[0]) as recorded:
        (exchange,) = recorded.exchanges
        assert (exchange.end, exchange.status) == ("open", 200)
        assert exchange.chunks == first[: len(exchange.chunks)]
        assert len(exchange.chunks) == (3 if chunked else 1)
    again: list[bytes] = []
    with pytest.raises(ReplayError, match="exchange"), replay(cuts[0]):
        run(url, again, lambda: None)
    assert again == first[: len(again)]
    assert again


def test_each_lane_of_a_cut_off_recording_replays_to_its_own_end(
    tape: Path, provider: ProviderServer
) -> None:
    """The lane that got further still has answers when the other one ends."""

    async def agent(url: str, rounds: tuple[int, int], after: Callable[[], Any]) -> None:
        async with httpx2.AsyncClient(verify=False) as client:

            async def branch(i: int) -> None:
                for k in range(rounds[i]):
                    await client.get(f"{url}/bytes/{10 * i + k}")

            await asyncio.gather(branch(0), branch(1))
        after()

    cuts: list[Path] = []
    with record(tape):
        asyncio.run(agent(provider.url, (3, 1), lambda: cuts.append(as_a_crash_leaves(tape))))
    with pytest.raises(ReplayError), replay(cuts[0]):
        asyncio.run(agent(provider.url, (3, 2), lambda: None))
