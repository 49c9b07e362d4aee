"""Libraries are patched exactly while a session is open."""

from __future__ import annotations

import asyncio
import contextvars
import gc
import json
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import aiohttp
import httpx
import httpx2
import pytest
import requests
import urllib3

from tracefork_core import Tape, UsageError, bind, record, replay
from tracefork_core.patching.instrument import Instrument
from tracefork_core.run import scope
from tracefork_testkit import ProviderServer


def instrumented() -> list[object]:
    """Return what ambient patching replaces, to compare by identity."""
    return [
        httpx.Client._transport_for_url,
        httpx.AsyncClient._transport_for_url,
        httpx2.Client._transport_for_url,
        httpx2.AsyncClient._transport_for_url,
        aiohttp.ClientSession._request,
        requests.adapters.HTTPAdapter.send,
    ]


def namespaces() -> list[dict[str, object]]:
    """Return everything that the classes of the libraries hold."""
    of_aiohttp = (aiohttp, aiohttp.client_reqrep, aiohttp.connector, aiohttp.streams)
    modules = (httpx, httpx2, *of_aiohttp, requests, requests.adapters, urllib3)
    classes = {value for lib in modules for value in vars(lib).values() if isinstance(value, type)}
    return [dict(vars(found)) for found in sorted(classes, key=repr)]


def test_a_session_leaves_every_class_as_it_was(tmp_path: Path) -> None:
    """Record and replay replace six functions, and put the identical ones back."""
    before, all_before = instrumented(), namespaces()
    with record(tmp_path / "none.tape"):
        during = instrumented()
    assert instrumented() == before
    with replay(tmp_path / "none.tape"):
        assert instrumented() != before
    assert instrumented() == before
    assert namespaces() == all_before
    assert all(now is not then for now, then in zip(during, before, strict=True))


def test_a_session_that_fails_leaves_every_class_as_it_was(tmp_path: Path) -> None:
    """After an exception in the block, or a session that cannot open."""
    before = instrumented()
    with pytest.raises(ZeroDivisionError), record(tmp_path / "fails.tape"):
        _ = 1 / 0
    with pytest.raises(UsageError), record(tmp_path / "fails.tape"):
        pass
    assert instrumented() == before


def test_a_client_outlives_sessions(library: Any, provider: ProviderServer, tmp_path: Path) -> None:
    """One client, used before, during and after a session: the tape holds only what was during."""
    url, path = provider.url, tmp_path / "during.tape"

    def use(ask: Callable[..., Any]) -> None:
        ask("/echo?before")
        with record(path):
            ask("/echo?during")
        ask("/echo?after")

    in_one_client(library, url, use)
    with Tape.open(path) as tape:
        assert [exchange.url.partition("?")[2] for exchange in tape.exchanges] == ["during"]
    assert len(provider.requests) == 3
    assert provider.connections == 1


def in_one_client(library: Any, url: str, use: Callable[..., None], **options: Any) -> None:
    """Run `use` with a function that sends through one client, on one event loop if async."""
    if not library.is_async:
        is_requests = library.lib is requests
        with (
            requests.Session()
            if is_requests
            else library.lib.Client(verify=False, **options) as client
        ):
            use(lambda path: library.ask(client, url, path))
        return
    with asyncio.Runner() as runner:

        async def made() -> Any:
            if library.lib is aiohttp:
                return aiohttp.ClientSession(**options)
            return library.lib.AsyncClient(verify=False, **options)

        def ask(path: str) -> Any:
            # In the context of the caller, as code that awaits would be.
            context = contextvars.copy_context()
            return runner.run(library.ask(client, url, path), context=context)

        client = runner.run(made())
        use(ask)
        runner.run(client.close() if library.lib is aiohttp else client.aclose())


