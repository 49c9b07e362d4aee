"""Run the verifiers of an agent again while the rest of it is replayed.

A verifier is a tool that only checks: a test run, a linter, a query. In a hybrid replay it gets its
recorded answer like every tool, so that the run stays the recorded one; and then it runs once more
for real, below the seam. What it returns now is kept beside the recorded result, to be compared.

Only verifiers run. A verifier that calls another tool of the agent gets an error, unless that tool
only reads.
"""

from __future__ import annotations

import inspect
import json
import shlex
import subprocess
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Protocol, runtime_checkable

from tracefork_core.errors import ReplayError, TraceforkError, UsageError, WriteError
from tracefork_core.exchange.contract import Failure, Request
from tracefork_core.exchange.current import crossing_seam
from tracefork_core.seams.tools.definition import Args, Kwargs, Tool

Outcome = bytes | Failure
"""What came of a run: the result as a tape holds it, or the failure."""


@dataclass(frozen=True, slots=True)
class Rerun:
    """One run of a verifier, and the `body` or `failure` that came of it; `n` is the exchange."""

    n: int
    body: bytes = b""
    failure: Failure | None = None


@runtime_checkable
class Taped(Protocol):
    """A recorded answer that knows where it is on its tape, and which secrets that masks."""

    @property
    def n(self) -> int: ...

    def masked(self, text: str) -> str: ...


@dataclass(slots=True)
class Verifying:
    """The verifiers of a hybrid replay.

    Attributes:
        names: tools that are verifiers without being declared so in the code.
        writes: names of verifiers that may write.
        runs: what has run so far.
        refused: verifiers that did not run, because they may write.
        times: how often each call of a verifier runs again.
        container: the command under which verifiers run; empty for this process.
    """

    names: frozenset[str] = frozenset()
    writes: frozenset[str] = frozenset()
    runs: list[Rerun] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)
    times: int = 1
    container: tuple[str, ...] = ()

    def wants(self, tool: Tool) -> bool:
        """Return whether a tool runs again."""
        if not (tool.verifier or tool.name in self.names):
            return False
        if tool.effect == "write" and tool.name not in self.writes:
            self.refused.append(tool.name)
            return False
        return True

    def lets(self, tool: Tool) -> bool:
        """Return whether a verifier may call a tool: one that only reads, or itself a verifier."""
        if tool.effect == "write":
            return tool.name in self.writes
        return tool.effect in ("read", "pure") or tool.verifier or tool.name in self.names


@dataclass(frozen=True, slots=True)
class Rerunning:
    """One call of a verifier that runs again."""

    verifying: Verifying
    tool: Tool
    answer: Taped
    asked: Request

    @contextmanager
    def after(self, args: Args, kwargs: Kwargs) -> Iterator[None]:
        """Run the verifier once the block has answered its call from the tape."""
        try:
            yield
        except TraceforkError:
            raise
        except BaseException:
            self._run(args, kwargs)
            raise
        self._run(args, kwargs)

    @asynccontextmanager
    async def aafter(self, args: Args, kwargs: Kwargs) -> AsyncIterator[None]:
        """Do the same for an async tool."""
        try:
            yield
        except TraceforkError:
            raise
        except BaseException:
            await self._arun(args, kwargs)
            raise
        await self._arun(args, kwargs)

    def _run(self, args: Args, kwargs: Kwargs) -> None:
        for _ in range(self.verifying.times):
            if self.verifying.container:
                self._keep(in_container(self.verifying.container, self.tool, self.asked))
                continue
            with _running_as(self.tool.name), crossing_seam():
                self._keep(outcome(self.tool, lambda: self.tool.function(*args, **kwargs)))

    async def _arun(self, args: Args, kwargs: Kwargs) -> None:
        for _ in range(self.verifying.times):
            if self.verifying.container:
                self._keep(in_container(self.verifying.container, self.tool, self.asked))
                continue
            value: Any = None
            error: Exception | None = None
            with _running_as(self.tool.name), crossing_seam():
                try:
                    value = await self.tool.function(*args, **kwargs)
                except TraceforkError:
                    raise
                except Exception as raised:
                    error = raised
            self._keep(outcome(self.tool, partial(_value, value, error)))

    def _keep(self, came: Outcome) -> None:
        """Keep what came of a run as a tape would hold it: with its secrets masked."""
        if isinstance(came, Failure):
            failure = Failure(came.kind, self.answer.masked(came.message))
            self.verifying.runs.append(Rerun(self.answer.n, failure=failure))
            return
        body = self.answer.masked(came.decode()).encode("utf-8", "surrogatepass")
        self.verifying.runs.append(Rerun(self.answer.n, body))


