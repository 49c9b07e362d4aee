"""Give a recorded request to an app again, as a server would, and keep what it answers."""

from __future__ import annotations

import asyncio
import io
import sys
from collections.abc import Awaitable, Callable, Iterable, MutableMapping, Sequence
from contextvars import Context
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote

from tracefork_core.errors import ReplayError
from tracefork_core.exchange.current import outside
from tracefork_core.masking.masking import Masking
from tracefork_core.masking.names import MASK
from tracefork_core.service.messages import Body, Outgoing, answer_digest
from tracefork_core.tape.served import Served

_CLIENT = ("127.0.0.1", 0)
_LIFESPAN_SECONDS = 30.0


@dataclass(slots=True)
class Answer:
    """What an app sent: its status (None if it sent nothing), headers and body."""

    status: int | None = None
    headers: list[tuple[str, str]] = field(default_factory=list)
    body: Body = field(default_factory=Body)

    @property
    def text(self) -> str:
        """The body as text; empty if it is too large to be held."""
        return (self.body.whole() or b"").decode("utf-8", "replace")

    def digest(self, masking: Masking) -> str | None:
        """Return the digest of the body as it is on a tape."""
        return answer_digest(masking, Outgoing(self.status, self.headers, self.body))


def masked_headers(served: Served) -> list[str]:
    """Return the names of the request headers whose values are not on the tape."""
    return [name for name, value in served.headers if value == MASK]


def ask(app: Any, served: Served, headers: Sequence[tuple[str, str]], answer: Answer) -> None:
    """Have an app handle a recorded request; `answer` takes what it sends.

    `headers` replace those of the same name. An ASGI app runs on an event loop of its own, between
    the start and the end of its lifespan, which are no part of the run.

    Raises:
        ReplayError: the body of the request is not on the tape.
        Exception: what the app raises.
    """
    body = served.body
    if body is None:
        raise ReplayError(
            f"tracefork: the tape has only the size of the request's body ({served.size} bytes): "
            "the body was too large, or the mode keeps none. The handler cannot run again."
        )
    replaced = {name.lower() for name, _ in headers}
    length = "content-length", str(len(body))  # A secret in the body is masked.
    kept = [
        length if pair[0] == length[0] else pair
        for pair in served.headers
        if pair[0] not in replaced
    ]
    sent = [*kept, *((name.lower(), value) for name, value in headers)]
    if served.interface == "wsgi":
        _ask_wsgi(app, served, sent, body, answer)
    else:
        asyncio.run(_ask_asgi(app, served, sent, body, answer))


def run_task(app: Any, served: Served, answer: Answer) -> None:
    """Call the function of a recorded Celery task again; the answer's body is what it returns.

    Raises:
        ReplayError: the app has no such task, or its arguments are not on the tape.
        Exception: what the task raises.
    """
    if served.arguments is None:
        raise ReplayError(
            f"tracefork: the arguments of the task {served.name} are not on the tape: they are no "
            "JSON, or the mode keeps none. The task cannot run again."
        )
    task = app.tasks.get(served.name)
    if task is None:
        raise ReplayError(
            f"tracefork: the app has no task {served.name}. Name a module that imports it."
        )
    given = served.arguments
    answer.body.add(str(task(*given.positional, **given.named)).encode("utf-8", "backslashreplace"))


