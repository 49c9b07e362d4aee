"""A value comes back as it was saved, or an error names what cannot."""

from __future__ import annotations

import re
from collections import defaultdict, deque
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from enum import Enum
from fractions import Fraction
from pathlib import Path
from typing import Any, NamedTuple, TypedDict
from uuid import UUID

import ormsgpack
import pytest
from langchain.agents import create_agent
from langchain.agents.structured_output import ProviderStrategy, ToolStrategy
from langchain_core.documents import Document
from langchain_core.messages import HumanMessage
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph.func import entrypoint, task
from langgraph.graph import START, StateGraph
from langgraph.types import Command, Interrupt, Send, interrupt
from pydantic import BaseModel, RootModel, SecretBytes, SecretStr

import tracefork_core as tracefork
from tracefork_langgraph import TapeSaver, attach
from tracefork_langgraph.serde import SECRET, StrictSerializer
from tracefork_testkit import ProviderServer


class Colour(Enum):
    RED = "red"


class Point(NamedTuple):
    x: int
    y: int


@dataclass
class Doc:
    name: str
    colour: Colour = Colour.RED
    size: int = field(init=False, default=0)


class Model(BaseModel):
    title: str
    inner: list[Any] = []


class Verdict(BaseModel):
    colour: Colour
    docs: list[Model]


class Tags(RootModel[list[str]]):
    pass


class Table(RootModel[dict[str, int]]):
    pass


def there_and_back(value: Any, **options: Any) -> Any:
    """Return a value as another process would read it."""
    written = StrictSerializer().dumps_typed(value)
    return StrictSerializer(**options).loads_typed(written)


SAFE = [
    None,
    b"bytes",
    bytearray(b"more"),
    {"a": [1, 2.5, "x", None, True], 3: "three"},
    {1, 2},
    {("a", 1), ("b", (2, 3))},
    frozenset({("x",)}),
    deque([1, 2]),
    datetime(2026, 1, 2, 3, 4, 5, 6, tzinfo=UTC),
    date(2026, 1, 2),
    timedelta(days=1, seconds=2),
    Decimal("1.10"),
    UUID(int=7),
    Path("a/b"),
    re.compile("x+", re.IGNORECASE),
    HumanMessage("hi", id="1", additional_kwargs={"a": {"b": [1]}}),
    Document("text", metadata={"n": 1}),
    Send("node", {"a": 1}),
    Interrupt("why?", id="1"),
]


@pytest.mark.parametrize("value", SAFE, ids=lambda value: type(value).__name__)
def test_safe_types_come_back(value: Any) -> None:
    """LangGraph's safe types need no permission; members of a set keep their types."""
    found = there_and_back(value)
    assert found == value
    assert type(found) is type(value)


@pytest.mark.parametrize("value", SAFE, ids=lambda value: type(value).__name__)
def test_bytes_equal_those_of_langgraph(value: Any) -> None:
    """So other checkpointers can read them."""
    assert StrictSerializer().dumps_typed(value) == JsonPlusSerializer().dumps_typed(value)


def filled() -> Doc:
    doc = Doc("a")
    doc.size = 9
    return doc


YOURS = [filled(), Model(title="t"), Tags(["a"]), Table({"a": 1}), Point(1, 2), Colour.RED]


@pytest.mark.parametrize("value", YOURS)
@pytest.mark.parametrize("wrap", [lambda one: one, lambda one: {"deep": [one]}])
def test_user_type_is_created_only_if_it_was_allowed(value: Any, wrap: Any) -> None:
    """With every field, including those its constructor does not take. Else an error names it."""
    written = StrictSerializer().dumps_typed(wrap(value))
    read = StrictSerializer([Doc, Model, Tags, Table, Point, Colour]).loads_typed(written)
    assert read == wrap(value)
    with pytest.raises(tracefork.UsageError, match=rf"\[.*{type(value).__name__}\]") as caught:
        StrictSerializer().loads_typed(written)
    assert "attach(graph)" in str(caught.value)


def test_allowing_a_type_does_not_allow_the_types_inside_it() -> None:
    """Each type needs its own permission."""
    with pytest.raises(tracefork.UsageError, match="Colour"):
        there_and_back(filled(), allow=[Doc])


def test_serializer_reads_the_types_that_it_has_written() -> None:
    """Nested types too."""
    serializer = StrictSerializer()
    written = serializer.dumps_typed({"docs": [filled()]})
    assert serializer.loads_typed(written) == {"docs": [filled()]}
    clone = serializer.with_msgpack_allowlist([("app", "Other")])
    assert clone.loads_typed(written) == {"docs": [filled()]}


def test_serializer_does_not_run_code_that_a_checkpoint_names(tmp_path: Path) -> None:
    """A crafted value creates nothing: the error names the code."""
    target = tmp_path / "touched"
    for code in range(6):
        inner = ormsgpack.packb(["pathlib", "open", [str(target), "w"], "touch"])
        crafted = ormsgpack.packb([ormsgpack.Ext(code, inner)])
        with pytest.raises(tracefork.UsageError, match=r"pathlib\.open"):
            StrictSerializer().loads_typed(("msgpack", crafted))
    with pytest.raises(tracefork.UsageError, match="pickle"):
        StrictSerializer().loads_typed(("pickle", b"cos\nsystem\n."))
    assert not target.exists()


