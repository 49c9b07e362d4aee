"""What the server answers: the page, the list of a folder, runs as they grow, and packed parts."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

from starlette.applications import Starlette
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from tracefork_core.cli.report import branch_strip
from tracefork_core.cli.report.document import Branch
from tracefork_core.cli.report.page import live_page
from tracefork_core.cli.view.door import PAGES
from tracefork_core.cli.view.events import stream
from tracefork_core.cli.view.folder import Entry, Folder
from tracefork_core.cli.view.growing import Growing, Seen
from tracefork_core.cli.view.shelf import Shelf
from tracefork_core.comparing.diff import diff
from tracefork_core.errors import TraceforkError
from tracefork_core.tape import Tape

if TYPE_CHECKING:
    from starlette.requests import Request

    from tracefork_core.cli.view.running import Running

_POLL = 0.04
"""Seconds between two looks at the files of runs: what was committed is to be seen at once."""
_OTHERS = 500
"""Runs that a page offers to compare with."""
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
        """Yield what is new of a run, of its parents and of its branches.

        `other` is a run to compare it with, once both have ended.
        """
        comparing = other is not None and other != name
        with ExitStack() as stack:
            runs: dict[str, tuple[Growing, Seen]] = {}
            looked = 0.0
            said: dict[str, list[str]] = {}
            while True:
                if time.monotonic() - looked > _RARELY:
                    looked = time.monotonic()
                    await asyncio.to_thread(self._folder.look)
                    names = [*self._folder.family(name), *([other] if other else [])]
                    new = {one: path for one in names if (path := self._folder.find(one))}
                    for one in [it for it in new if it not in runs]:
                        runs[one] = stack.enter_context(self._shelf.lent(new[one])), Seen()
                    others = [one for one in self._folder.entries() if one not in runs][:_OTHERS]
                    if (told := {"runs": list(runs), "others": others}) != said:
                        said = told
                        yield "runs", told
                news = False
                for number, (one, (growing, seen)) in enumerate([*runs.items()]):
                    more = await asyncio.to_thread(growing.look)
                    parent = self._parent(one, [*runs])
                    growth = await asyncio.to_thread(growing.since, seen, parent=parent)
                    if growth is not None:
                        yield "growth", {"number": number, "growth": growth}
                    news = news or more
                if (
                    comparing
                    and other in runs
                    and all(runs[one][0].has_ended for one in (name, other))
                ):
                    comparing = False
                    found = await asyncio.to_thread(
                        _compared, runs[name][0].path, runs[other][0].path
                    )
                    yield "compared", {"number": [*runs].index(other), "branch": found}
                if not news:
                    await asyncio.sleep(_POLL)
                    yield "", None

    def _parent(self, name: str, runs: list[str]) -> int | None:
        """Return the place of a branch's parent among the runs."""
        entry = self._folder.entries().get(name)
        needs = entry.needs if entry is not None else []
        return runs.index(needs[0]) if needs and needs[0] in runs else None

    async def _part(self, request: Request) -> Response:
        path = self._folder.find(request.query_params.get("tape", ""))
        growing = self._shelf.find(path) if path is not None else None
        part = growing.part(request.query_params.get("id", "")) if growing else None
        if part is None:
            return PlainTextResponse("tracefork: this part was replaced; ask again.\n", 410)
        return Response(part, media_type="text/plain")


def _compared(first: Path, second: Path) -> Branch | None:
    """Return how the second run differs from the first; None if one of them cannot be read."""
    try:
        with Tape.open(first) as one, Tape.open(second) as two:
            is_branch = two.needs[:1] == [first.name]
            return branch_strip.compared(two, first.name, diff(one, two), is_branch=is_branch)
    except TraceforkError:
        return None
