"""A scripted provider on 127.0.0.1, served by a thread with its own event loop."""

from __future__ import annotations

import asyncio
import ssl
import threading
from collections import Counter
from collections.abc import Awaitable, Coroutine, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from hashlib import sha256
from inspect import isawaitable
from typing import Self, TypeVar

from tracefork_testkit.connection import Connection
from tracefork_testkit.dialect import Dialect
from tracefork_testkit.directives import directed
from tracefork_testkit.faults import Encoding
from tracefork_testkit.http1 import Delivery, ReceivedRequest, json_delivery
from tracefork_testkit.routes import dialect_of, plain_answer
from tracefork_testkit.script import Outcome, Script, ScriptExhaustedError, SequenceScript
from tracefork_testkit.stamp import Stamp, http_date

T = TypeVar("T")


class ProviderServer:
    """Serve the wire formats of OpenAI, Anthropic, Gemini, Ollama and Bedrock from a script.

    Args:
        script: a callable (it runs in the server's thread and may be async) or a sequence of
            outcomes. By default, `@` lines in the prompt direct the answers.
        nondeterministic: draw ids, times and counts at random instead of from the request's bytes.
        chunk_delay: seconds between two events.
        fixed_date: derive the date header from the request too, instead of the wall clock.
        compress: gzip JSON answers for clients that accept it.
        cut_anywhere: cut streams into chunks of any size, instead of one for each event.
        keep_requests: list the received requests in `requests`.
        port: the port to listen on; 0 picks a free one.
    """

    def __init__(
        self,
        script: Script | Sequence[Outcome] = directed,
        *,
        nondeterministic: bool = False,
        chunk_delay: float = 0.0,
        fixed_date: bool = True,
        compress: bool = False,
        cut_anywhere: bool = False,
        keep_requests: bool = True,
        port: int = 0,
    ) -> None:
        self._script: Script = script if callable(script) else SequenceScript(script)
        self._nondeterministic = nondeterministic
        self._chunk_delay = chunk_delay
        self._fixed_date = fixed_date
        self._compress = compress
        self._cut_anywhere = cut_anywhere
        self._keep_requests = keep_requests
        self._port = port
        self._received: list[ReceivedRequest] = []
        self._seen: Counter[bytes] = Counter()
        self._accepted = 0
        self._open: set[Connection] = set()
        self._listeners: list[asyncio.Server] = []
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None

    def __enter__(self) -> Self:
        """Start serving."""
        self.start()
        return self

    def __exit__(self, *exc: object) -> None:
        """Stop serving and drop open connections."""
        self.stop()

    @property
    def url(self) -> str:
        """Return the base URL, without a trailing slash."""
        return f"http://127.0.0.1:{self.port}"

    @property
    def port(self) -> int:
        """Return the port of the plain listener."""
        if self._loop is None:
            raise RuntimeError("the provider server is not started: use it in a `with` block")
        return self._port

    @property
    def requests(self) -> list[ReceivedRequest]:
        """Return the requests received so far, in order of arrival."""
        return list(self._received)

    @property
    def connections(self) -> int:
        """Return the number of connections accepted so far."""
        return self._accepted

    def start(self) -> None:
        """Start listening, in a thread of its own."""
        if self._thread is not None:
            raise RuntimeError(f"the provider server is already started at {self.url}")
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(
            target=self._loop.run_forever, name="testkit-provider", daemon=True
        )
        self._thread.start()
        try:
            self._port = self.listen(port=self._port)
        except BaseException:
            self.stop()
            raise

    def stop(self) -> None:
        """Drop open connections and end the thread; a second call does nothing."""
        if self._loop is None or self._thread is None:
            return
        self._await(self._close())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()
        self._loop = self._thread = None

    def listen(self, *, port: int = 0, tls: ssl.SSLContext | None = None) -> int:
        """Open another listener on 127.0.0.1 and return its port."""
        return self._await(self._listen(port, tls))

    @contextmanager
    def real_hosts(self, *more: str) -> Iterator[Self]:
        """Let this process reach this server as https://api.openai.com and other real hosts.

        Starts the server if it is not running. Needs the extra `realhost`.
        """
        from tracefork_testkit.realhost import DEFAULT_HOSTS, rerouted

        if self._loop is None:
            with self, self.real_hosts(*more):
                yield self
            return
        with rerouted(self, (*DEFAULT_HOSTS, *more)):
            yield self

    def answer(self, received: ReceivedRequest) -> Delivery | Awaitable[Delivery]:
        """Return how to answer a request."""
        if self._keep_requests:
            self._received.append(received)
        path = received.path.partition("?")[0]
        dialect = dialect_of(path) if received.method == "POST" else None
        if dialect is not None:
            return self._answer_model(dialect, path, received)
        try:
            known = plain_answer(received)
        except (KeyError, TypeError, ValueError) as error:
            return json_delivery(400, {"error": {"message": f"bad request: {error!r}"}})
        missing = f"this scripted provider has no endpoint at {received.method} {path}"
        return known or json_delivery(404, {"error": {"message": missing}})

    def _answer_model(
        self, dialect: Dialect, path: str, received: ReceivedRequest
    ) -> Delivery | Awaitable[Delivery]:
        asked = path.encode() + b"\0" + received.body
        digest = sha256(asked).digest()
        self._seen[digest] += 1
        attempt = self._seen[digest]
        stamp = Stamp.fresh() if self._nondeterministic else Stamp.of(asked, attempt)
        date = http_date(stamp.created if self._fixed_date else None)
        try:
            request = dialect.read(received.path, received.json())
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            message = f"the request does not fit this API: {error!r}"
            return json_delivery(400, dialect.error(400, message, stamp))
        request = replace(request, path=path, body=received.body, attempt=attempt)
        encoding = Encoding(
            dialect,
            request,
            stamp,
            date,
            self._chunk_delay,
            self._nondeterministic,
            self._compress and "gzip" in (received.header("accept-encoding") or ""),
            self._cut_anywhere,
        )
        try:
            outcome = self._script(request)
        except Exception as error:  # noqa: BLE001 - the client gets any error of a script
            return _refused(encoding, error)
        if isawaitable(outcome):
            return _deliver_later(encoding, outcome)
        return encoding.deliver(outcome)

    async def _listen(self, port: int, tls: ssl.SSLContext | None) -> int:
        loop = asyncio.get_running_loop()
        server = await loop.create_server(self._accept, "127.0.0.1", port, ssl=tls, backlog=1024)
        self._listeners.append(server)
        return int(server.sockets[0].getsockname()[1])

    def _accept(self) -> Connection:
        self._accepted += 1
        return Connection(self._accepted, self.answer, self._open)

    async def _close(self) -> None:
        for listener in self._listeners:
            listener.close()
        self._listeners.clear()
        for connection in list(self._open):
            connection.abort()
        await asyncio.sleep(0)
        rest = asyncio.all_tasks() - {asyncio.current_task()}
        for task in rest:
            task.cancel()
        await asyncio.gather(*rest, return_exceptions=True)

    def _await(self, work: Coroutine[object, object, T]) -> T:
        if self._loop is None:
            work.close()
            raise RuntimeError("the provider server is not started: use it in a `with` block")
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()


async def _deliver_later(encoding: Encoding, outcome: Awaitable[Outcome]) -> Delivery:
    try:
        return encoding.deliver(await outcome)
    except Exception as error:  # noqa: BLE001 - as for a script that is not async
        return _refused(encoding, error)


def _refused(encoding: Encoding, error: Exception) -> Delivery:
    if isinstance(error, ScriptExhaustedError):
        return encoding.refusal(500, str(error))
    return encoding.refusal(500, f"the script raised {type(error).__name__}: {error}")
