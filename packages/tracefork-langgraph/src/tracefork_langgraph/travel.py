"""Short forms of time travel: continue a recorded graph from one of its checkpoints.

You can do the same by hand in `tracefork_core.replay` and `fork`: a graph whose checkpointer is a
`TapeSaver` finds its recorded checkpoints there, and `invoke(None, checkpoint.config)` continues
from one. A replay answers models from the tape, a fork calls them live. Nothing before the
checkpoint runs again, and the recording never changes.
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
    """A fork from a checkpoint: what the graph returned, and the branch that records it."""

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
    """Continue a graph from a recorded checkpoint, answered from the tape; return its output.

    Args:
        tape: the tape of the run.
        graph: the compiled graph. The tape takes the place of its checkpointer.
        at: the checkpoint: its id, its step, or a node that ran from it.
        command: the input: None, or a `Command(resume=…)`.
        thread: the thread, if the run had several.
        config: more configuration for the run: a recursion limit, other `configurable`.
        options: for `graph.invoke`.

    Raises:
        UsageError: there is no such tape, or no such checkpoint.
        DivergenceError: the graph sent a request that the recorded run did not send after the
            checkpoint.
    """
    checkpoint, past = _ready(tape, graph, at, thread)
    with tracefork.replay(tape):
        return past.invoke(command, merge_configs(config, checkpoint.config), **options)


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
    checkpoint, past = _ready(tape, graph, at, thread)
    async with tracefork.replay(tape):
        return await past.ainvoke(command, merge_configs(config, checkpoint.config), **options)


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
    """Continue a graph from a recorded checkpoint, live, and record it on a branch.

    Args:
        tape: the tape of the run.
        graph: the compiled graph. The tape takes the place of its checkpointer.
        at: the checkpoint: its id, its step, or a node that ran from it.
        update: a change to make to the state first, as for `graph.update_state`.
        as_node: the node that the change counts as, as for `graph.update_state`.
        command: the input: None, or a `Command(resume=…)`.
        thread: the thread, if the run had several.
        config: more configuration for the run: a recursion limit, other `configurable`.
        context: for a graph with a `context_schema`, as for `graph.invoke`.
        options: for `tracefork_core.fork`.

    Raises:
        UsageError: there is no such tape, or no such checkpoint.
        WriteError: the graph would repeat a side effect.
    """
    checkpoint, past = _ready(tape, graph, at, thread)
    with tracefork.fork(tape, _first(tape, checkpoint), **options) as branch:
        config = merge_configs(config, checkpoint.config)
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
    checkpoint, past = _ready(tape, graph, at, thread)
    async with tracefork.fork(tape, _first(tape, checkpoint), **options) as branch:
        config = merge_configs(config, checkpoint.config)
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

    It starts at the checkpoint nearest to the fork point. Nothing before that runs again, not even
    from the tape. In a replay it starts at the first checkpoint, with the recorded input.

    Then it gives the graph the recorded inputs, in the recorded order, as long as the graph is at
    the node where the recorded run was: people's answers, the inputs of later turns, and None where
    the graph was halted or had failed.

    Args:
        graph: the compiled graph. The tape takes the place of its checkpointer.
        thread: the thread, if the run had several.
        config: more configuration for the run: a recursion limit, other `configurable`.
        options: for `graph.invoke`.

    Raises:
        UsageError: no tape answers a session here. Or the tape has no checkpoints, or only the last
            one (durability="exit"). Or the run was resumed with more than answers, was edited by
            hand, or went back to an earlier checkpoint by itself.
        DivergenceError: this is a replay, and a recorded request of the thread was not sent.
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
    """Return a graph on the tape, and the recorded inputs to run it with."""
    tape = answering_tape()
    if tape is None:
        raise UsageError(
            "tracefork: no replay, fork or blame is running here. Use `rerun` inside "
            "tracefork.replay or tracefork.fork, or in the agent of tracefork.blame."
        )
    saved = checkpoints_on(tape, thread=thread)
    candidates = [checkpoint for checkpoint in saved if checkpoint.source != "fork"]
    if not candidates:
        raise UsageError(
            f"tracefork: {tape.path} has no checkpoints. Record the graph with "
            "checkpointer=TapeSaver(…)."
        )
    if _ends_alone(tape, saved):
        raise UsageError(
            f"tracefork: the run on {tape.path} saved only its last checkpoint "
            "(durability='exit'), so there is none to start from. Record it with another "
            "durability, or invoke the graph yourself."
        )
    at = fork_point()
    start = candidates[0]
    # A fork at the end of the tape verifies the whole run, so it starts at the beginning.
    if at is not None and at != len(tape.exchanges):
        asking = [
            checkpoint
            for checkpoint in candidates
            if checkpoint.exchanges and checkpoint.exchanges[0] <= at
        ]
        start = (asking or candidates[:1])[-1]
    past = _past(tape.path, graph)
    assert isinstance(past.checkpointer, TapeSaver)
    return past, Answers(tape, past.checkpointer, start)


def _ends_alone(tape: Tape, saved: Sequence[Checkpoint]) -> bool:
    """Return whether a run sent all its requests from checkpoints that it did not save."""
    threads = {one.thread for one in saved}
    places = (one.checkpoint for one in tape.exchanges)
    asked = any(place is not None and place[0] in threads for place in places)
    return asked and not any(one.exchanges for one in saved)


def _ready(tape: str | Path, graph: G, at: At, thread: str | None) -> tuple[Checkpoint, G]:
    return checkpoint_at(history(tape, thread=thread), at), _past(tape, graph)


def _past(tape: str | Path, graph: G) -> G:
    """Return the graph with the tape as its checkpointer."""
    if isinstance(graph.checkpointer, TapeSaver):
        return graph if is_listened_for(graph) else attach(graph)
    past = copy.copy(graph)
    past.checkpointer = TapeSaver(tape)
    return attach(past)


def _first(tape: str | Path, place: Checkpoint) -> int:
    """Return the number of the first exchange that was sent from a checkpoint or a later one."""
    with tracefork.Tape.open(tape) as opened:
        checkpoints = checkpoints_on(opened, thread=place.thread)
        later = dropwhile(lambda one: one.id != place.id, checkpoints)
        asked = [n for one in later for n in one.exchanges]
        # A thread that a node started itself does not know its checkpoint; its time decides.
        made = place.made.timestamp() * 1e9
        loose = (one for one in opened.exchanges if one.checkpoint is None)
        asked += [one.n for one in loose if one.aside.started >= made]
        return min(asked, default=len(opened.exchanges))