def outcome(tool: Tool, call: Callable[[], object]) -> Outcome:
    """Call a verifier, and return its result as a tape holds it, or its failure.

    Raises:
        TraceforkError: the verifier may not do what it does.
    """
    try:
        body, _ = tool.keep(call())
    except UsageError as error:
        return Failure(type(error).__name__, str(error))
    except TraceforkError:
        raise
    except Exception as error:
        return tool.failures.failure(error)
    return body


def in_container(command: Sequence[str], tool: Tool, asked: Request) -> Outcome:
    """Run a verifier under a command, in a Python of its own, with its recorded arguments.

    Raises:
        UsageError: the function cannot be imported without running the agent.
        ReplayError: the command left no result.
    """
    function = inspect.unwrap(tool.function)
    module, name = function.__module__, function.__qualname__
    if module == "__main__" or "<locals>" in name:
        raise UsageError(
            f"tracefork: the verifier {tool.name} cannot run in a container: to import "
            f"{module}.{name} would run the agent. Move it to the top of a module of its own."
        )
    job = {"module": module, "name": name, "arguments": asked.body.decode()}
    words = [*command, "python3", "-m", "tracefork_core.seams.tools.verifier_child"]
    with crossing_seam():
        done = subprocess.run(  # noqa: S603 - the user's own command
            words, input=json.dumps(job).encode(), capture_output=True, check=False
        )
    try:
        came = json.loads(done.stdout.splitlines()[-1])
    except (ValueError, IndexError):
        said = done.stderr.decode("utf-8", "backslashreplace").strip().splitlines()
        raise ReplayError(
            f"tracefork: the verifier {tool.name} left no result: {shlex.join(words[:4])}… ended "
            f"with status {done.returncode}.{f' {said[-1]}' if said else ''}"
        ) from None
    failure = came.get("failure")
    if failure:
        return Failure(*failure)
    return str(came["body"]).encode()


_current: Verifying | None = None
_running: ContextVar[str | None] = ContextVar("tracefork_verifier", default=None)


@contextmanager
def verifying(wanted: Verifying) -> Iterator[None]:
    """Run verifiers again while the block lasts, in this whole process."""
    global _current
    _current = wanted
    try:
        yield
    finally:
        _current = None


def wanted(tool: Tool, answer: object, asked: Request) -> Rerunning | None:
    """Return what runs a tool again after it was answered from the tape, if anything does."""
    if _current is None or not isinstance(answer, Taped) or not _current.wants(tool):
        return None
    return Rerunning(_current, tool, answer, asked)


def check_nested(tool: Tool) -> None:
    """Refuse a tool that a verifier calls, unless it only reads or is a verifier, too.

    Raises:
        WriteError: it may write.
    """
    verifier = _running.get()
    if verifier is not None and _current is not None and not _current.lets(tool):
        raise WriteError(
            f"tracefork: the verifier {verifier} calls the tool {tool.name}, which may have a side "
            "effect. Declare the tool effect='read', or do not run this verifier again."
        )


@contextmanager
def _running_as(name: str) -> Iterator[None]:
    token = _running.set(name)
    try:
        yield
    finally:
        _running.reset(token)


def _value(value: object, error: Exception | None) -> object:
    if error is not None:
        raise error
    return value
