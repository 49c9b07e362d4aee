"""What the server answers with `--allow-run`: offers, and the commands that were confirmed."""

from __future__ import annotations

import asyncio
import secrets
from collections import OrderedDict
from collections.abc import AsyncIterator, Sequence
from typing import TYPE_CHECKING

import msgspec
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from tracefork_core.cli.view.events import stream
from tracefork_core.cli.view.folder import Folder
from tracefork_core.cli.view.jobs import Job, Jobs
from tracefork_core.cli.view.offers import Offer, Wish, offer
from tracefork_core.errors import TraceforkError, UsageError

if TYPE_CHECKING:
    from starlette.requests import Request

_LARGEST = 100_000
"""The bytes of a request's body."""
_OPEN = 16
"""Offers that can still be taken up: a page has one dialog."""
_POLL = 0.1


class Running:
    """Offers commands for the tapes of a folder, and starts those that a person confirmed."""

    def __init__(self, folder: Folder, jobs: Jobs) -> None:
        self._folder, self._jobs = folder, jobs
        self._offers: OrderedDict[str, Offer] = OrderedDict()

    @property
    def routes(self) -> Sequence[Route]:
        """The routes, behind the door."""
        return (
            Route("/api/offer", self._offer, methods=["POST"]),
            Route("/api/start", self._start, methods=["POST"]),
            Route("/api/cancel", self._cancel, methods=["POST"]),
            Route("/api/job", self._follow),
        )

    async def _offer(self, request: Request) -> Response:
        """Say what a wish comes to. Nothing is started."""
        try:
            wish = msgspec.json.decode(await _body(request), type=Wish)
            await asyncio.to_thread(self._folder.look)
            path = self._folder.find(wish.tape)
            if path is None:
                raise UsageError(f"tracefork: there is no tape {wish.tape!r} in the list.")
            made = await asyncio.to_thread(offer, wish, path)
        except (TraceforkError, msgspec.MsgspecError, UnicodeError) as error:
            return _refused(error)
        key = secrets.token_urlsafe(16)
        self._offers[key] = made
        while len(self._offers) > _OPEN:
            self._offers.popitem(last=False)
        return _json({"offer": key, "shown": made})

    async def _start(self, request: Request) -> Response:
        """Start the command of an offer, once."""
        try:
            key = msgspec.json.decode(await _body(request), type=dict[str, str]).get("offer", "")
            made = self._offers.pop(key, None)
            if made is None:
                raise UsageError("tracefork: this was started before, or is too long ago.")
            return _json({"job": self._jobs.start(made).number})
        except (TraceforkError, msgspec.MsgspecError, OSError) as error:
            return _refused(error)

    async def _cancel(self, request: Request) -> Response:
        try:
            number = msgspec.json.decode(await _body(request), type=dict[str, int]).get("job", -1)
        except (UsageError, msgspec.MsgspecError) as error:
            return _refused(error)
        job = self._jobs.find(number)
        if job is None:
            return _refused(UsageError("tracefork: there is no such command."))
        job.cancel()
        return _json({})

    async def _follow(self, request: Request) -> Response:
        word = request.query_params.get("job", "")
        job = self._jobs.find(int(word)) if word.isascii() and word.isdecimal() else None
        if job is None:
            return PlainTextResponse("tracefork: there is no such command.\n", 404)
        return stream(_told(job))


async def _told(job: Job) -> AsyncIterator[tuple[str, object]]:
    """Yield the output of a command as it comes, and at last its exit code."""
    start = 0
    while True:
        state = job.state(start)
        if state.lines or state.exit is not None:
            yield "state", state
        start = state.start + len(state.lines)
        if state.exit is not None:
            return
        await asyncio.sleep(_POLL)
        yield "", None


async def _body(request: Request) -> bytes:
    body = b""
    async for piece in request.stream():
        body += piece
        if len(body) > _LARGEST:
            raise UsageError(f"tracefork: a request has at most {_LARGEST} bytes.")
    return body


def _json(document: object) -> Response:
    return Response(msgspec.json.encode(document), media_type="application/json")


def _refused(error: Exception) -> Response:
    return PlainTextResponse(str(error).removeprefix("tracefork: ") + "\n", 400)