async def _ask_asgi(
    app: Any, served: Served, headers: list[tuple[str, str]], body: bytes, answer: Answer
) -> None:
    path, _, query = served.target.partition("?")
    scope = {
        "type": "http",
        "asgi": {"version": "3.0", "spec_version": "2.3"},
        "http_version": "1.1",
        "method": served.method,
        "scheme": "http",
        "path": unquote(path),
        "raw_path": path.encode("latin-1"),
        "query_string": query.encode("latin-1"),
        "root_path": served.root,
        "headers": [(name.encode("latin-1"), value.encode("latin-1")) for name, value in headers],
        "client": _CLIENT,
        "server": _CLIENT,
        "state": {},
    }
    messages = [{"type": "http.request", "body": body, "more_body": False}]
    is_answered = asyncio.Event()

    async def receive() -> MutableMapping[str, Any]:
        if messages:
            return messages.pop()
        await is_answered.wait()
        return {"type": "http.disconnect"}

    async def send(message: MutableMapping[str, Any]) -> None:
        if message["type"] == "http.response.start":
            answer.status = message["status"]
            answer.headers = [
                (bytes(name).decode("latin-1"), bytes(value).decode("latin-1"))
                for name, value in message.get("headers", ())
            ]
        elif message["type"] == "http.response.body":
            answer.body.add(message.get("body", b""))
            if not message.get("more_body", False):
                is_answered.set()

    lifespan = _Lifespan(app)
    scope["state"] = dict(await lifespan.start())
    try:
        await app(scope, receive, send)
    finally:
        await lifespan.stop()


class _Lifespan:
    """The lifespan of an ASGI app. It runs outside of the session, as it did in the service."""

    def __init__(self, app: Callable[..., Awaitable[None]]) -> None:
        self._app = app
        self._state: dict[str, Any] = {}
        self._asked: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        self._told: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> dict[str, Any]:
        """Start the app, and return the state that it gives to each request."""
        self._task = asyncio.get_running_loop().create_task(self._run(), context=Context())
        await self._say("lifespan.startup")
        return self._state

    async def stop(self) -> None:
        """Let the app shut down."""
        if self._task is not None and not self._task.done():
            await self._say("lifespan.shutdown")
            await asyncio.wait([self._task], timeout=_LIFESPAN_SECONDS)

    async def _run(self) -> None:
        scope = {"type": "lifespan", "asgi": {"version": "3.0"}, "state": self._state}
        try:
            with outside():
                await self._app(scope, self._asked.get, self._told.put)
        except Exception as error:  # noqa: BLE001 - an app without a lifespan may raise here
            await self._told.put({"type": "raised", "error": error})

    async def _say(self, kind: str) -> None:
        assert self._task is not None
        await self._asked.put({"type": kind})
        told = asyncio.ensure_future(self._told.get())
        await asyncio.wait([told, self._task], return_when=asyncio.FIRST_COMPLETED)
        if not told.done():
            told.cancel()
        elif told.result()["type"] == "lifespan.startup.failed":
            raise ReplayError(
                f"tracefork: the app did not start: {told.result().get('message', '')}."
            )


def _ask_wsgi(
    app: Any, served: Served, headers: list[tuple[str, str]], body: bytes, answer: Answer
) -> None:
    path, _, query = served.target.partition("?")
    inside = path.removeprefix(served.root) if served.root else path
    environ: dict[str, Any] = {
        "REQUEST_METHOD": served.method,
        "SCRIPT_NAME": served.root,
        "PATH_INFO": unquote(inside, "latin-1"),
        "QUERY_STRING": query,
        "SERVER_NAME": _CLIENT[0],
        "SERVER_PORT": str(_CLIENT[1]),
        "SERVER_PROTOCOL": "HTTP/1.1",
        "REMOTE_ADDR": _CLIENT[0],
        "CONTENT_LENGTH": str(len(body)),
        "wsgi.version": (1, 0),
        "wsgi.url_scheme": "http",
        "wsgi.input": io.BytesIO(body),
        "wsgi.errors": sys.stderr,
        "wsgi.multithread": True,
        "wsgi.multiprocess": False,
        "wsgi.run_once": False,
    }
    for name, value in headers:
        key = name.upper().replace("-", "_")
        environ[key if key in ("CONTENT_TYPE", "CONTENT_LENGTH") else f"HTTP_{key}"] = value

    def start(status: str, sent: list[tuple[str, str]], exc_info: Any = None) -> Any:
        answer.status = int(status.split(maxsplit=1)[0])
        answer.headers = list(sent)
        return answer.body.add

    pieces: Iterable[bytes] = app(environ, start)
    try:
        for piece in pieces:
            answer.body.add(piece)
    finally:
        if (close := getattr(pieces, "close", None)) is not None:
            close()