@pytest.mark.parametrize(("lists", "extensions"), [(1000, 20), (1, 150)])
def test_deeply_nested_value_is_refused(lists: int, extensions: int) -> None:
    """A few bytes cannot exhaust the stack. A depth that real states have is read."""

    def nested(lists: int, extensions: int) -> bytes:
        body = b"\xc0"
        for _ in range(extensions):
            inner = b"\x93" + b"".join(map(ormsgpack.packb, ("builtins", "set")))
            body = ormsgpack.packb(ormsgpack.Ext(0, inner + b"\x91" * lists + body))
        return body

    with pytest.raises(tracefork.UsageError, match="more than 200 levels"):
        StrictSerializer().loads_typed(("msgpack", nested(lists, extensions)))
    with pytest.raises(tracefork.UsageError, match="set in a checkpoint cannot be recreated"):
        StrictSerializer().loads_typed(("msgpack", nested(2, 5)))
    deep: Any = None
    for _ in range(40):
        deep = Send("node", deep)
    assert there_and_back(deep) == deep


def test_type_that_cannot_be_imported_is_an_error() -> None:
    """It does not come back as a dict."""

    @dataclass
    class Local:
        a: int = 1

    serializer = StrictSerializer()
    with pytest.raises(tracefork.UsageError, match="Local"):
        serializer.loads_typed(serializer.dumps_typed(Local()))


def test_secrets_are_not_stored() -> None:
    """A SecretStr comes back as a placeholder, at any depth."""

    class Held(BaseModel):
        key: SecretStr
        raw: SecretBytes

    serializer = StrictSerializer()
    held = Held(key=SecretStr("hunter2!"), raw=SecretBytes(b"hunter3!"))
    _, body = serializer.dumps_typed({"a": [held], "b": SecretStr("hunter2!")})
    assert b"hunter" not in body
    assert there_and_back(SecretStr("hunter2!")).get_secret_value() == SECRET
    assert there_and_back(SecretBytes(b"hunter3!")).get_secret_value() == SECRET.encode()


def test_tuples_and_defaultdicts_come_back_as_lists_and_dicts() -> None:
    """Also an exception comes back as its text, and a lone surrogate as `?`."""
    assert there_and_back({"a": (1, (2,))}) == {"a": [1, [2]]}
    assert type(there_and_back(defaultdict(list, a=[1]))) is dict
    assert there_and_back(ValueError("x")) == "ValueError('x')"
    assert there_and_back("a \ud800") == "a ?"


@pytest.mark.parametrize("value", [there_and_back, Fraction(1, 2), 2**64])
def test_unserializable_value_is_refused_when_it_is_saved(value: Any) -> None:
    """When it is read, it would be too late."""
    with pytest.raises(TypeError):
        StrictSerializer().dumps_typed({"deep": [value]})


class State(TypedDict, total=False):
    doc: Doc


def test_attach_allows_the_types_in_the_schemas_of_a_graph(path: Path) -> None:
    """After a restart they can be read with `attach`, and not without it."""
    config: Any = {"configurable": {"thread_id": "t"}}
    builder = StateGraph(State).add_node("a", lambda _: {"doc": filled()}).add_edge(START, "a")
    builder.compile(checkpointer=TapeSaver(path)).invoke({}, config)
    with pytest.raises(tracefork.UsageError, match="Doc"):
        builder.compile(checkpointer=TapeSaver(path)).get_state(config)
    attached = attach(builder.compile(checkpointer=TapeSaver(path)))
    assert attached.get_state(config).values == {"doc": filled()}


@pytest.mark.parametrize("strategy", [lambda it: it, ToolStrategy, ProviderStrategy])
def test_attach_allows_the_response_format_of_an_agent(
    strategy: Any, path: Path, model: Callable[..., Any]
) -> None:
    """The state of an agent declares it as `Any`."""
    config: Any = {"configurable": {"thread_id": "t"}}

    def agent() -> Any:
        answers = strategy(Verdict)
        return create_agent(asked_of, [], response_format=answers, checkpointer=TapeSaver(path))

    said = '{"colour": "red", "docs": [{"title": "t"}]}'
    way = "say" if strategy is ProviderStrategy else "call Verdict"
    asked = {"messages": [("user", f"@{way} {said}")]}
    with ProviderServer() as exact:
        asked_of = model(base_url=f"{exact.url}/v1")
        verdict = agent().invoke(asked, config)["structured_response"]
    assert verdict == Verdict(colour=Colour.RED, docs=[Model(title="t")])
    with pytest.raises(tracefork.UsageError, match="Verdict"):
        agent().get_state(config)
    assert attach(agent()).get_state(config).values["structured_response"] == verdict


@task
def _drafted(name: str) -> Doc:
    return Doc(name)


def test_attach_allows_the_return_types_of_tasks(path: Path) -> None:
    """A waiting workflow continues in another process with the results of its tasks."""
    config: Any = {"configurable": {"thread_id": "t"}}

    def workflow() -> Any:
        @entrypoint(checkpointer=TapeSaver(path))
        def ask(name: str) -> str:
            return f"{_drafted(name).result().name}: {interrupt('sure?')}"

        return ask

    workflow().invoke("paper", config)
    with pytest.raises(tracefork.UsageError, match="Doc"):
        workflow().invoke(Command(resume="yes"), config)
    assert attach(workflow()).invoke(Command(resume="yes"), config) == "paper: yes"
