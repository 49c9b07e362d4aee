"""Measure saving the states of a graph that grows: TapeSaver beside LangGraph's own savers."""

from __future__ import annotations

import operator
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Annotated, Any

from bench import Bench, Samples
from recorders import PLAIN, Recorder
from table import Measurement, Row, Spread
from words import words

TAPE, SQLITE, MEMORY = "TapeSaver", "SqliteSaver", "InMemorySaver"
_NEW_BYTES = 400
_THREAD: dict[str, Any] = {"configurable": {"thread_id": "t"}}
TITLE = "Checkpoints of a thread that grows"
_TARGETS = {"size": 2.5, "put": 5.0, "timeline": 200.0, "latest": 20.0}
CASES = tuple(f"{steps} steps, {what}" for steps in (50, 200, 800) for what in _TARGETS)


def measure(bench: Bench) -> Measurement:
    """Measure a thread of 50, 200 and 800 steps in each checkpointer."""
    rows: list[Row] = []
    for steps in (50, 200) if bench.quick else (50, 200, 800):
        found = [
            row
            for who in (TAPE, SQLITE, MEMORY)
            for row in _rows(
                steps, who, bench.ask(PLAIN, thread, saver=who, steps=steps, path=bench.path())
            )
        ]
        rows.extend(row for name in _TARGETS for row in found if row.case.endswith(name))
    return Measurement(
        TITLE,
        "Each step adds a message of 400 characters; the state and the writes of its task are "
        "saved. Size: all files, once closed (for InMemorySaver, the bytes it holds). Put: one "
        "call, durable if there is a file. Timeline: all checkpoints of the thread, from the "
        "index if there is one, else by `list`. Latest: the latest state, in a saver that was just "
        "opened.",
        rows,
    )


def _rows(steps: int, who: str, found: Samples) -> list[Row]:
    case = f"{steps} steps"
    rows = []
    for name, unit, scale in (
        ("size", "MB", 1e-6),
        ("put", "ms", 1e3),
        ("timeline", "ms", 1e3),
        ("latest", "ms", 1e3),
    ):
        if not found[name]:
            continue
        spread = Spread.of([sample * scale for sample in found[name]])
        target = _TARGETS[name] if who == TAPE and steps == 800 else None
        rows.append(
            Row(
                f"{case}, {name}",
                who,
                spread,
                unit,
                "",
                f"≤ {target}" if target else "",
                spread.median <= target if target else None,
            )
        )
    return rows


def thread(recorder: Recorder, saver: str, steps: int, path: str) -> Samples:
    """Run a graph of `steps` steps, and read its thread."""
    from langchain_core.messages import AIMessage
    from langgraph.graph import END, START, MessagesState, StateGraph

    class State(MessagesState):  # type: ignore[misc]
        n: Annotated[int, operator.add]

    def say(state: Any) -> dict[str, Any]:
        text = words(_NEW_BYTES, ("model", state["n"]))
        return {"messages": [AIMessage(text)], "n": 1}

    def more(state: Any) -> str:
        return "say" if state["n"] < steps else END

    builder = StateGraph(State).add_node("say", say).add_edge(START, "say")
    builder.add_conditional_edges("say", more, ["say", END])
    put: list[float] = []
    with ExitStack() as stack:
        opened = _opened(saver, path, stack)
        opened.put = _timed(opened.put, put)
        graph = builder.compile(checkpointer=opened)
        config = {**_THREAD, "recursion_limit": steps + 2}
        graph.invoke({"messages": [], "n": 0}, config, durability="sync")
        held = _held(opened) if saver == MEMORY else 0
        started = time.perf_counter()
        count = _timeline(opened, saver, path)
        timeline = time.perf_counter() - started
        assert count == steps + 2, count
    latest = [_latest(saver, path) for _ in range(9)] if saver != MEMORY else []
    size = held or sum(
        file.stat().st_size for file in Path(path).parent.glob(f"{Path(path).name}*")
    )
    return {"size": [size], "put": put, "timeline": [timeline], "latest": latest}


def _latest(who: str, path: str) -> float:
    """Return the seconds to read the latest state in a saver that was just opened."""
    with ExitStack() as stack:
        opened = _opened(who, path, stack)
        started = time.perf_counter()
        assert opened.get_tuple(_THREAD) is not None
        return time.perf_counter() - started


def _opened(who: str, path: str, stack: ExitStack) -> Any:
    if who == TAPE:
        from tracefork_core.checkpoints.store import checkpoint_file
        from tracefork_langgraph import TapeSaver

        stack.callback(checkpoint_file(path).close)
        return TapeSaver(path)
    if who == SQLITE:
        from langgraph.checkpoint.sqlite import SqliteSaver

        return stack.enter_context(SqliteSaver.from_conn_string(path))
    from langgraph.checkpoint.memory import InMemorySaver

    return InMemorySaver()


def _timed(call: Callable[..., Any], into: list[float]) -> Callable[..., Any]:
    def timed(*args: Any, **options: Any) -> Any:
        started = time.perf_counter()
        try:
            return call(*args, **options)
        finally:
            into.append(time.perf_counter() - started)

    return timed


def _timeline(saver: Any, who: str, path: str) -> int:
    if who == TAPE:
        from tracefork_core.checkpoints.store import checkpoint_file

        return len(list(checkpoint_file(path).search("t")))
    return len(list(saver.list(_THREAD)))


def _held(saver: Any) -> int:
    """Return the bytes of the values that an InMemorySaver holds."""
    written = [value[1] for one in saver.writes.values() for _, _, value, *_ in one.values()]
    return sum(len(value[1]) for value in saver.blobs.values()) + sum(map(len, written))
