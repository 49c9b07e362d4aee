"""What an adapter tells and asks the session that its code runs under."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tracefork_core.exchange import lane
from tracefork_core.exchange.contract import AFTER, Lane
from tracefork_core.exchange.current import current_session, is_crossing_seam

TYPE_CHECKING = False  # The tape takes long to load, and listing an adapter does not need it.
if TYPE_CHECKING:
    from tracefork_core.exchange.contract import Session
    from tracefork_core.tape import Tape


def begin_step(
    kind: str,
    name: str,
    *,
    parent: str | None = None,
    after: Sequence[str] = (),
    detail: dict[str, object] | None = None,
) -> str | None:
    """Begin a step of the current session and return its id; None outside a session.

    `kind` is run, crew, team, flow, method, planner, agent, turn, task, delegation, handoff,
    guardrail, converter, callback, evaluator, node, subgraph, chain, model, tool, retriever,
    memory, knowledge, mcp, message, checkpoint or interrupt. `name` must be the same in every run,
    so it holds no ids. `parent` is the step around it. `after` has the ids of the steps that led to
    this one: of several, where it joins branches.

    To attribute exchanges to the step, set `current_step` to its id in the context that makes them.
    """
    session = current_session()
    if session is None:
        return None
    joins: dict[str, object] = {AFTER: list(after)} if after else {}
    return session.begin_step(kind, name, parent, {**(detail or {}), **joins})


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


def is_recorded_here() -> bool:
    """Return whether a call made here is an exchange of its own: not inside of one that is one."""
    return current_session() is not None and not is_crossing_seam()


def session_here() -> Session | None:
    """Return the session that this code runs under, to compare it with others; None outside."""
    return current_session()


def mask_secrets_of(environment: Mapping[str, str]) -> None:
    """Mask the secrets of another environment, such as that of a server that the run starts.

    Values of variables whose names say so (`API_KEY`, `DB_PASSWORD`) are masked in all that this
    session records from now on. The environment of this process is taken in by itself.
    """
    session = current_session()
    if session is not None:
        session.take_in(environment)


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
