"""The public interface for adapters: what a package for one framework may use of core.

An adapter is a distribution of its own that declares an entry point in the group
`tracefork.adapters`, whose value is an `Adapter`. Its one verb is `attach(x) -> x`; the two halves
of it are binding clients (`bind_clients`) and building the step DAG (`begin_step`, `end_step`).
All of it is a no-op outside a session.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from importlib.metadata import EntryPoint, entry_points

from tracefork_core.exchange.current import current_session, current_step

GROUP = "tracefork.adapters"

__all__ = [
    "Adapter",
    "begin_step",
    "current_step",
    "end_step",
    "found_adapters",
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
        except Exception as error:  # A broken adapter must not hide the others.
            yield point, error


def begin_step(
    kind: str, name: str, *, parent: str | None = None, detail: dict[str, object] | None = None
) -> str | None:
    """Begin a step of the current session and return its id; None outside a session.

    `kind` is run, agent, task, node, model, tool, retriever, checkpoint or interrupt; `name` must
    be the same in every run (no ids). To attribute exchanges to the step, set `current_step` to
    its id in the context that makes them.
    """
    session = current_session()
    return session.begin_step(kind, name, parent, detail or {}) if session else None


def end_step(step: str | None, error: BaseException | None = None) -> None:
    """End a step; None is ignored."""
    session = current_session()
    if session and step is not None:
        session.end_step(step, repr(error) if error is not None else None)
