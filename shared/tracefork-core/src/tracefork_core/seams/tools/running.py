"""A tool that runs for real: what goes onto the tape of it, and what the agent is given."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tracefork_core.errors import TraceforkError, UsageError
from tracefork_core.exchange.contract import Failure, Live, Request
from tracefork_core.seams.tools.definition import Args, Kwargs, Tool


@dataclass(frozen=True, slots=True)
class Ended:
    """What came of it: a `body` for the tape and what is `given`, or a `failure` and an `error`."""

    body: bytes = b""
    given: Any = None
    failure: Failure | None = None
    error: Exception | None = None


@dataclass(frozen=True, slots=True)
class Running:
    """One call, recorded by `live`."""

    tool: Tool
    live: Live
    asked: Request
    args: Args
    kwargs: Kwargs

    def start(self) -> Any:
        """Call the function as the agent did, or as a fork does in its place."""
        args, kwargs = self.args, self.kwargs
        if (sends := self.live.sends) is not None:
            args, kwargs = self.tool.instead(self.asked, sends, args, kwargs)
        return self.tool.function(*args, **kwargs)

    def kept(self, value: object, *, ending: bool = False) -> Ended:
        """Return a result as the tape and the agent get it, or the error that it is none."""
        try:
            body, given = self.tool.keep(value, ending=ending)
        except UsageError as error:
            return Ended(failure=self.tool.failures.failure(error), error=error)
        return Ended(body, given)

    def raised(self, error: BaseException, rounds: int = 0) -> Ended:
        """Return what the tape and the agent get of an exception of the tool; raise any other.

        `rounds` are those of the event loop that it took to cancel it.
        """
        if isinstance(error, TraceforkError) or not isinstance(error, Exception):
            self.live.cancel(rounds)
            raise error
        failure = self.tool.failures.failure(error)
        seen = self.tool.failures.seen(error, failure)
        if seen is not error:
            seen.__cause__ = error
        return Ended(failure=failure, error=seen)

    def check(self, ended: Ended) -> None:
        """Put the error that came of it onto the tape, and raise it, if one did."""
        if ended.failure is not None and ended.error is not None:
            self.live.fail(ended.failure)
            raise ended.error

    async def quiet(self) -> None:
        """Wait for the turn of a delivery. An agent that gives up meanwhile has not seen it."""
        try:
            await self.live.quiet()
        except BaseException:
            self.live.cancel()
            raise
