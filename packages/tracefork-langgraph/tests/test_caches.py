"""Caches of answers do not leak from one replay or fork into the next."""

from __future__ import annotations

import asyncio
import gc
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from langchain_core.caches import BaseCache
from langchain_core.caches import InMemoryCache as ModelCache
from langchain_core.globals import set_llm_cache
from langgraph.cache.memory import InMemoryCache
from langgraph.cache.sqlite import SqliteCache
from langgraph.graph import END, START, StateGraph
from langgraph.types import CachePolicy
from typing_extensions import TypedDict

import tracefork_core as tracefork
from tracefork_langgraph import TapeSaver, attach, rerun
from tracefork_testkit import ModelRequest, ProviderServer, Reply

THREAD: Any = {"configurable": {"thread_id": "T"}}


class State(TypedDict, total=False):
    turns: int
    said: str


@pytest.fixture
def server() -> Iterator[ProviderServer]:
    """A provider whose first answer is bad."""
    said = iter(["bad"])

    def script(_: ModelRequest) -> Reply:
        return Reply(next(said, "good"))

    with ProviderServer(script) as server:
        yield server


@pytest.fixture
def model_cache() -> Iterator[None]:
    """LangChain's cache of models, for this test only."""
    set_llm_cache(ModelCache())
    yield
    set_llm_cache(None)


def _graph(model: Any, saver: Any, cache: Any, *, is_async: bool) -> Any:
    """Make a graph with a node that sends one request twice; a cache answers the second."""

    def ask(state: State) -> State:
        return {"said": model.invoke("the same").text}

    async def asked(state: State) -> State:
        return {"said": (await model.ainvoke("the same")).text}

    def count(state: State) -> State:
        time.sleep(0.2)  # LangGraph fills a cache in the background; wait for it.
        return {"turns": state.get("turns", 0) + 1}

    builder = StateGraph(State)
    policy = None if cache is None else CachePolicy(key_func=lambda _: "the same")
    builder.add_node("ask", asked if is_async else ask, cache_policy=policy)
    builder.add_node("count", count)
    builder.add_edge(START, "ask").add_edge("ask", "count")
    builder.add_conditional_edges("count", lambda state: END if state["turns"] > 1 else "ask")
    return builder.compile(checkpointer=saver, cache=cache)


Run = Callable[[], Any]


@pytest.fixture(params=["memory", "sqlite", "models", "one model"])
def run(
    request: pytest.FixtureRequest,
    model: Callable[..., Any],
    tmp_path: Path,
    *,
    is_async: bool,
) -> Iterator[Run]:
    """Give a function that runs a graph with each kind of cache."""
    kind, cache = request.param, None
    options: dict[str, Any] = {"max_retries": 0}
    if kind == "memory":
        cache = InMemoryCache[Any]()
    elif kind == "sqlite":
        cache = SqliteCache[Any](path=str(tmp_path / "cache.db"))
    elif kind == "models":
        request.getfixturevalue("model_cache")
    else:
        options["cache"] = ModelCache()
    graph = attach(_graph(model(**options), None, cache, is_async=is_async))
    if not is_async:
        yield lambda: graph.invoke({})
        return
    with asyncio.Runner() as runner:  # A client's connections belong to one loop.
        yield lambda: runner.run(graph.ainvoke({}))


@pytest.mark.parametrize("is_async", [False, True], ids=["sync", "async"])
def test_replay_and_fork_start_with_an_empty_cache(
    run: Run, tape: Path, server: ProviderServer
) -> None:
    """After other runs in this process, each sends as many requests as were recorded."""
    with tracefork.record(tape):
        assert run()["said"] == "bad"
    assert len(server.requests) == 1
    for _ in range(2):
        with tracefork.fork(tape, 0) as branch:
            assert run()["said"] == "good"
        assert branch.live == 1
        with tracefork.replay(tape) as replay:
            assert run()["said"] == "bad"
        assert replay.digest == replay.tape.digest
        with tracefork.replay(branch.path):
            assert run()["said"] == "good"
    assert len(server.requests) == 3


