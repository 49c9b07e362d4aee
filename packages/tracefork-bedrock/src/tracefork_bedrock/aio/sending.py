"""The seam: each request that the HTTP session of aiobotocore sends, retries included."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from functools import wraps
from typing import Any

from aiobotocore.awsrequest import AioAWSResponse

from tracefork_bedrock.aio.bodies import HeardResponse, RecordedResponse
from tracefork_bedrock.attempts import Attempt, attempt_of, request_of
from tracefork_bedrock.failures import exception_of, failure_of
from tracefork_core import UsageError
from tracefork_core.adapters import (
    Failure,
    Head,
    Live,
    Recorded,
    crossing_seam,
    is_crossing_seam,
    session_here,
)

Send = Callable[[Any, Any], Awaitable[Any]]
_GIVEN_UP = (asyncio.CancelledError, KeyboardInterrupt, SystemExit, GeneratorExit)


def crossing(send: Send) -> Send:
    """Return `AIOHTTPSession.send` with the seam in front."""

    @wraps(send)
    async def sent(self: Any, request: Any) -> Any:
        attempt, session = attempt_of(request), session_here()
        if attempt is None or session is None or is_crossing_seam():
            return await send(self, request)
        answer = session.open(request_of(request, attempt.operation))
        if answer is None:
            with crossing_seam():
                return await send(self, await attempt.ato_send(request, None))
        if answer.is_live:
            return await _record(answer, send, self, request, attempt)
        return await _replay(answer, request)

    return sent


def refusing(send: Send) -> Send:
    """Return `HttpxSession.send`, which refuses what a session would record."""

    @wraps(send)
    async def sent(self: Any, request: Any) -> Any:
        if attempt_of(request) is not None and session_here() is not None:
            raise UsageError(
                "tracefork: requests of aiobotocore are not recorded with its HTTP library httpx, "
                "which reads no event streams. Nothing was sent. Leave out http_session_cls: "
                "aiobotocore uses aiohttp then."
            )
        return await send(self, request)

    return sent


async def _record(live: Live, send: Send, http: Any, request: Any, attempt: Attempt) -> Any:
    try:
        with crossing_seam():
            response = await send(http, await attempt.ato_send(request, live.sends))
        await live.quiet()
    except _GIVEN_UP:
        live.cancel()
        raise
    except Exception as error:
        await live.quiet()
        live.fail(failure_of(error))
        raise
    raw = response.raw
    headers = tuple((n.decode("latin-1"), v.decode("latin-1")) for n, v in raw.raw_headers)
    live.head(Head(response.status_code, raw.reason or "", headers))
    if request.stream_output:
        response.raw = HeardResponse(raw, live)
        return response
    if body := await response.content:
        await live.quiet()
        live.chunk(body)
    await live.quiet()
    live.end()
    return response


async def _replay(answer: Recorded, request: Any) -> Any:
    head = await answer.areceive_head()
    if isinstance(head, Failure):
        raise exception_of(head, request)
    headers = {name.lower(): value for name, value in head.headers}
    raw = RecordedResponse(answer, request.url, head, headers)
    response = AioAWSResponse(request.url, head.status, headers, raw)
    if not request.stream_output:
        await response.content  # As aiobotocore does.
    return response
