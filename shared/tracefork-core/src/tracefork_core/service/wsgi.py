"""Record the requests of a WSGI app (Flask, Django, Bottle …), one tape each.

A run begins when the server calls the app, and ends when the server closes the response, after its
last piece. Both happen in one thread. The app reads its input as the server gives it; what it has
read goes onto the tape.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from tracefork_core.service.messages import Body, Incoming, Outgoing, served_request
from tracefork_core.service.service_run import Run
from tracefork_core.tape.served import Served

if TYPE_CHECKING:
    from tracefork_core.service.recorder import Recorder

Environ = dict[str, Any]
Start = Callable[..., Callable[[bytes], object]]
App = Callable[[Environ, Start], Iterable[bytes]]

_ID = "HTTP_X_REQUEST_ID"
_PLAIN_HEADERS = ("CONTENT_TYPE", "CONTENT_LENGTH")
_REQUEST = "werkzeug.request"
"""Where Flask leaves its request, which knows the route."""


class RecordingWsgi:
    """A WSGI app around another one. `Recorder.wsgi` makes it."""

    def __init__(self, app: App, recorder: Recorder) -> None:
        self.app = app
        self._recorder = recorder

    def __call__(self, environ: Environ, start_response: Start) -> Iterable[bytes]:
        name = f"{environ['REQUEST_METHOD']} {_path(environ)}"
        run = self._recorder.begin(name, environ.get(_ID, ""))
        if run is None:
            return self.app(environ, start_response)
        answering = _Answering(self._recorder, run, environ, start_response)
        try:
            return answering.over(self.app(environ, answering.start))
        except BaseException as error:
            answering.finish(error)
            raise


class _Answering:
    """The response to one request, and what passes by while it is made. Iterable once."""

    def __init__(self, recorder: Recorder, run: Run, environ: Environ, start: Start) -> None:
        self._recorder = recorder
        self._run = run
        self._environ = environ
        self._start = start
        self._asked, self._answered = Body(), Body()
        self._headers: list[tuple[str, str]] = []
        self._pieces: Iterable[bytes] = ()
        self._iterator: Iterator[bytes] = iter(())
        self._is_over = False
        environ["wsgi.input"] = _Input(environ["wsgi.input"], self._asked)

    def start(
        self, status: str, headers: list[tuple[str, str]], *more: Any
    ) -> Callable[[bytes], object]:
        """Note the head of the response, and pass it on."""
        self._run.status = int(status.split(None, 1)[0])
        self._headers = list(headers)
        # Flask forgets its request when the response is made.
        rule = getattr(getattr(self._environ.get(_REQUEST), "url_rule", None), "rule", None)
        if isinstance(rule, str):
            self._run.name = f"{self._environ['REQUEST_METHOD']} {rule}"
        write = self._start(status, headers, *more)

        def write_noted(piece: bytes) -> object:
            self._answered.add(piece)
            return write(piece)

        return write_noted

    def over(self, pieces: Iterable[bytes]) -> _Answering:
        """Return this as the body of the response, which has these pieces."""
        self._pieces, self._iterator = pieces, iter(pieces)
        return self

    def __iter__(self) -> _Answering:
        return self

    def __next__(self) -> bytes:
        try:
            piece = next(self._iterator)
        except StopIteration:
            raise
        except BaseException as error:
            self.finish(error)
            raise
        self._answered.add(piece)
        return piece

    def close(self) -> None:
        """End the run: the server has sent the response, or given it up."""
        try:
            if (close := getattr(self._pieces, "close", None)) is not None:
                close()
        except BaseException as error:
            self.finish(error)
            raise
        self.finish(None)

    def finish(self, error: BaseException | None) -> None:
        """End the run, once."""
        if self._is_over:
            return
        self._is_over = True
        run = self._run
        run.is_unfinished = run.status is None
        self._recorder.finish(run, error, self._served)

    def _served(self) -> Served:
        run, environ = self._run, self._environ
        assert run.masking is not None
        path = quote(_path(environ), encoding="latin-1")
        query = environ.get("QUERY_STRING", "")
        incoming = Incoming(
            "wsgi",
            environ["REQUEST_METHOD"],
            f"{path}?{query}" if query else path,
            _headers(environ),
            environ.get("SCRIPT_NAME", ""),
            self._asked,
        )
        outgoing = Outgoing(run.status, self._headers, self._answered)
        return served_request(run.masking, run.name, run.id, incoming, outgoing, run.outcome)


class _Input:
    """The input of a request, which notes what is read from it."""

    def __init__(self, inner: Any, body: Body) -> None:
        self._inner = inner
        self._body = body

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def __iter__(self) -> Iterator[bytes]:
        for line in self._inner:
            yield self._noted(line)

    def read(self, *size: int) -> bytes:
        """Read as the server's input does."""
        return self._noted(self._inner.read(*size))

    def readinto(self, buffer: bytearray | memoryview) -> int:
        """Read as the server's input does."""
        data = self.read(len(buffer))
        buffer[: len(data)] = data
        return len(data)

    def readline(self, *size: int) -> bytes:
        """Read as the server's input does."""
        return self._noted(self._inner.readline(*size))

    def readlines(self, *hint: int) -> list[bytes]:
        """Read as the server's input does."""
        return [self._noted(line) for line in self._inner.readlines(*hint)]

    def _noted(self, data: bytes) -> bytes:
        self._body.add(data)
        return data


def _path(environ: Environ) -> str:
    return f"{environ.get('SCRIPT_NAME', '')}{environ.get('PATH_INFO', '')}" or "/"


def _headers(environ: Environ) -> list[tuple[str, str]]:
    return [
        (key.removeprefix("HTTP_").replace("_", "-").lower(), str(value))
        for key, value in environ.items()
        if (key.startswith("HTTP_") or key in _PLAIN_HEADERS) and value
    ]