@pytest.mark.parametrize("name", ["httpx", "httpx2", "aiohttp", "requests"])
def test_a_library_imported_inside_the_session_is_recorded(
    name: str, provider: ProviderServer, tmp_path: Path
) -> None:
    """From its first request on; afterwards it is as it was."""
    code = f"""
import asyncio, sys
from tracefork_core import record
with record({str(tmp_path / "late.tape")!r}) as recording:
    assert {name!r} not in sys.modules, "the session imported it"
    import {name} as lib
    async def ask():
        if lib.__name__ == "requests":
            return lib.get({provider.url + "/echo"!r}).content
        if lib.__name__ == "aiohttp":
            async with lib.ClientSession() as client, client.get({provider.url + "/echo"!r}) as got:
                return await got.read()
        async with lib.AsyncClient(verify=False) as client:
            return (await client.get({provider.url + "/echo"!r})).content
    asyncio.run(ask())
print(recording.receipt.exchanges, recording.receipt.strays)
owner = {{
    "aiohttp": lambda: lib.ClientSession,
    "requests": lambda: lib.adapters.HTTPAdapter,
}}.get(lib.__name__, lambda: lib.AsyncClient)()
for function in ("_request", "_transport_for_url", "send"):
    print(getattr(owner, function).__module__ if hasattr(owner, function) else "-")
"""
    ran = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False
    )
    assert ran.stderr == ""
    exchanges, *modules = ran.stdout.splitlines()
    assert exchanges == "1 []"
    assert not any("tracefork" in module for module in modules)


def test_an_alias_of_httpx_is_patched_once(provider: ProviderServer, tmp_path: Path) -> None:
    """After httpx2.alias_httpx(), each request is one exchange."""
    code = f"""
import httpx2
httpx2.alias_httpx()
import httpx
assert httpx.Client is httpx2.Client
from tracefork_core import record, replay
before = httpx.Client._transport_for_url
def ask():
    with httpx.Client(verify=False) as client:
        return client.get({provider.url + "/bytes/3"!r}).content
with record({str(tmp_path / "alias.tape")!r}) as recording:
    recorded = ask()
with replay({str(tmp_path / "alias.tape")!r}):
    assert ask() == recorded
assert httpx.Client._transport_for_url is before
print(recording.receipt.exchanges)
"""
    ran = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False
    )
    assert (ran.stderr, ran.stdout) == ("", "1\n")


