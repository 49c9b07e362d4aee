"""The public interface for adapters: what a package for one framework may use of core.

An adapter is a distribution of its own that declares an entry point in the group
`tracefork.adapters`, whose value is an `Adapter`. Its one verb is `attach(x) -> x`; the two halves
of it are binding clients (`tracefork_core.bind`) and building the step DAG (`begin_step`,
`end_step`), with lanes named after the framework's own branches where it starts them
(`lane_here`, `branch_lane`). All of it is a no-op outside a session.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from importlib.metadata import EntryPoint, entry_points

from tracefork_core.exchange import lane
from tracefork_core.exchange.current import current_session, current_step
from tracefork_core.exchange.lane import Lane

GROUP = "tracefork.adapters"

__all__ = [
    "Adapter",
    "Lane",
    "begin_step",
    "branch_lane",
    "check_session",
    "current_step",
    "end_step",
    "found_adapters",
    "in_session",
    "lane_here",
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


def found_adapters() -> Iterator[tuple[EntryPoint, Adapter | Exception]]:
    """Yield each installed adapter, or the error that importing it raised."""
    for point in entry_points(group=GROUP):
        try:
            yield point, point.load()
        except Exception as error:  # noqa: BLE001 - a broken adapter must not hide the others
            yield point, error


def begin_step(
    kind: str, name: str, *, parent: str | None = None, detail: dict[str, object] | None = None
) -> str | None:
    """Begin a step of the current session and return its id; None outside a session.

    `kind` is run, agent, task, node, chain, model, tool, retriever, checkpoint or interrupt;
    `name` must be the same in every run (no ids). To attribute exchanges to the step, set
    `current_step` to its id in the context that makes them.
    """
    session = current_session()
    return session.begin_step(kind, name, parent, detail or {}) if session else None


def end_step(step: str | None, error: BaseException | None = None) -> None:
    """End a step; None is ignored."""
    session = current_session()
    if session and step is not None:
        session.end_step(step, repr(error) if error is not None else None)


def in_session() -> bool:
    """Return whether this code runs under a session.

    Raises:
        UsageError: two sessions are open and nothing here says which one is meant.
    """
    return current_session() is not None


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
