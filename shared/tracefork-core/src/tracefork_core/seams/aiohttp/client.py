"""The seam of aiohttp: a middleware below all others, so that every attempt is an exchange.

The seam lies below redirects, cookies, traces and the agent's own middlewares, and above the
connector. Each hop of a redirect is an exchange, and so is the second attempt that aiohttp makes on
a dropped connection. Custom connectors, resolvers and proxies lie below the seam. aiohttp before
3.12 has no middlewares: a session refuses its requests.

Bodies are recorded as they come over the wire, without the framing and still compressed, as with
httpx. So aiohttp does not decompress them, and the stream that the agent reads does.

Two kinds of requests are no exchanges here: handshakes of websockets, which are exchanges of their
own (`websockets`), and requests of another library on top of aiohttp that has its own seam.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Awaitable, Callable, Hashable, Mapping
from functools import lru_cache, wraps
from types import ModuleType
from typing import Any, cast

from tracefork_core.errors import TraceforkError, UsageError
from tracefork_core.exchange.contract import Failure, Live, Recorded
from tracefork_core.exchange.current import (
    crossing_seam,
    current_session,
    is_crossing_seam,
    session_of_request,
)
from tracefork_core.patching.instrument import Undo
from tracefork_core.patching.patch import Patches
from tracefork_core.seams.aiohttp.failures import Failures
from tracefork_core.seams.aiohttp.reader import GIVEN_UP, LiveSource, Source, reader_class
from tracefork_core.seams.aiohttp.request import Requests
from tracefork_core.seams.aiohttp.response import Refusal, Responses
from tracefork_core.seams.aiohttp.websockets import patch_websockets
from tracefork_core.seams.cancelling import Cancellable
from tracefork_core.seams.failures import wants_response

Handler = Callable[[Any], Awaitable[Any]]
_OLDEST = "3.12"
"""The first aiohttp with client middlewares."""


@lru_cache(maxsize=4)
def seam_of(lib: ModuleType) -> Seam:
    """Return the seam for a module of aiohttp."""
    return Seam(lib)


def instrument(lib: ModuleType) -> Undo:
    """Patch every session of `lib`, and return what undoes it."""
    seam, patches = seam_of(lib), Patches()

    def crossing(original: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(original)
        def request(self: Any, method: str, str_or_url: Any, **options: Any) -> Any:
            return seam.send(original, self, method, str_or_url, options)

        return request

    patches.wrap(lib.ClientSession, "_request", crossing)
    patch_websockets(patches, lib, seam.failures)
    return patches.undo


def is_client(value: object) -> bool:
    """Return whether `value` is a session of aiohttp."""
    lib = sys.modules.get("aiohttp")
    return lib is not None and isinstance(value, lib.ClientSession)


def bind_client(client: Any) -> Any:
    """Return a copy of a session whose requests cross the seam; the original is untouched.

    Both share one connector and one cookie jar. Closing the copy closes the original, too.
    """
    if hasattr(client, "tracefork_original"):
        return client
    bound = object.__new__(_bound_class(cast(Hashable, type(client))))
    vars(bound).update(vars(client), tracefork_original=client)
    return bound


@lru_cache(maxsize=16)
def _bound_class(kind: Any) -> Any:
    seam = seam_of(sys.modules["aiohttp"])

    def request(self: Any, method: str, str_or_url: Any, **options: Any) -> Any:
        return seam.send(kind._request, self, method, str_or_url, options)

    async def close(self: Any) -> None:
        await kind.close(self)
        await self.tracefork_original.close()

    def warn_of_nothing(self: Any) -> None:
        """Do not warn about an unclosed session: the original does."""

    body = {"_request": request, "close": close, "__del__": warn_of_nothing}
    with warnings.catch_warnings():
        # aiohttp deprecates subclasses of its session, but agents check `isinstance`.
        warnings.simplefilter("ignore", DeprecationWarning)
        return type(kind.__name__, (kind,), {**body, "__module__": kind.__module__})


class Seam:
    """The seam of one module of aiohttp."""

    def __init__(self, lib: ModuleType) -> None:
        self.lib = lib
        self.failures = Failures(lib)
        self.requests = Requests(lib)
        self.responses = Responses(lib, self.failures)
        self.reader_class = reader_class(lib)
        self.encodings = {"gzip", "deflate", "br"}
        if hasattr(lib.http_parser, "HAS_ZSTD"):
            self.encodings.add("zstd")

    def send(
        self,
        original: Callable[..., Any],
        client: Any,
        method: str,
        url: Any,
        options: dict[str, Any],
    ) -> Any:
        """Return the coroutine of a request; each of its attempts crosses the seam."""
        if session_of_request() is None or is_crossing_seam() or _is_websocket(options):
            return original(client, method, url, **options)
        _check_version(self.lib)
        crossing = Crossing(self, client, options)
        options = {**options, "auto_decompress": False}
        chosen = options.get("middlewares")
        middlewares = client._middlewares if chosen is None else chosen
        if any(isinstance(middleware, Crossing) for middleware in middlewares):
            return original(
                client, method, url, **options
            )  # The session is bound, and patched, too.
        options["middlewares"] = (*middlewares, crossing)
        return original(client, method, url, **options)


class Crossing:
    """The middleware of one request, which is called for each of its attempts."""

    def __init__(self, seam: Seam, client: Any, options: Mapping[str, Any]) -> None:
        self._seam = seam
        decodes, limit = options.get("auto_decompress"), options.get("read_bufsize")
        self._decodes = client.auto_decompress if decodes is None else decodes
        self._limit = client._read_bufsize if limit is None else limit

    async def __call__(self, request: Any, handler: Handler) -> Any:
        """Answer an attempt: from the network, through `handler`, or from the tape."""
        asked = await self._seam.requests.read(request)
        session = current_session()
        try:
            answer = session.open(asked) if session is not None else None
            if answer is None:
                with crossing_seam():
                    response = await handler(request)
                return self._heard(response, request, self._source(response, None))
            if not answer.is_live:
                return await self._replay(answer, request)
        except TraceforkError as error:
            if not wants_response(asked):
                raise
            return await self._replay(Refusal(error), request)
        return await self._record(answer, request, handler)

    async def _replay(self, answer: Recorded, request: Any) -> Any:
        return await self._seam.responses.response(answer, request, self._reader)

    async def _record(self, live: Live, request: Any, handler: Handler) -> Any:
        self._seam.requests.send_instead(request, live.sends)
        asking, response = Cancellable(handler(request)), None
        try:
            with crossing_seam():
                response = await asking
            source = self._source(response, live)
            await source.quiet()
        except GIVEN_UP:
            if response is not None:
                response.close()
            if getattr(request._timer, "_cancelled", False):
                # aiohttp's own timeout for the whole request: above us it becomes a TimeoutError.
                live.fail(Failure("TimeoutError", ""))
            else:
                live.cancel(asking.rounds)
            raise
        except Exception as error:
            await live.quiet()
            live.fail(self._seam.failures.failure(error))
            raise
        live.head(self._seam.responses.head(response))
        return self._heard(response, request, source)

    def _source(self, response: Any, live: Live | None) -> LiveSource:
        return LiveSource(response.content, live, self._seam.failures)

    def _heard(self, response: Any, request: Any, source: LiveSource) -> Any:
        """Return a live response whose body records what the agent reads of it."""
        lib = self._seam.lib
        if response.content is lib.EMPTY_PAYLOAD:
            source.drained()  # The agent need not read it to its end.
            return response
        try:
            response.content = self._reader(request, response.headers, source)
        except lib.http_exceptions.HttpProcessingError as error:
            response.close()
            raise lib.ClientResponseError(
                response.request_info, (), status=error.code, message=error.message
            ) from error
        return response

    def _reader(self, request: Any, headers: Any, source: Source) -> Any:
        encoding = headers.get("Content-Encoding", "").lower()
        decoded = self._decodes and encoding in self._seam.encodings
        return self._seam.reader_class(
            source,
            encoding=encoding if decoded else None,
            chunked="chunked" in headers.get("Transfer-Encoding", "").lower(),
            limit=self._limit,
            timer=request._timer,
            loop=request.loop,
        )


def _check_version(lib: ModuleType) -> None:
    if not hasattr(lib, "ClientMiddlewareType"):
        raise UsageError(
            f"tracefork: aiohttp {lib.__version__} is too old: tracefork records and replays "
            f"aiohttp {_OLDEST} and newer. Nothing was sent. "
            f'Update it: pip install -U "aiohttp>={_OLDEST}"'
        )


def _is_websocket(options: Mapping[str, Any]) -> bool:
    headers = options.get("headers")
    if not isinstance(headers, Mapping):
        return False
    return any(
        name.lower() == "upgrade" and str(value).lower() == "websocket"
        for name, value in headers.items()
    )