def test_two_threads_have_a_tape_each(
    library: Any, provider: ProviderServer, tmp_path: Path
) -> None:
    """Two sessions at once, each in its thread, do not mix."""
    before, url = instrumented(), provider.url
    both_open = threading.Barrier(2, timeout=20)

    def run(name: str) -> None:
        with record(tmp_path / f"{name}.tape"):
            both_open.wait()
            library.all(url, *[{"path": f"/echo?{name}-{n}"} for n in range(5)])
            both_open.wait()

    threads = [threading.Thread(target=run, args=(name,)) for name in ("one", "two")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for name in ("one", "two"):
        with Tape.open(tmp_path / f"{name}.tape") as tape:
            asked = [exchange.url.partition("?")[2] for exchange in tape.exchanges]
        assert asked == [f"{name}-{n}" for n in range(5)]
    assert instrumented() == before


async def test_two_tasks_have_a_tape_each(provider: ProviderServer, tmp_path: Path) -> None:
    """Two sessions at once on one event loop, each in its task, with one shared client."""
    both_open, both_done = asyncio.Barrier(2), asyncio.Barrier(2)
    async with (
        httpx.AsyncClient(verify=False) as shared,
        aiohttp.ClientSession() as shared_too,
    ):

        async def run(name: str) -> None:
            async with record(tmp_path / f"{name}.tape"):
                await both_open.wait()
                await shared.get(f"{provider.url}/echo?{name}")
                async with shared_too.get(f"{provider.url}/echo?{name}") as response:
                    await response.read()
                await both_done.wait()

        await asyncio.gather(run("one"), run("two"))
    for name in ("one", "two"):
        with Tape.open(tmp_path / f"{name}.tape") as tape:
            assert [exchange.url.partition("?")[2] for exchange in tape.exchanges] == [name] * 2


def test_a_bound_client_needs_no_patching(
    library: Any, provider: ProviderServer, tmp_path: Path
) -> None:
    """A bound client is recorded with nothing patched; the original is not; both keep working."""
    url, path, before = provider.url, tmp_path / "bound.tape", instrumented()

    async def on_a_loop() -> None:
        async with make() as original:
            bound = bind(original)
            with record(path, ambient=False):
                assert instrumented() == before
                await library.ask(bound, url, "/echo?bound")
                await library.ask(original, url, "/echo?original")
            await library.ask(bound, url, "/echo?after")

    def make() -> Any:
        if library.lib in (aiohttp, requests):
            return aiohttp.ClientSession() if library.lib is aiohttp else requests.Session()
        return (library.lib.AsyncClient if library.is_async else library.lib.Client)(verify=False)

    if library.is_async:
        asyncio.run(on_a_loop())
    else:
        with make() as original, record(path, ambient=False):
            assert instrumented() == before
            library.ask(bind(original), url, "/echo?bound")
            library.ask(original, url, "/echo?original")
    with Tape.open(path) as tape:
        assert [exchange.url.partition("?")[2] for exchange in tape.exchanges] == ["bound"]
        assert tape.receipt is not None
        assert tape.receipt.connections == 1  # One pool for both.


def test_a_bound_client_replays(
    library: Any, provider: ProviderServer, tmp_path: Path, round_trip: Callable[..., Any]
) -> None:
    """Bound and patched at once, it crosses one seam; only bound, it replays the same tape."""

    def act(url: str) -> list[Any]:
        got: list[Any] = []
        in_one_client(
            bound_library(library), url, lambda ask: got.extend([ask("/bytes/5"), ask("/gzip")])
        )
        return got

    trip = round_trip(provider, act)
    assert len(trip.tape) == 2
    assert trip.replayed == trip.recorded
    url = trip.recorded[0].url.removesuffix("/bytes/5")
    with replay(trip.path, ambient=False):
        assert act(url) == trip.recorded


def bound_library(library: Any) -> Any:
    """Return a library whose requests go through bound clients."""

    class Bound(type(library)):  # type: ignore[misc]
        def ask(self, client: Any, *args: Any, **options: Any) -> Any:
            return super().ask(bind(client), *args, **options)

    return Bound(library.lib)


def test_patching_that_fails_is_undone() -> None:
    """Each session gets the error, not only the first."""
    asked: list[object] = []

    def apply(lib: object) -> Callable[[], None]:
        asked.append(lib)
        raise AttributeError("it has moved")

    instrument = Instrument("json", apply, lambda: lambda: asked.append("undone"))
    for _ in range(2):
        with pytest.raises(AttributeError, match="it has moved"):
            instrument.on()
    assert asked == [json, "undone"] * 2


def test_an_attached_instrument_is_on_in_sessions_that_are_not_ambient(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Attached before a session or in it, until the last `detach`; never outside sessions."""
    is_on: list[object] = []

    def apply(lib: object) -> Callable[[], None]:
        is_on.append(lib)
        return is_on.clear

    instrument = Instrument("json", apply)
    monkeypatch.setattr(scope, "of_adapters", lambda: (instrument,))
    with record(tmp_path / "first.tape", ambient=False):
        assert is_on == []
        instrument.attach()
        assert is_on == [json]
    assert is_on == []
    with record(tmp_path / "second.tape", ambient=False):
        instrument.attach()
        assert is_on == [json]
        instrument.detach()
        assert is_on == [json]
        instrument.detach()
        assert is_on == []


async def test_a_bound_session_of_aiohttp_keeps_its_original(
    provider: ProviderServer, caplog: pytest.LogCaptureFixture
) -> None:
    """It can be used and closed without the original; if dropped first, no warning appears."""
    bound = bind(aiohttp.ClientSession())
    assert isinstance(bound, aiohttp.ClientSession)
    assert bind(bound) is bound
    gc.collect()
    async with bound, bound.get(f"{provider.url}/echo") as response:
        assert response.status == 200
    connector = aiohttp.TCPConnector()
    async with bind(aiohttp.ClientSession(connector=connector, connector_owner=False)) as borrowing:
        pass
    assert borrowing.closed
    assert not connector.closed
    async with aiohttp.ClientSession(connector=connector) as original:
        bind(original)
        gc.collect()
    assert connector.closed
    assert [record.message for record in caplog.records if record.levelname == "ERROR"] == []


def test_binding_something_else_is_refused() -> None:
    """The error says what can be bound."""
    with pytest.raises(UsageError, match=r"builtins\.dict"):
        bind({})
