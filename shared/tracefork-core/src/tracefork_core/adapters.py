"""The public interface for adapters: what a package for one framework may use of core.

An adapter is a distribution of its own that declares an entry point in the group
`tracefork.adapters`, whose value is an `Adapter`. Its one verb is `attach(x) -> x`; the two halves
of it are binding clients (`tracefork_core.bind`) and building the step DAG (`begin_step`,
`end_step`), with lanes named after the framework's own branches where it starts them
(`lane_here`, `branch_lane`, `count_lanes_anew`). A framework's checkpoints go to `checkpoints`, and
`ask_where` says which of them an exchange ran from. A framework's tools are exchanges by
`tool_exchange`, and its classes are told as data by `FrameworkValues`. All of it is a no-op outside
a session. What has to be changed in a framework itself while a session is open is an `Instrument`,
an entry point in `tracefork.instruments`. What a framework would run in a folder,
`tracefork record FOLDER` runs: a `FindProject` in `tracefork.projects` says so.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import Protocol

from tracefork_core.checkpoints.contract import Checkpoints, RecordedRun
from tracefork_core.exchange import lane
from tracefork_core.exchange.current import ask_where, current_session, current_step
from tracefork_core.exchange.lane import Lane
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

TYPE_CHECKING = False  # What a tape is takes long to load, and to be listed an adapter needs none.
if TYPE_CHECKING:
    from tracefork_core.exchange.contract import Session
    from tracefork_core.tape import Tape

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
    "Project",
    "RecordedRun",
    "SavedCheckpoint",
    "SavedValue",
    "SavedWrite",
    "ToolMark",
    "answering_tape",
    "ask_where",
    "atool_exchange",
    "begin_step",
    "branch_lane",
    "check_asked",
    "check_session",
    "checkpoints",
    "count_lanes_anew",
    "current_step",
    "end_step",
    "fork_point",
    "found_adapters",
    "in_session",
    "lane_here",
    "recorded_checkpoints",
    "recorded_runs",
    "sent_back",
    "session_here",
    "tell_as_recorded",
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
        seams: where the framework's exchanges leave, for people.
    """

    name: str
    distribution: str
    framework: str
    seams: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Imported:
    """How much of another checkpointer's threads was brought over."""

    threads: int
    checkpoints: int
    writes: int


class Importer(Protocol):
    """Brings the threads of another checkpointer over, as an adapter knows to."""

    def __call__(self, source: Path, target: Checkpoints) -> Imported:
        """Put all that `source` holds into `target`, and count it.

        Raises:
            UsageError: it is no file of that checkpointer, or not to be read without making things.
        """


@dataclass(frozen=True, slots=True)
class Project:
    """What a framework would run in a folder.

    Args:
        function: "package.module:function", called without arguments, a coroutine awaited. What is
            typed behind the folder is in `sys.argv`.
        folder: where it runs.
        paths: what comes first on `sys.path`.
        environment: the variables that are set for it, before the session begins.
    """

    function: str
    folder: Path
    paths: tuple[Path, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)


class FindProject(Protocol):
    """Says what a framework would run in a folder."""

    def __call__(self, folder: Path) -> Project | None:
        """Return it, None where the folder is no project of the framework. It is not imported yet.

        Raises:
            UsageError: it is a project, and nothing in it can be run.
        """


def found_adapters() -> Iterator[tuple[EntryPoint, Adapter | BaseException]]:
    """Yield each installed adapter, or the error that importing it raised."""
    for point in entry_points(group=GROUP):
        try:
            yield point, point.load()
        except (Exception, SystemExit) as error:  # noqa: BLE001 - it must not hide the others
            yield point, error


def begin_step(
    kind: str, name: str, *, parent: str | None = None, detail: dict[str, object] | None = None
) -> str | None:
    """Begin a step of the current session and return its id; None outside a session.

    `kind` is run, crew, flow, method, planner, agent, task, delegation, guardrail, converter,
    callback, evaluator, node, subgraph, chain, model, tool, retriever, memory, knowledge, mcp,
    checkpoint or interrupt; `name` must be the same in every run (no ids). To attribute exchanges
    to the step, set `current_step` to its id in the context that makes them.
    """
    session = current_session()
    return session.begin_step(kind, name, parent, detail or {}) if session else None


