"""The transports of the seam of httpx and httpx2, around those of a client.

Handshakes of httpx2's own websockets are exchanges, as `websockets` says. What other libraries do
with an upgraded connection bypasses the tape: it passes through while recording, and the receipt
counts it; at replay the guard refuses it.
"""

from __future__ import annotations

from typing import Any

from tracefork_core.errors import TraceforkError, UsageError
from tracefork_core.exchange.contract import Failure, Live, Recorded
from tracefork_core.exchange.current import (
    crossing_seam,
    is_crossing_seam,
    loop_is_running,
    session_of_request,
)
from tracefork_core.seams.cancelling import Cancellable
from tracefork_core.seams.httpx.family import Family
from tracefork_core.seams.httpx.pools import Pools
from tracefork_core.seams.httpx.streams import GIVEN_UP
from tracefork_core.seams.httpx.websockets import asks_for_websocket, open_async, open_sync


class Transports:
    """The transports of httpx or of httpx2."""

    def __init__(self, family: Family) -> None:
        self._lib = family.lib
        self._sync = _sync_transport(family)
        self._async = _async_transport(family)

    def wrap(self, client: Any, transport: Any) -> Any:
        """Return a client's transport with the seam around it.

        The class of the client decides between sync and async: a transport can be both
        (`MockTransport`).
        """
        if isinstance(transport, (self._sync, self._async)):
            return transport
        if isinstance(client, self._lib.AsyncClient):
            return self._async(transport)
        return self._sync(transport)


def _sync_transport(seam: Family) -> type:
    lib = seam.lib

    class SyncTransport(lib.BaseTransport):  # type: ignore[misc,name-defined]
        def __init__(self, inner: Any) -> None:
            self._inner = inner

        def handle_request(self, request: Any) -> Any:
            session = session_of_request()
            if session is None or is_crossing_seam():
                return self._inner.handle_request(request)
            if _is_websocket(request):
                if asks_for_websocket(request, seam):
                    return open_sync(session, request, self._inner, seam)
                return self._inner.handle_request(request)
            asked = seam.read(request)
            try:
                answer = session.open(asked)
                if answer is None:
                    with crossing_seam():
                        return self._inner.handle_request(request)
                if not answer.is_live:
                    return _replay(answer, request)
            except TraceforkError as error:
                return seam.refuse(asked, error)
            return _record(answer, request, self._inner)

        def close(self) -> None:
            """Do nothing: the client that owns the inner transport closes it."""

    def _replay(answer: Recorded, request: Any) -> Any:
        head = answer.receive_head()
        if isinstance(head, Failure):
            raise seam.exception(head, request)
        return seam.response(head, seam.replayed_sync(answer, request))

    def _record(live: Live, request: Any, inner: Any) -> Any:
        try:
            with crossing_seam():
                response = inner.handle_request(seam.sent(request, live))
        except GIVEN_UP:
            live.cancel()
            raise
        except Exception as error:
            live.fail(seam.failure(error))
            raise
        return seam.heard(response, live, seam.live_sync)

    return SyncTransport


def _async_transport(seam: Family) -> type:
    lib = seam.lib
    pools = Pools(lib.AsyncHTTPTransport)

    class AsyncTransport(lib.AsyncBaseTransport):  # type: ignore[misc,name-defined]
        def __init__(self, inner: Any) -> None:
            self._inner = inner

        async def handle_async_request(self, request: Any) -> Any:
            session = session_of_request()
            if session is None or is_crossing_seam():
                return await self._inner.handle_async_request(request)
            if _is_websocket(request):
                if asks_for_websocket(request, seam):
                    return await open_async(session, request, self._inner, seam)
                return await self._inner.handle_async_request(request)
            asked = await seam.aread(request)
            try:
                _check_loop()
                await pools.close_stale(self._inner, session)
                answer = session.open(asked)
                if answer is None:
                    with crossing_seam():
                        return await self._inner.handle_async_request(request)
                if not answer.is_live:
                    return await _areplay(answer, request)
            except TraceforkError as error:
                return seam.refuse(asked, error)
            pools.note(self._inner, session)
            return await _arecord(answer, request, self._inner)

        async def aclose(self) -> None:
            """Do nothing: the client that owns the inner transport closes it."""

    async def _areplay(answer: Recorded, request: Any) -> Any:
        head = await answer.areceive_head()
        if isinstance(head, Failure):
            raise seam.exception(head, request)
        return seam.response(head, seam.replayed_async(answer, request))

    async def _arecord(live: Live, request: Any, inner: Any) -> Any:
        asking = Cancellable(inner.handle_async_request(seam.sent(request, live)))
        try:
            with crossing_seam():
                response = await asking
            await live.quiet()
        except GIVEN_UP:
            live.cancel(asking.rounds)
            raise
        except Exception as error:
            await live.quiet()
            live.fail(seam.failure(error))
            raise
        return seam.heard(response, live, seam.live_async)

    return AsyncTransport


def _is_websocket(request: Any) -> bool:
    if request.method != "GET":
        return False
    return bool(request.headers.get("upgrade", "").lower() == "websocket")


def _check_loop() -> None:
    if not loop_is_running():
        raise UsageError(
            "tracefork: async code can be recorded and replayed on asyncio only, and this runs on "
            "another event loop (trio?). Nothing was sent. Run it on asyncio."
        )
