"""Private names of LangChain and LangGraph that the adapter depends on.

Each test fails by saying what moved, and which file has to follow.
"""

from __future__ import annotations

import asyncio
import copy
import logging
import sqlite3
import uuid
from functools import cached_property
from typing import Any, TypedDict

import pytest
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.runnables import RunnableLambda, RunnableParallel
from langchain_core.tracers import context
from langgraph.checkpoint.base import id as ids
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.errors import GraphBubbleUp, GraphInterrupt
from langgraph.graph import START, StateGraph
from langgraph.prebuilt import ToolNode
from langgraph.store.sqlite import AsyncSqliteStore
from langgraph.types import Send

from tracefork_langgraph.listening import _Ear
from tracefork_langgraph.running import ids_after, running_from


class State(TypedDict):
    messages: list[Any]


class Witness(BaseCallbackHandler):
    """Keeps the arguments that every run starts with."""

    run_inline = True

    def __init__(self) -> None:
        self.starts: list[dict[str, Any]] = []

    def on_chain_start(self, *_: object, **started: Any) -> None:
        self.starts.append({"event": "chain", **started})

    def on_chat_model_start(self, *_: object, **started: Any) -> None:
        self.starts.append({"event": "model", **started})

    def on_tool_start(self, *args: object, **started: Any) -> None:
        self.starts.append({"event": "tool", **started})


@pytest.fixture
def witness() -> Witness:
    return Witness()


def test_nodes_carry_their_tag_and_their_path(witness: Witness) -> None:
    """handler.py identifies nodes by the tag graph:step:N, and branches by langgraph_path."""
    builder = StateGraph(State).add_node("first", lambda _: {}).add_node("worker", lambda _: {})
    builder.add_edge(START, "first")
    builder.add_conditional_edges("first", lambda _: [Send("worker", {})] * 2, ["worker"])
    builder.compile().invoke({"messages": []}, {"callbacks": [witness]})
    nodes = [s for s in witness.starts if any(t.startswith("graph:step:") for t in s["tags"])]
    assert {s["name"] for s in nodes} == {"first", "worker"}, (
        "LangGraph no longer tags the runs of nodes, and only those, with graph:step:N"
    )
    found = sorted(s["metadata"].get("langgraph_path", ())[:2] for s in nodes)
    assert found == [
        ("__pregel_pull", "first"),
        ("__pregel_push", 0),
        ("__pregel_push", 1),
    ], "langgraph_path no longer holds the place of a task in its fan-out"
    assert all(type(s["metadata"].get("langgraph_step")) is int for s in nodes)


def test_branches_of_a_parallel_chain_carry_their_key(witness: Witness) -> None:
    """handler.py identifies branches of a RunnableParallel by the tag map:key:K."""
    chain = RunnableParallel({"a": RunnableLambda(str), "b": RunnableLambda(str)})
    chain.invoke("x", {"callbacks": [witness]})
    tags = {tag for start in witness.starts for tag in start["tags"]}
    assert {"map:key:a", "map:key:b"} <= tags, "RunnableParallel no longer tags map:key:K"


@pytest.mark.filterwarnings("ignore:Unexpected type for token usage")
def test_models_report_the_number_of_prompts(model: Any, witness: Witness) -> None:
    """handler.py gives exchanges no step if batch_size is not 1."""
    asked = model()
    config = {"callbacks": [witness]}
    asked.invoke("a", config)
    list(asked.stream("a", config))
    asked.generate([[HumanMessage("a")], [HumanMessage("b")]], callbacks=[witness])
    sizes = [start.get("batch_size") for start in witness.starts]
    assert sizes == [1, 1, 2, 2], "on_chat_model_start no longer gets batch_size"
    assert witness.starts[0]["invocation_params"]["model"] == "some-model"


def test_tools_report_the_id_of_their_call(witness: Witness) -> None:
    """handler.py tells parallel tools of one node apart by tool_call_id."""

    def echo(text: str) -> str:
        """Echo."""
        return text

    builder = StateGraph(dict).add_node("tools", ToolNode([echo])).add_edge(START, "tools")
    call = {"name": "echo", "args": {"text": "x"}, "id": "call_1"}
    state = {"messages": [AIMessage("", tool_calls=[call])]}
    builder.compile().invoke(state, {"callbacks": [witness]})
    (tool,) = (start for start in witness.starts if start["event"] == "tool")
    assert tool.get("tool_call_id") == "call_1", "on_tool_start no longer gets tool_call_id"
    assert tool["metadata"]["langgraph_path"][0] == "__pregel_pull"


