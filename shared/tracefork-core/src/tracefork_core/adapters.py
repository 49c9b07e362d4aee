"""The public interface for adapters: what the package for one framework may use of core.

An adapter is a distribution of its own with these entry points:

    tracefork.adapters     an `Adapter`, which `tracefork doctor` lists
    tracefork.instruments  an `Instrument`: patches the framework while a session is open
    tracefork.importers    an `Importer`: brings over the threads of another checkpointer
    tracefork.projects     a `FindProject`: lets `tracefork record FOLDER` run a project

Its one public function is `attach(x) -> x`. An adapter uses this interface to

- capture clients: `tracefork_core.bind`;
- report steps: `begin_step`, `end_step`, `current_step`;
- name the lanes of parallel branches: `lane_here`, `branch_lane`, `restart_lane_numbers`;
- store checkpoints: `checkpoints`, and `ask_where` for the checkpoint that an exchange runs from;
- put a stand-in in front of state that outlives the run: `state_of`, below `crossing_seam`;
- record the framework's tools as exchanges: `tool_exchange`, and `FrameworkValues` to turn its
  classes into data and back.

Outside a session all of it does nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping
from dataclasses import dataclass, field
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import Protocol, TypeVar

from tracefork_core.checkpoints.contract import Checkpoints, RecordedRun
from tracefork_core.exchange import lane
from tracefork_core.exchange.contract import Lane, Noted, State
from tracefork_core.exchange.current import (
    ask_where,
    crossing_seam,
    current_session,
    current_step,
)
from tracefork_core.patching.instrument import Instrument
from tracefork_core.seams.tools.framework_tools import (
    FrameworkValues,
    ToolMark,
    atool_exchange,
    tool_exchange,
    tool_mark,
)
from tracefork_core.tape.checkpoint import Checkpoint as SavedCheckpoint
from tracefork_core.tape.checkpoint import Value as SavedValue
from tracefork_core.tape.checkpoint import Write as SavedWrite

TYPE_CHECKING = False  # The tape takes long to load, and listing an adapter does not need it.
if TYPE_CHECKING:
    from tracefork_core.exchange.contract import Session
    from tracefork_core.tape import Tape

_T = TypeVar("_T")

GROUP = "tracefork.adapters"
IMPORTERS = "tracefork.importers"
"""The group of entry points whose values are an `Importer`."""
PROJECTS = "tracefork.projects"
"""The group of entry points whose values are a `FindProject`."""

__all__ = [
    "Adapter",
    "Checkpoints",
    "FindProject",
    "FrameworkValues",
    "Imported",
    "Importer",
    "Instrument",
    "Lane",
    "Noted",
    "Project",
    "RecordedRun",
    "SavedCheckpoint",
    "SavedValue",
    "SavedWrite",
    "State",
    "ToolMark",
    "answering_tape",
    "ask_where",
    "atool_exchange",
    "begin_step",
    "branch_lane",
    "check_asked",
    "check_session",
    "checkpoints",
    "crossing_seam",
    "current_step",
    "end_step",
    "fork_point",
    "found_adapters",
    "in_session",
    "lane_here",
    "mark_as_recorded",
    "memory_checkpoints",
    "recorded_checkpoints",
    "recorded_runs",
    "restart_lane_numbers",
    "revisited_checkpoint",
    "session_here",
    "state_of",
    "tool_exchange",
    "tool_mark",
    "without_secrets",
]


@dataclass(frozen=True, slots=True)
class Adapter:
    """What `tracefork doctor` lists about an adapter.

    Args:
        name: the short name, as in the package name ("langgraph").
        distribution: the adapter's own distribution; its metadata says which versions of the
            framework it supports.
        framework: the framework's distribution name.
        seams: where the framework's exchanges are captured, as text for people.
    """

    name: str
    distribution: str
    framework: str
    seams: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Imported:
    """How many threads, checkpoints and writes an `Importer` brought over."""

    threads: int
    checkpoints: int
    writes: int


class Importer(Protocol):
    """Brings over the threads of another checkpointer."""

    def __call__(self, source: Path, target: Checkpoints) -> Imported:
        """Put everything that `source` holds into `target`, and return how much that was.

        Raises:
            UsageError: `source` is no file of that checkpointer, or reading it would run its code.
        """


@dataclass(frozen=True, slots=True)
class Project:
    """What a framework would run in a folder.

    Args:
        function: "package.module:function", called without arguments; a coroutine is awaited.
            Arguments behind the folder on the command line are in `sys.argv`.
        folder: the working directory.
        paths: the first entries of `sys.path`.
        environment: the variables to set before the session begins.
    """

    function: str
    folder: Path
    paths: tuple[Path, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)


class FindProject(Protocol):
    """Finds what a framework would run in a folder."""

    def __call__(self, folder: Path) -> Project | None:
        """Return the project without importing it; None if the folder is none of the framework.

        Raises:
            UsageError: the folder is a project, but it holds nothing to run.
        """


def found_adapters() -> Iterator[tuple[EntryPoint, Adapter | BaseException]]:
    """Yield each installed adapter, or the error that importing it raised."""
    for point in entry_points(group=GROUP):
        try:
            yield point, point.load()
        except (Exception, SystemExit) as error:  # noqa: BLE001 - it must not hide the other adapters
            yield point, error


def begin_step(
    kind: str, name: str, *, parent: str | None = None, detail: dict[str, object] | None = None
) -> str | None:
    """Begin a step of the current session and return its id; None outside a session.

    `kind` is run, crew, flow, method, planner, agent, task, delegation, guardrail, converter,
    callback, evaluator, node, subgraph, chain, model, tool, retriever, memory, knowledge, mcp,
    checkpoint or interrupt. `name` must be the same in every run, so it holds no ids. To attribute
    exchanges to the step, set `current_step` to its id in the context that makes them.
    """
    session = current_session()
    return session.begin_step(kind, name, parent, detail or {}) if session else None


def end_step(
    step: str | None, error: BaseException | str | None = None, *, kind: str | None = None
) -> None:
    """End a step; None is ignored. `kind` replaces the kind from its beginning."""
    session = current_session()
    if session and step is not None:
        session.end_step(step, repr(error) if isinstance(error, BaseException) else error, kind)


def in_session() -> bool:
    """Return whether this code runs under a session."""
    return current_session() is not None


def session_here() -> Session | None:
    """Return the session that this code runs under, to compare it with others; None outside."""
    return current_session()


def check_session() -> None:
    """Raise the first error of this session, if there was one.

    Call it in the error callbacks of a framework. An SDK turns a divergence into an exception of
    its own, which frameworks retry or work around; a `DivergenceError` is final to most of them.

    Raises:
        TraceforkError: a copy of the session's first error.
    """
    session = current_session()
    if session is not None:
        session.check()


def check_asked(thread: str) -> None:
    """Raise unless this session asked for everything that a recorded thread of a framework asked.

    In a fork that is everything before the fork point, and the request there.

    Raises:
        DivergenceError: an exchange of the thread was not asked for.
    """
    session = current_session()
    if session is not None:
        session.check_asked(thread)


def mark_as_recorded(thread: str) -> None:
    """Note that a recorded thread gets the same input in this session as when it was recorded.

    A run that continues from a checkpoint may have changed the state there, so its request at the
    fork point may differ from the recorded one. That of a marked thread must be the same.
    """
    session = current_session()
    if session is not None:
        session.mark_as_recorded(thread)


def checkpoints(path: Path) -> Checkpoints:
    """Return the store for a framework's checkpoints, whose file is at `path`.

    While recording, checkpoints also go onto the tape (and only there if `path` is the tape). In a
    replay or fork they are read from the tape, and new ones are kept in memory: the file does not
    change.

    Raises:
        UsageError: this is a child process of a session.
    """
    session = current_session()
    if session is not None:
        return session.checkpoints(path)
    from tracefork_core.checkpoints.store import checkpoint_file

    return checkpoint_file(path)


def memory_checkpoints() -> Checkpoints:
    """Return a new store for a framework's checkpoints that keeps them in memory."""
    from tracefork_core.checkpoints.store import in_memory

    return in_memory()


