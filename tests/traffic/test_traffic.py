"""Real provider traffic, recorded and replayed through every httpx-family client."""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import httpx
import httpx2
import pytest
from traffic.cassettes import CassetteServer, Interaction, interactions

import tracefork_core as tracefork

TRAFFIC = Path(__file__).parents[3] / "shared" / "traffic" / "cassettes"
Seen = tuple[int, list[tuple[bytes, bytes]], list[bytes]]

pytestmark = pytest.mark.skipif(
    not TRAFFIC.is_dir(),
    reason="recorded traffic of real providers is not ours to publish",
)


@pytest.fixture(scope="module")
def traffic() -> list[Interaction]:
    found = list(interactions(TRAFFIC))
    assert len(found) > 400, "the folder of cassettes is there but nearly empty"
    return found


def drive_sync(
    lib: ModuleType, url: str, traffic: list[Interaction], due: Callable[[Interaction], None]
) -> list[Seen]:
    seen: list[Seen] = []
    with lib.Client(base_url=url) as client:
        for one in traffic:
            due(one)
            request = {"headers": one.request_headers, "content": one.request_body}
            with client.stream(one.method, one.target, **request) as response:
                pieces = list(response.iter_raw())
            seen.append((response.status_code, response.headers.raw, pieces))
    return seen


def drive_async(
    lib: ModuleType, url: str, traffic: list[Interaction], due: Callable[[Interaction], None]
) -> list[Seen]:
    async def run() -> list[Seen]:
        seen: list[Seen] = []
        async with lib.AsyncClient(base_url=url) as client:
            for one in traffic:
                due(one)
                request = {"headers": one.request_headers, "content": one.request_body}
                async with client.stream(one.method, one.target, **request) as response:
                    pieces = [piece async for piece in response.aiter_raw()]
                seen.append((response.status_code, response.headers.raw, pieces))
        return seen

    return asyncio.run(run())


@pytest.mark.parametrize("drive", [drive_sync, drive_async], ids=["sync", "async"])
@pytest.mark.parametrize("lib", [httpx, httpx2], ids=["httpx", "httpx2"])
def test_real_traffic_replays_byte_for_byte(
    lib: ModuleType,
    drive: Callable[..., list[Seen]],
    traffic: list[Interaction],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Status, headers, bodies and chunk boundaries come back equal, with the server gone."""
    tape = tmp_path / "traffic.tape"
    with CassetteServer() as server:
        with tracefork.record(tape) as recording:
            live = drive(lib, server.url, traffic, lambda one: setattr(server, "due", one))
        assert server.served == len(traffic)
    with tracefork.replay(tape) as replayed:
        again = drive(lib, server.url, traffic, lambda one: None)

    equal = sum(a == b for a, b in zip(live, again, strict=True))
    whole = sum(
        b"".join(pieces).rstrip() == one.response_body.rstrip()
        for (_, _, pieces), one in zip(live, traffic, strict=True)
    )
    with capsys.disabled():
        print(
            f"\n{lib.__name__} {drive.__name__[6:]}: {equal} of {len(traffic)} exchanges byte-equal"
        )
    assert equal == whole == len(traffic)
    assert replayed.exchanges == len(traffic)
    assert recording.digest == replayed.digest


def test_one_changed_byte_of_real_traffic_diverges(
    traffic: list[Interaction], tmp_path: Path
) -> None:
    """The comparison can fail: one byte more in one request of many is found and named."""
    some = [one for one in traffic if one.request_body.startswith(b"{")][:20]
    tape = tmp_path / "traffic.tape"
    with CassetteServer() as server, tracefork.record(tape):
        drive_sync(httpx2, server.url, some, lambda one: setattr(server, "due", one))

    some[7] = dataclasses.replace(some[7], request_body=some[7].request_body + b" ")
    with (
        pytest.raises(tracefork.DivergenceError) as caught,
        tracefork.replay(tape),
    ):
        drive_sync(httpx2, server.url, some, lambda one: None)
    assert caught.value.divergence.n == 7