def test_tasks_know_the_checkpoint_they_run_from() -> None:
    """running.py reads thread_id and checkpoint_map[""] from the config of the running task."""
    seen: list[Any] = []

    def look(_: State) -> dict[str, Any]:
        seen.append(running_from())
        return {}

    saver = InMemorySaver()
    graph = StateGraph(State).add_node("look", look).add_edge(START, "look").compile(saver)
    graph.invoke({"messages": []}, {"configurable": {"thread_id": "T"}})
    (saved,) = (
        one for one in saver.list(None) if "branch:to:look" in one.checkpoint["channel_values"]
    )
    assert seen == [("T", saved.checkpoint["id"])], (
        'configurable["checkpoint_map"][""] or the channels branch:to:… moved: running.py and '
        "checkpoint_history.py have to follow"
    )


def test_config_tells_a_run_from_a_look_at_the_state() -> None:
    """saver.py tells them apart by __pregel_runtime."""

    class Asked(InMemorySaver):
        def get_tuple(self, config: Any) -> Any:
            runs.append("__pregel_runtime" in config["configurable"])
            return super().get_tuple(config)

    runs: list[bool] = []
    builder = StateGraph(State).add_node("one", lambda _: {}).add_edge(START, "one")
    graph, config = builder.compile(Asked()), {"configurable": {"thread_id": "T"}}
    graph.invoke({"messages": []}, config)
    graph.get_state(config)
    assert runs == [True, False], "__pregel_runtime moved: saver.py has to follow"


def test_new_checkpoint_ids_sort_after_a_time_that_can_be_set() -> None:
    """running.py makes new ids sort after a recorded one through _last_v6_timestamp."""
    now = ids.uuid6().int
    ahead = str(uuid.UUID(int=now + (1 << 118)))  # Some years.
    never = ["ffffffff-ffff-6fff-bfff-ffffffffffff", "ffffffff-ffff-4fff-bfff-ffffffffffff"]
    before = ids._last_v6_timestamp
    try:
        ids_after(ahead, alone=False)
        made = str(ids.uuid6())
        for one in never:
            ids_after(one, alone=False)
        later = str(ids.uuid6())
    finally:
        ids._last_v6_timestamp = before
    assert made > ahead, "langgraph.checkpoint.base.id moved: running.py has to follow"
    assert later[:8] == made[:8], "an id without a valid time moved all later ids"


def test_interrupts_bubble_up() -> None:
    """handler.py treats GraphBubbleUp as control flow, not as an error."""
    assert issubclass(GraphInterrupt, GraphBubbleUp)


def test_configure_hooks_are_called_with_get(monkeypatch: pytest.MonkeyPatch) -> None:
    """listening.py registers an object with `get` where LangChain expects a ContextVar."""
    from langchain_core.runnables.config import ensure_config, get_callback_manager_for_config

    asked: list[object] = []

    class Asked(_Ear):
        def get(self) -> None:
            asked.append(self)

    monkeypatch.setattr(context, "_configure_hooks", [])
    context.register_configure_hook(Asked(), inheritable=True, handle_class=BaseCallbackHandler)
    get_callback_manager_for_config(ensure_config())
    assert asked, "LangChain no longer calls `get` of its configure hooks"


