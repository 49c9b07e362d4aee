"""aiohttp up to 3.11, which knows no middlewares: an attempt is where it asks for a connection.

The connector of the session is replaced for the length of one request, in a copy of the session:
asked for a connection, ours makes the whole attempt, and what aiohttp then sends into it is there
already. An exception that did not come from connecting is raised where aiohttp sends, because it
tries some of those again.
"""

from __future__ import annotations

import copy
from collections.abc import Awaitable, Callable
from types import ModuleType, SimpleNamespace
from typing import Any

Crossing = Callable[[Any, Callable[[Any], Awaitable[Any]]], Awaitable[Any]]


class Connecting:
    """The connector of one request."""

    def __init__(
        self, lib: ModuleType, client: Any, crossing: Crossing, options: dict[str, Any]
    ) -> None:
        self._lib = lib
        self._client = client
        self._crossing = crossing
        self._options = options

    def __getattr__(self, name: str) -> Any:
        return getattr(self._client._connector, name)

    async def request(self, original: Callable[..., Any], method: str, url: Any) -> Any:
        """Make the request."""
        if isinstance(self._client._connector, Connecting):
            return await original(self._client, method, url, **self._options)
        view = copy.copy(self._client)
        if not self._client.closed:
            vars(view)["_connector"] = self
        try:
            return await original(view, method, url, **self._options)
        finally:
            vars(view)["_connector"] = None  # A session without one is closed: nothing to warn of.

    async def connect(self, request: Any, traces: list[Any], timeout: Any) -> Any:
        """Make an attempt and return what passes for its connection."""

        async def attempt(request: Any) -> Any:
            return await self._attempt(request, traces, timeout)

        try:
            response = await self._crossing(request, attempt)
        except (self._lib.ConnectionTimeoutError, self._lib.ClientConnectorError):
            raise
        except Exception as error:
            request.send = _raising(error)
        else:
            request.send = _returning(response)
            response.start = _returning(response)
        protocol = SimpleNamespace(set_response_params=lambda **_: None)
        return SimpleNamespace(transport=protocol, protocol=protocol, close=lambda: None)

    async def _attempt(self, request: Any, traces: list[Any], timeout: Any) -> Any:
        connector = self._client._connector
        try:
            connection = await connector.connect(request, traces=traces, timeout=timeout)
        except self._lib.ServerTimeoutError:
            raise
        except TimeoutError as error:
            message = f"Connection timeout to host {request.url}"
            raise self._lib.ConnectionTimeoutError(message) from error
        connection.protocol.set_response_params(
            timer=request._timer,
            skip_payload=request.method == "HEAD",
            read_until_eof=self._option("read_until_eof", default=True),
            auto_decompress=False,
            read_timeout=timeout.sock_read,
            read_bufsize=self._option("read_bufsize"),
            timeout_ceil_threshold=connector._timeout_ceil_threshold,
            max_line_size=self._option("max_line_size"),
            max_field_size=self._option("max_field_size"),
        )
        try:
            response = await type(request).send(request, connection)
            try:
                await response.start(connection)
            except BaseException:
                response.close()
                raise
        except BaseException:
            connection.close()
            raise
        return response

    def _option(self, name: str, *, default: Any = None) -> Any:
        chosen = self._options.get(name)
        if chosen is not None:
            return chosen
        return getattr(self._client, f"_{name}") if default is None else default


def _returning(value: Any) -> Callable[..., Awaitable[Any]]:
    async def done(*_: object) -> Any:
        return value

    return done


def _raising(error: Exception) -> Callable[..., Awaitable[Any]]:
    async def failed(*_: object) -> Any:
        raise error

    return failed
