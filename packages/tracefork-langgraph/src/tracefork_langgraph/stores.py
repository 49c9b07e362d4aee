"""Put the stores of the user's own behind a session: `InMemoryStore`, `SqliteStore`, others.

A store is LangGraph's long-term memory: it keeps what earlier runs put there. A recording notes the
answer to each read, and which items of it the run had put itself. A replay gets the same answers. A
fork gets them without the items that it has not put itself, and with those that it has.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Sequence
from types import ModuleType
from typing import Any

import msgspec
from langgraph.store.base import (
    GetOp,
    Item,
    ListNamespacesOp,
    MatchCondition,
    PutOp,
    SearchItem,
    SearchOp,
)
from langgraph.store.memory import InMemoryStore

from tracefork_core.adapters import (
    Noted,
    Patches,
    State,
    fork_point,
    put_in_front,
    undisturbed,
    upkeep,
)
from tracefork_langgraph import ADAPTER
from tracefork_langgraph.connections import OPEN, opening, same_data
from tracefork_langgraph.serde import StrictSerializer
from tracefork_langgraph.session_serde import declared_types

Place = tuple[tuple[str, ...], str]
"""The namespace and the key of an item."""


class _Kept(msgspec.Struct, omit_defaults=True):
    """An item as a tape notes it. `value` is its index; `own` is whether the run had put it."""

    ns: tuple[str, ...]
    key: str
    value: int
    created: str
    updated: str
    own: bool = False
    score: float | None = None

    @property
    def place(self) -> Place:
        return self.ns, self.key


class _Answer(msgspec.Struct, omit_defaults=True):
    """What a read gave: items, or namespaces and whether the run had made each of them."""

    items: list[_Kept] = []
    namespaces: list[tuple[tuple[str, ...], bool]] = []


class Store:
    """Stands in for one store in one session. Has its methods; `live` is its own method."""

    def __init__(self, shared: Any, state: State) -> None:
        self._state = state
        self._serde = StrictSerializer()
        # Embeddings of an InMemoryStore are requests of the run, and its copy makes them again.
        self._below_seam = not isinstance(shared, InMemoryStore)
        self._memory = _in_memory(shared) if state.is_answered else None
        self._put: set[Place] = set()

    def batch(self, live: Any, ops: Iterable[Any]) -> list[Any]:
        ops = list(ops)
        numbers = self._begin(ops)
        with undisturbed(below_seam=self._below_seam):
            results = (self._memory.batch if self._memory else live)(ops)
        return self._end(ops, numbers, results)

    async def abatch(self, live: Any, ops: Iterable[Any]) -> list[Any]:
        ops = list(ops)
        numbers = self._begin(ops)
        with undisturbed(below_seam=self._below_seam):
            results = await (self._memory.abatch if self._memory else live)(ops)
        return self._end(ops, numbers, results)

    async def aget(self, live: Any, namespace: Any, key: str, **options: Any) -> Any:
        return await self._one(GetOp(tuple(namespace), key), live, namespace, key, **options)

    async def asearch(self, live: Any, prefix: Any, /, **options: Any) -> Any:
        op = SearchOp(tuple(prefix), *(options.get(name, default) for name, default in _SEARCH))
        return await self._one(op, live, prefix, **options)

    async def aput(
        self, live: Any, namespace: Any, key: str, value: Any, index: Any = None, **options: Any
    ) -> None:
        op = PutOp(tuple(namespace), key, value, index)
        await self._one(op, live, namespace, key, value, index, **options)

    async def adelete(self, live: Any, namespace: Any, key: str) -> None:
        await self._one(PutOp(tuple(namespace), key, None), live, namespace, key)

    async def alist_namespaces(self, live: Any, **options: Any) -> Any:
        ends = (("prefix", options.get("prefix")), ("suffix", options.get("suffix")))
        conditions = tuple(MatchCondition(kind, path) for kind, path in ends if path)
        limits = (options.get(name, default) for name, default in _LIST)
        return await self._one(ListNamespacesOp(conditions, *limits), live, **options)

    def setup(self, live: Any) -> Any:
        return upkeep(self._state, live)

    def sweep_ttl(self, live: Any) -> Any:
        return upkeep(self._state, live)

    async def _one(self, op: Any, live: Any, *args: Any, **options: Any) -> Any:
        """Do what a method asks that queues it for `abatch`, which runs in another task."""
        if self._memory:
            return (await self.abatch(None, [op]))[0]
        numbers = self._begin([op])
        with undisturbed(below_seam=self._below_seam):
            result = await live(*args, **options)
        return self._end([op], numbers, [result])[0]

    def _begin(self, ops: Sequence[Any]) -> list[int]:
        """Number the reads, and put what the recording found then into memory."""
        numbers = [-1 if isinstance(op, PutOp) else self._state.number(_key(op)) for op in ops]
        if self._memory:
            for op, n in zip(ops, numbers, strict=True):
                if n >= 0 and (noted := self._state.recorded(_key(op), n)):
                    self._learn(self._memory, op, noted[-1])
        return numbers

    def _learn(self, memory: InMemoryStore, op: Any, noted: Noted) -> None:
        answer = msgspec.convert(noted.answer, _Answer)
        if isinstance(op, GetOp) and not answer.items and (op.namespace, op.key) not in self._put:
            memory._data[op.namespace].pop(op.key, None)  # noqa: SLF001 - a test fails if it moves
        for item in answer.items:
            if not item.own and item.place not in self._put:
                memory._data[item.ns][item.key] = self._item(Item, noted, item)  # noqa: SLF001

    def _end(self, ops: Sequence[Any], numbers: Sequence[int], results: list[Any]) -> list[Any]:
        """Return the answers to the reads, and put them on the tape."""
        given = list(results)
        for i, (op, n) in enumerate(zip(ops, numbers, strict=True)):
            if n >= 0:
                if self._memory:
                    given[i] = self._answered(op, n, results[i])
                self._note(op, n, given[i])
        self._put.update((op.namespace, op.key) for op in ops if isinstance(op, PutOp))
        return given

    def _answered(self, op: Any, n: int, own: Any) -> Any:
        """Return the answer to a read; `own` is the one from memory."""
        noted = self._state.recorded(_key(op), n)
        if not noted:
            return own
        last, is_fork = noted[-1], fork_point() is not None
        if not is_fork and last.n != n:
            return own
        answer = msgspec.convert(last.answer, _Answer)
        items = [item for item in answer.items if not is_fork or self._holds(last, item)]
        if isinstance(op, GetOp):
            found = [self._item(Item, last, item) for item in items]
            return found[0] if found else (own if is_fork else None)
        if isinstance(op, SearchOp):
            have = {item.place for item in items}
            found = [self._item(SearchItem, last, item) for item in items]
            return [*found, *self._new(own, have)][: op.limit] if is_fork else found
        names = [ns for ns, made in answer.namespaces if not (is_fork and made)]
        return [*names, *(ns for ns in own if is_fork and ns not in names)][: op.limit]

    def _new(self, own: Iterable[Any], have: set[Place]) -> list[Any]:
        """Return the items that a fork has put itself and that no recorded answer has."""
        places = [((item.namespace, item.key), item) for item in own]
        return [item for place, item in places if place in self._put and place not in have]

    def _holds(self, noted: Noted, item: _Kept) -> bool:
        """Return whether an item of a recorded answer is there in this fork, too."""
        if item.place not in self._put:
            return not item.own
        mine = self._memory._data[item.ns].get(item.key) if self._memory else None  # noqa: SLF001
        return mine is not None and mine.value == self._value(noted, item)

    def _item(self, kind: Any, noted: Noted, item: _Kept) -> Any:
        score = {"score": item.score} if kind is SearchItem else {}
        times: dict[str, Any] = {"created_at": item.created, "updated_at": item.updated}
        value = self._value(noted, item)
        return kind(value=value, key=item.key, namespace=item.ns, **times, **score)

    def _value(self, noted: Noted, item: _Kept) -> Any:
        self._serde.allowed |= declared_types
        return self._serde.loads_typed(noted.values[item.value])

    def _note(self, op: Any, n: int, result: Any) -> None:
        if not self._state.is_noted:
            return
        values: list[tuple[str, bytes]] = []
        if isinstance(op, ListNamespacesOp):
            made = {ns[: op.max_depth] for ns, _ in self._put}
            answer = _Answer(namespaces=[(ns, ns in made) for ns in result])
        else:
            found = result if isinstance(op, SearchOp) else [result] if result else []
            try:
                answer = _Answer([self._kept(item, values) for item in found])
            except TypeError:
                return  # Only an InMemoryStore holds such a value, and each replay copies it.
        self._state.note(_key(op), n, msgspec.to_builtins(answer), values)

    def _kept(self, item: Any, values: list[tuple[str, bytes]]) -> _Kept:
        values.append(self._serde.dumps_typed(item.value))
        return _Kept(
            *(item.namespace, item.key, len(values) - 1),
            *(item.created_at.isoformat(), item.updated_at.isoformat()),
            *((item.namespace, item.key) in self._put, getattr(item, "score", None)),
        )


_SEARCH = (("filter", None), ("limit", 10), ("offset", 0), ("query", None))
_LIST = (("max_depth", None), ("limit", 100), ("offset", 0))


def _key(op: Any) -> str:
    """Return what a read asks for."""
    match op:
        case GetOp():
            asked: list[Any] = ["get", op.namespace, op.key]
        case SearchOp():
            asked = ["search", op.namespace_prefix, op.filter, op.limit, op.offset, op.query]
        case _:
            ends = [(end.match_type, end.path) for end in op.match_conditions or ()]
            asked = ["list", ends, op.max_depth, op.limit, op.offset]
    return msgspec.json.encode(asked, enc_hook=repr).decode()


def _in_memory(shared: Any) -> InMemoryStore:
    """Return the store of a replay or fork: a copy if the shared one is in memory, else empty.

    The copy is what the program itself put there before: reads that are not on the tape find it.
    """
    if not isinstance(shared, InMemoryStore):
        return InMemoryStore()
    own = copy.copy(shared)
    own._data = copy.deepcopy(shared._data)  # noqa: SLF001
    own._vectors = copy.deepcopy(shared._vectors)  # noqa: SLF001
    return own


def _works_in_background(store: Any) -> bool:
    """Return whether this is the task in which an asynchronous store does what was queued."""
    import asyncio

    try:
        task = asyncio.current_task()
    except RuntimeError:
        return False
    return task is not None and task is getattr(store, "_task", None)


def _of_stores(patches: Patches, module: ModuleType) -> None:
    put_in_front(
        patches,
        module.BaseStore,
        ("batch", "abatch", "setup", "sweep_ttl"),
        Store,
        same=same_data,
        is_exempt=_works_in_background,
        replace={OPEN: opening},
    )


def _of_queues(patches: Patches, module: ModuleType) -> None:
    names = ("aget", "asearch", "aput", "adelete", "alist_namespaces")
    put_in_front(patches, module.AsyncBatchedBaseStore, names, Store, same=same_data)


MEMORY = ADAPTER.instrument("langgraph.store.base", _of_stores)
QUEUES = ADAPTER.instrument("langgraph.store.base.batch", _of_queues)
"""Every session switches them on when these modules are imported."""