def end_step(
    step: str | None, error: BaseException | str | None = None, *, kind: str | None = None
) -> None:
    """End a step; None is ignored. `kind` is what it turned out to be, where that was not known."""
    session = current_session()
    if session and step is not None:
        session.end_step(step, repr(error) if isinstance(error, BaseException) else error, kind)


def in_session() -> bool:
    """Return whether this code runs under a session.

    Raises:
        UsageError: two sessions are open and nothing here says which one is meant.
    """
    return current_session() is not None


def session_here() -> Session | None:
    """Return the session that this code runs under, to tell one from another; None outside of any.

    Raises:
        UsageError: two sessions are open and nothing here says which one is meant.
    """
    return current_session()


def check_session() -> None:
    """Raise the error that ended this session's proof, if one did.

    For the error callbacks of frameworks: what an SDK made of a divergence (a failed request, in
    its own words) is retried and worked around; a `DivergenceError` is final to most of them.

    Raises:
        TraceforkError: a copy of the first one of this session.
    """
    session = current_session()
    if session is not None:
        session.check()


def check_asked(thread: str) -> None:
    """Raise where this session has not asked for all that a recorded thread asked.

    Where it is forked that is what comes before the fork point, and the question there.

    Raises:
        DivergenceError: an exchange of the thread was not asked for.
    """
    session = current_session()
    if session is not None:
        session.check_asked(thread)


def tell_as_recorded(thread: str) -> None:
    """Tell this session that a recorded thread is given what it was given then, nothing else.

    Who runs on from a checkpoint may have changed the state there, so the question at a fork point
    is not held to the recorded one. Of such a thread it is.
    """
    session = current_session()
    if session is not None:
        session.mark_as_recorded(thread)


def checkpoints(path: Path) -> Checkpoints:
    """Return where a framework's checkpoints lie: in the file of threads at `path`.

    In a session that records they go onto its tape as well (onto that alone, where `path` is its).
    In one that is answered from a tape they are there, and in memory: nothing is changed.

    Raises:
        UsageError: this is a child process of a session.
    """
    session = current_session()
    if session is not None:
        return session.checkpoints(path)
    from tracefork_core.checkpoints.store import checkpoint_file

    return checkpoint_file(path)


def without_secrets(metadata: Mapping[str, object]) -> dict[str, object]:
    """Return what a framework says about a checkpoint with placeholders for the secrets in it."""
    from tracefork_core.masking.redactor import without_secrets as cleaned

    return cleaned(metadata)


def recorded_checkpoints(tape: Tape) -> list[SavedCheckpoint]:
    """Return the checkpoints that a recorded run put, in that order; a branch's parents' first."""
    from tracefork_core.checkpoints.lineage import lineage_of

    return lineage_of(tape).checkpoints


def recorded_runs(tape: Tape, thread: str, at: str) -> list[RecordedRun]:
    """Return how a recorded program ran a thread on, from a checkpoint on."""
    from tracefork_core.checkpoints.lineage import runs_of

    return runs_of(tape, thread, at)


def sent_back(tape: Tape, thread: str) -> str | None:
    """Return the first checkpoint that a recorded program went back to by itself, if it did."""
    from tracefork_core.checkpoints.lineage import sent_back

    return sent_back(tape, thread)


def answering_tape() -> Tape | None:
    """Return the tape that this session is answered from; None where nothing is."""
    session = current_session()
    return session.source if session else None


def fork_point() -> int | None:
    """Return the number of the exchange that this session forks at; None where it forks nothing."""
    session = current_session()
    return session.fork_point if session else None


def lane_here() -> Lane | None:
    """Return the lane that this code runs on, for `branch_lane`; None where it has no order."""
    session = current_session()
    return lane.lane_here(session) if session else None


def branch_lane(origin: Lane | None, name: str) -> None:
    """Name the lane of this task or job after the branch it runs, where it runs beside `origin`.

    Without it the lane is numbered by the order in which branches ask for something, and threads
    that start together ask in any order: equal requests would find one another's answers. On the
    line of `origin` itself nothing changes; `name` must be the same in every run.
    """
    lane.branch_lane(origin, name)


def count_lanes_anew() -> None:
    """Count the tasks, threads and jobs that this code starts from the step that begins here.

    Who goes on from a checkpoint asks for the same as the recorded run, on lanes of other numbers:
    of requests that are alike each finds its own answer by the numbers within the step.
    """
    here = lane_here()
    if here is not None:
        here.begin_step()