def state_of(
    shared: object, kind: str, make: Callable[[State], _T], same: Hashable | None = None
) -> _T | None:
    """Return this session's stand-in for an object whose state outlives the run.

    `shared` is a database, a store or a cache of the user's. The stand-in asks it while recording
    (below `crossing_seam`, so that the tape holds none of its draws and requests) and notes what
    the run read. In a replay or fork it answers from the tape and from what the run itself wrote,
    and leaves the object alone. None outside a session and in a child process of one.

    Args:
        shared: the object.
        kind: what the tape calls it, a number added where a run uses several.
        make: makes the stand-in, once per session, from the `State` that reads and writes the tape.
        same: objects with an equal value share a stand-in, two connections to a database say.
    """
    session = current_session()
    if session is None or session.states is None:
        return None
    return session.states.of(shared, kind, make, same)


def without_secrets(metadata: Mapping[str, object]) -> dict[str, object]:
    """Return a checkpoint's metadata with placeholders in place of secrets."""
    from tracefork_core.masking.redactor import without_secrets as cleaned

    return cleaned(metadata)


def recorded_checkpoints(tape: Tape) -> list[SavedCheckpoint]:
    """Return the checkpoints of a recorded run in the order of making; a parent's come first."""
    from tracefork_core.checkpoints.lineage import lineage_of

    return lineage_of(tape).checkpoints


def recorded_runs(tape: Tape, thread: str, at: str) -> list[RecordedRun]:
    """Return the runs of a recorded program that continued a thread from a checkpoint."""
    from tracefork_core.checkpoints.lineage import runs_of

    return runs_of(tape, thread, at)


def revisited_checkpoint(tape: Tape, thread: str) -> str | None:
    """Return the id of the first checkpoint that a recorded program itself returned to, if any."""
    from tracefork_core.checkpoints.lineage import revisited_checkpoint

    return revisited_checkpoint(tape, thread)


def answering_tape() -> Tape | None:
    """Return the tape that answers this session; None while recording or outside a session."""
    session = current_session()
    return session.source if session else None


def fork_point() -> int | None:
    """Return the number of the exchange that this session forks at; None if it is no fork."""
    session = current_session()
    return session.fork_point if session else None


def lane_here() -> Lane | None:
    """Return the lane of this code, for `branch_lane`; None outside a session or without order."""
    session = current_session()
    return lane.lane_here(session) if session else None


def branch_lane(origin: Lane | None, name: str) -> None:
    """Name the lane of this task or job after the branch that it runs in parallel to `origin`.

    Without a name the lane is numbered by the order in which branches make their first call.
    Threads that start together do that in any order, so equal requests would get each other's
    answers. Does
    nothing if this code runs on `origin` itself. `name` must be the same in every run.
    """
    lane.branch_lane(origin, name)


def restart_lane_numbers() -> None:
    """Number the tasks, threads and jobs that this code starts from 1 again: a step begins here.

    A run that continues from a checkpoint makes the calls of the recorded run on lanes with other
    numbers. The numbers within the step are the same, so equal requests find their own answers.
    """
    here = lane_here()
    if here is not None:
        here.begin_step()
