"""Short forms of time travel: run a recorded graph on from one of its checkpoints.

What they do can be done by hand in `tracefork_core.replay` and `fork`: a graph whose checkpointer
is a `TapeSaver` finds its recorded checkpoints there, and `invoke(None, checkpoint.config)` runs on
from one. In a replay models are answered from the tape, in a fork live; nothing before the
checkpoint is run again, and the recording is never changed.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import dropwhile
from pathlib import Path
from typing import Any, TypeVar

from langchain_core.runnables import RunnableConfig
from langchain_core.runnables.config import merge_configs
from langgraph.pregel import Pregel

import tracefork_core as tracefork
from tracefork_core import Tape, UsageError
from tracefork_core.adapters import answering_tape, fork_point
from tracefork_langgraph.answers import Answers
from tracefork_langgraph.attachment import attach
from tracefork_langgraph.checkpoint_history import (
    At,
    Checkpoint,
    checkpoint_at,
    checkpoints_on,
    history,
)
from tracefork_langgraph.listening import is_listened_for
from tracefork_langgraph.saver import TapeSaver

G = TypeVar("G", bound=Pregel[Any, Any, Any, Any])


@dataclass(frozen=True, slots=True)
class Forked:
    """A fork from a checkpoint: what the graph returned, and the branch it is recorded on."""

    output: Any
    path: Path
    replayed: int
    live: int


def resume(
    tape: str | Path,
    graph: Pregel[Any, Any, Any, Any],
    at: At,
    *,
    command: object = None,
    thread: str | None = None,
    config: RunnableConfig | None = None,
    **options: Any,
) -> Any:
    """Run a graph on from a recorded checkpoint, answered from the tape; return its output.

    Args:
        tape: the tape of the run.
        graph: the compiled graph; its checkpointer is the tape, whatever it was.
        at: the checkpoint: its id, its step, or a node that ran from it.
        command: what to run it with: None, or a `Command(resume=…)`.
        thread: the thread, where the run had several.
        config: what else the run is configured with: a recursion limit, other `configurable`.
        options: for `graph.invoke`.

    Raises:
        UsageError: there is no such tape, or no such checkpoint.
        DivergenceError: the graph asked for something that was not asked after the checkpoint.
    """
    place, past = _ready(tape, graph, at, thread)
    with tracefork.replay(tape):
        return past.invoke(command, merge_configs(config, place.config), **options)


async def aresume(
    tape: str | Path,
    graph: Pregel[Any, Any, Any, Any],
    at: At,
    *,
    command: object = None,
    thread: str | None = None,
    config: RunnableConfig | None = None,
    **options: Any,
) -> Any:
    """Do what `resume` does, with `graph.ainvoke`."""
    place, past = _ready(tape, graph, at, thread)
    async with tracefork.replay(tape):
        return await past.ainvoke(command, merge_configs(config, place.config), **options)


def fork(
    tape: str | Path,
    graph: Pregel[Any, Any, Any, Any],
    at: At,
    *,
    update: Mapping[str, object] | None = None,
    as_node: str | None = None,
    command: object = None,
    thread: str | None = None,
    config: RunnableConfig | None = None,
    context: object = None,
    **options: Any,
) -> Forked:
    """Run a graph on from a recorded checkpoint, live, and record that on a branch.

    Args:
        tape: the tape of the run.
        graph: the compiled graph; its checkpointer is the tape, whatever it was.
        at: the checkpoint: its id, its step, or a node that ran from it.
        update: what to change in the state first, as for `graph.update_state`.
        as_node: the node that the change counts as, as for `graph.update_state`.
        command: what to run it with: None, or a `Command(resume=…)`.
        thread: the thread, where the run had several.
        config: what else the run is configured with: a recursion limit, other `configurable`.
        context: for a graph with a `context_schema`, as for `graph.invoke`.
        options: for `tracefork_core.fork`.

    Raises:
        UsageError: there is no such tape, or no such checkpoint.
        WriteError: the graph would change the world a second time.
    """
    place, past = _ready(tape, graph, at, thread)
    with tracefork.fork(tape, _first(tape, place), **options) as branch:
        config = merge_configs(config, place.config)
        if update is not None:
            config = merge_configs(config, past.update_state(config, dict(update), as_node))
        output = past.invoke(command, config, context=context)
    return Forked(output, branch.path, branch.replayed, branch.live)


async def afork(
    tape: str | Path,
    graph: Pregel[Any, Any, Any, Any],
    at: At,
    *,
    update: Mapping[str, object] | None = None,
    as_node: str | None = None,
    command: object = None,
    thread: str | None = None,
    config: RunnableConfig | None = None,
    context: object = None,
    **options: Any,
) -> Forked:
    """Do what `fork` does, with `graph.ainvoke`."""
    place, past = _ready(tape, graph, at, thread)
    async with tracefork.fork(tape, _first(tape, place), **options) as branch:
        config = merge_configs(config, place.config)
        if update is not None:
            edited = await past.aupdate_state(config, dict(update), as_node)
            config = merge_configs(config, edited)
        output = await past.ainvoke(command, config, context=context)
    return Forked(output, branch.path, branch.replayed, branch.live)


def rerun(
    graph: Pregel[Any, Any, Any, Any],
    *,
    thread: str | None = None,
    config: RunnableConfig | None = None,
    **options: Any,
) -> Any:
    """Run a recorded graph again, in a replay, a fork or a blame of it; return its output.

    It goes on from the checkpoint nearest to the fork point: nothing before that is run again, not
    even from the tape. Where nothing is forked that is the first one, with the recorded input. Then
    the graph is given what the recorded program gave it, in that order, while it stands where that
    one did: what people answered, the inputs of later turns, nothing where it was halted or had
    failed.

    Args:
        graph: the compiled graph; its checkpointer is the tape, whatever it was.
        thread: the thread, where the run had several.
        config: what else the run is configured with: a recursion limit, other `configurable`.
        options: for `graph.invoke`.

    Raises:
        UsageError: there is no session here that is answered from a tape, or the tape has no
            checkpoints, or the last one alone (durability="exit"); or the run was resumed with more
            than answers, edited by hand, or went back to an earlier checkpoint by itself.
        DivergenceError: nothing is forked, and not all was asked that the thread asked.
    """
    past, answers = _again(graph, thread)
    output = None
    for given, where in answers:
        with answers.failing_as_recorded():
            output = past.invoke(given, merge_configs(config, where), **options)
    return output


async def arerun(
    graph: Pregel[Any, Any, Any, Any],
    *,
    thread: str | None = None,
    config: RunnableConfig | None = None,
    **options: Any,
) -> Any:
    """Do what `rerun` does, with `graph.ainvoke`."""
    past, answers = _again(graph, thread)
    output = None
    for given, where in answers:
        with answers.failing_as_recorded():
            output = await past.ainvoke(given, merge_configs(config, where), **options)
    return output


def _again(graph: G, thread: str | None) -> tuple[G, Answers]:
    """Return a recorded graph, and what it is given when it is run again, and where."""
    tape = answering_tape()
    if tape is None:
        raise UsageError(
            "tracefork: nothing is replayed, forked or blamed here. Use `rerun` inside "
            "tracefork.replay or tracefork.fork, or in the agent of tracefork.blame."
        )
    saved = checkpoints_on(tape, thread=thread)
    found = [one for one in saved if one.source != "fork"]
    if not found:
        raise UsageError(
            f"tracefork: {tape.path} has no checkpoints. Record the graph with "
            "checkpointer=TapeSaver(…)."
        )
    if _ends_alone(tape, saved):
        raise UsageError(
            f"tracefork: the run on {tape.path} saved its end alone (durability='exit'): there is "
            "no checkpoint to begin at. Record it with another durability, or invoke the graph "
            "yourself."
        )
    at = fork_point()
    place = found[0]
    if at is not None and at != len(tape.exchanges):  # Or all of it is to be proven.
        asking = [one for one in found if one.exchanges and one.exchanges[0] <= at]
        place = (asking or found[:1])[-1]
    past = _past(tape.path, graph)
    assert isinstance(past.checkpointer, TapeSaver)
    return past, Answers(tape, past.checkpointer, place)


def _ends_alone(tape: Tape, saved: Sequence[Checkpoint]) -> bool:
    """Return whether all that a run asked was asked from checkpoints that it did not save."""
    threads = {one.thread for one in saved}
    places = (one.checkpoint for one in tape.exchanges)
    asked = any(place is not None and place[0] in threads for place in places)
    return asked and not any(one.exchanges for one in saved)


def _ready(tape: str | Path, graph: G, at: At, thread: str | None) -> tuple[Checkpoint, G]:
    return checkpoint_at(history(tape, thread=thread), at), _past(tape, graph)


def _past(tape: str | Path, graph: G) -> G:
    """Return a graph whose checkpointer is the tape."""
    if isinstance(graph.checkpointer, TapeSaver):
        return graph if is_listened_for(graph) else attach(graph)
    past = copy.copy(graph)
    past.checkpointer = TapeSaver(tape)
    return attach(past)


def _first(tape: str | Path, place: Checkpoint) -> int:
    """Return the number of the first exchange that was asked from a checkpoint on."""
    with tracefork.Tape.open(tape) as opened:
        found = checkpoints_on(opened, thread=place.thread)
        later = dropwhile(lambda one: one.id != place.id, found)
        asked = [n for one in later for n in one.exchanges]
        # A thread that a node started by itself does not know where it runs from.
        made = place.made.timestamp() * 1e9
        loose = (one for one in opened.exchanges if one.checkpoint is None)
        asked += [one.n for one in loose if one.aside.started >= made]
        return min(asked, default=len(opened.exchanges))