@pytest.mark.parametrize("is_async", [False, True], ids=["sync", "async"])
def test_recording_uses_the_shared_cache(run: Run, tape: Path, server: ProviderServer) -> None:
    """An answer from the cache of an earlier run is on the tape, for a replay and a fork."""
    run()
    with tracefork.record(tape):
        recorded = run()
    assert len(server.requests) == 1
    with tracefork.replay(tape):
        assert run() == recorded
    with tracefork.fork(tape, 0) as branch:
        assert run() == recorded
    with tracefork.replay(branch.path):
        assert run() == recorded
    run()
    assert len(server.requests) == 1  # The cache is as it was.


@pytest.mark.many_processes
def test_forks_of_blame_are_not_answered_by_a_cache(
    model: Callable[..., Any], tape: Path, server: ProviderServer
) -> None:
    """Each fork calls the live provider, so blame finds the unit."""
    graph = attach(_graph(model(), TapeSaver(tape), InMemoryCache(), is_async=False))
    with tracefork.record(tape):
        graph.invoke({}, THREAD)
    report = tracefork.blame(
        tape, lambda: rerun(graph)["said"], lambda said: said == "good", budget="60 calls"
    )
    assert report.result.verdict.units == (0,)


def test_cache_class_defined_during_a_session_is_replaced_too(
    model: Callable[..., Any], model_cache: None, tape: Path, server: ProviderServer
) -> None:
    """When the session ends, the class is as before."""
    with tracefork.record(tape):
        model().invoke("hi")
    with tracefork.replay(tape):

        class Late(BaseCache):
            def lookup(self, prompt: str, llm_string: str) -> None:
                raise AssertionError

            def update(self, prompt: str, llm_string: str, return_val: Any) -> None:
                raise AssertionError

            def clear(self, **kwargs: Any) -> None:
                raise AssertionError

        set_llm_cache(Late())
        assert model().invoke("hi").text == "bad"
    with pytest.raises(AssertionError):
        Late().clear()


_AMBIENT = """
import sys
import tracefork_core as tracefork
from langchain.chat_models import init_chat_model
from langchain_core.caches import InMemoryCache
from langchain_core.globals import set_llm_cache

model = init_chat_model("some-model", model_provider="openai", base_url=sys.argv[2], api_key="none")
set_llm_cache(InMemoryCache())
with tracefork.record(sys.argv[1]):
    print(model.invoke("hi").text)
for _ in range(2):
    with tracefork.replay(sys.argv[1]):
        print(model.invoke("hi").text)
    with tracefork.fork(sys.argv[1], 0):
        print(model.invoke("hi").text)
"""


@pytest.mark.many_processes
def test_caches_are_separate_without_attach(tape: Path, server: ProviderServer) -> None:
    """Installing the package is enough."""
    done = subprocess.run(
        [sys.executable, "-c", _AMBIENT, str(tape), f"{server.url}/v1"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["bad", "bad", "good", "bad", "good"]


def test_replay_and_fork_leave_the_file_of_a_cache_as_it_was(
    model: Callable[..., Any], tmp_path: Path, tape: Path, server: ProviderServer
) -> None:
    """Opening a cache creates its table, and each look deletes what has expired."""
    folder = tmp_path / "cache"
    folder.mkdir()

    def run() -> str:
        cache = SqliteCache[Any](path=str(folder / "cache.db"))
        return str(_graph(model(), None, cache, is_async=False).invoke({})["said"])

    with tracefork.record(tape):
        assert run() == "bad"
    gc.collect()  # The cache of the recording closes its file.
    before = {file.name: file.read_bytes() for file in folder.iterdir()}
    with tracefork.replay(tape):
        assert run() == "bad"
    with tracefork.fork(tape, 0):
        assert run() == "good"
    assert {file.name: file.read_bytes() for file in folder.iterdir()} == before
    shutil.rmtree(folder)
    with tracefork.replay(tape):
        assert run() == "bad"