def test_errors_of_handlers_are_logged_by_one_logger(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """handler.py filters the logger of langchain_core.callbacks.manager."""

    class Failing(BaseCallbackHandler):
        def on_chain_start(self, *_: object, **__: object) -> None:
            raise LookupError("x")

    with caplog.at_level(logging.WARNING):
        RunnableLambda(str).invoke("x", {"callbacks": [Failing()]})
    assert [record.name for record in caplog.records] == ["langchain_core.callbacks.manager"]


@pytest.mark.parametrize("brand", ["chat", "responses"])
def test_chat_openai_keeps_its_clients_in_the_known_attributes(model: Any, brand: str) -> None:
    """clients.py finds `_client` of the SDK clients in root_client and root_async_client."""
    asked = model(brand)
    for name, resource in (("root_client", "client"), ("root_async_client", "async_client")):
        sdk = vars(asked).get(name)
        assert type(sdk).__module__.startswith("openai"), f"ChatOpenAI.{name} moved"
        assert "_client" in vars(sdk), "the OpenAI SDK no longer keeps its HTTP client in _client"
        assert vars(asked)[resource]._client is sdk, f"ChatOpenAI.{resource} has another client"


def test_chat_anthropic_keeps_its_clients_in_cached_properties(model: Any) -> None:
    """clients.py reads the cached properties _client and _async_client."""
    asked = model("anthropic")
    for name in ("_client", "_async_client"):
        declared = getattr(type(asked), name, None)
        assert isinstance(declared, cached_property), f"ChatAnthropic.{name} is not cached any more"
        sdk = getattr(asked, name)
        assert vars(asked).get(name) is sdk, f"ChatAnthropic.{name} is not kept on the model"
        assert type(sdk).__module__.startswith("anthropic")
        assert "_client" in vars(sdk), "the Anthropic SDK no longer keeps its client in _client"


def test_encoder_of_states_calls_itself_by_a_global_name() -> None:
    """serde.py runs LangGraph's encoder with another value for that global."""
    from langgraph.checkpoint.serde import _msgpack, jsonplus

    names = jsonplus._msgpack_default.__code__.co_names
    assert "_msgpack_enc" in names, (
        "_msgpack_default no longer calls _msgpack_enc for nested values"
    )
    assert type(jsonplus._option) is int, "jsonplus._option moved"
    assert ("uuid", "UUID") in _msgpack.SAFE_MSGPACK_TYPES
    assert ("datetime", "datetime", "fromisoformat") in _msgpack.SAFE_MSGPACK_METHODS


def test_types_of_a_schema_are_found_in_the_builder() -> None:
    """serde.py calls build_serde_allowlist, and reads the schemas from the graph's builder."""
    from langgraph._internal._serde import build_serde_allowlist

    builder = StateGraph(State).add_node("a", lambda _: {}).add_edge(START, "a")
    assert builder.compile().builder.nodes["a"].input_schema is State, "the builder moved"
    found = build_serde_allowlist(schemas=[State, None], channels={})
    assert (AIMessage.__module__, "AIMessage") in found


def test_add_messages_closes_over_the_function_that_gives_ids() -> None:
    """given_ids.py replaces that function."""
    from langgraph.graph import add_messages

    assert add_messages.__code__.co_freevars == ("func",), (
        "add_messages no longer closes over func alone"
    )
    given = add_messages.__closure__[0].cell_contents([], [AIMessage("Hello.")])
    assert given[0].id, "the function no longer gives ids"


def test_strategies_and_tasks_keep_their_types_in_the_known_attributes() -> None:
    """search.py recognizes the strategies of agents and the tasks of workflows by their classes."""
    from langchain.agents import structured_output
    from langgraph.func import _TaskFunction, task

    for strategy in ("AutoStrategy", "ProviderStrategy", "ToolStrategy"):
        answers = getattr(structured_output, strategy)(AIMessage)
        assert answers.schema is AIMessage, f"{strategy} keeps its schema elsewhere"
    made: Any = task(lambda _: 1)
    assert isinstance(made, _TaskFunction), "tasks have another class"
    assert made.func(0) == 1, "a task keeps its function elsewhere"


def test_checkpointers_keep_their_data_and_their_types_in_the_known_attributes() -> None:
    """connections.py tells by them which objects hold the same data, session_serde.py the types."""
    saver = InMemorySaver()
    assert copy.copy(saver).storage is saver.storage, "copies do not share `storage` any more"
    with SqliteSaver.from_conn_string(":memory:") as opened:
        assert isinstance(opened.conn, sqlite3.Connection), "SqliteSaver.conn moved"
    serde = JsonPlusSerializer(allowed_msgpack_modules=[("app", "Doc")])
    assert serde._allowed_msgpack_modules == {("app", "Doc")}


def test_asynchronous_stores_work_in_a_task_of_theirs() -> None:
    """stores.py leaves the calls of that task alone."""

    async def look() -> None:
        async with AsyncSqliteStore.from_conn_string(":memory:") as store:
            assert isinstance(store._task, asyncio.Task), "AsyncBatchedBaseStore._task moved"

    asyncio.run(look())
