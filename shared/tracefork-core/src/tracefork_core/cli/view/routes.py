"""What the server answers: the page, the list of a folder, runs as they grow, and packed parts."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Mapping
from typing import TYPE_CHECKING

from starlette.applications import Starlette
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from tracefork_core.cli.report.page import live_page
from tracefork_core.cli.view.door import PAGES
from tracefork_core.cli.view.events import stream
from tracefork_core.cli.view.folder import Entry, Folder
from tracefork_core.cli.view.followed import Followed
from tracefork_core.cli.view.shelf import Shelf

if TYPE_CHECKING:
    from starlette.requests import Request

    from tracefork_core.cli.view.running import Running

_POLL = 0.04
"""Seconds between two looks at the files of runs: what was committed is to be seen at once."""
_RARELY = 1.0
"""Seconds between two looks at a folder."""


class Server:
    """Answers for one folder."""

    def __init__(self, folder: Folder, running: Running | None) -> None:
        self._folder, self._running = folder, running
        self._shelf = Shelf()

    @property
    def app(self) -> Starlette:
        """The app, without the door in front of it."""
        return Starlette(
            routes=[
                *(Route(path, self._page) for path in PAGES),
                Route("/api/folder", self._list),
                Route("/api/run", self._run),
                Route("/api/part", self._part),
                *(self._running.routes if self._running else ()),
            ]
        )

    async def _page(self, request: Request) -> Response:
        page, policy = live_page(self._folder.path.name, allow_run=self._running is not None)
        return Response(page, media_type="text/html", headers={"content-security-policy": policy})

    async def _list(self, request: Request) -> Response:
        return stream(self._entries())

    async def _entries(self) -> AsyncIterator[tuple[str, object]]:
        """Yield what is new in the folder: entries, and the names of tapes that are gone."""
        told: Mapping[str, Entry] = {}
        while True:
            left = await asyncio.to_thread(self._folder.look)
            entries = self._folder.entries()
            new = [one for name, one in entries.items() if one is not told.get(name)]
            gone = [name for name in told if name not in entries]
            if new or gone or not told:
                yield "entries", {"entries": new, "gone": gone, "left": left}
            told = entries
            await asyncio.sleep(0 if left else _RARELY)
            if not left and not new:
                yield "", None

    async def _run(self, request: Request) -> Response:
        name = request.query_params.get("tape", "")
        await asyncio.to_thread(self._folder.look)
        other = request.query_params.get("with")
        if self._folder.find(name) is None or (other and self._folder.find(other) is None):
            return PlainTextResponse(
                f"tracefork: there is no tape of that name in {self._folder.path}.\n", 404
            )
        return stream(self._rows(name, other))

    async def _rows(self, name: str, other: str | None) -> AsyncIterator[tuple[str, object]]:
        """Yield the names of the runs of a page, what is new of each, and how two differ."""
        looked, said = 0.0, None
        with Followed(self._folder, self._shelf, name, other) as runs:
            while True:
                if time.monotonic() - looked > _RARELY:
                    looked = time.monotonic()
                    if (names := await asyncio.to_thread(runs.renew)) != said:
                        said = names
                        yield "runs", names
                found, more = await asyncio.to_thread(runs.look)
                for number, growth in found:
                    yield "growth", {"number": number, "growth": growth}
                if (compared := await asyncio.to_thread(runs.compare)) is not None:
                    yield "compared", {"number": compared[0], "branch": compared[1]}
                if not more:
                    await asyncio.sleep(_POLL)
                    yield "", None

    async def _part(self, request: Request) -> Response:
        path = self._folder.find(request.query_params.get("tape", ""))
        growing = self._shelf.find(path) if path is not None else None
        part = growing.part(request.query_params.get("id", "")) if growing else None
        if part is None:
            return PlainTextResponse("tracefork: this part was replaced; ask again.\n", 410)
        return Response(part, media_type="text/plain")
