"""Functions that a session makes tools by name, under every reference to them."""

from __future__ import annotations

import asyncio
import inspect
import multiprocessing
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from tracefork_core import Tape, fork, record, replay, tool


def collected(value: Any) -> Any:
    """Return the values that a call leads to, whatever its kind."""
    if inspect.iscoroutine(value):
        return asyncio.run(value)
    if inspect.isgenerator(value):
        return list(value)
    if inspect.isasyncgen(value):

        async def read() -> list[object]:
            return [item async for item in value]

        return asyncio.run(read())
    return value


KINDS: dict[str, tuple[str, Callable[[Any], Any]]] = {
    "plain": ("plain", lambda shop: shop.plain("a", limit=1)),
    "imported elsewhere": ("plain", lambda shop: __import__("user").plain("a")),
    "in a table": ("plain", lambda shop: shop.TABLE["plain"]("a")),
    "as a default": ("plain", lambda shop: shop.by_default("a")),
    "in a partial": ("added", lambda shop: shop.added("a")),
    "decorated": ("wrapped", lambda shop: shop.wrapped("a")),
    "decorated without wraps": ("unnamed", lambda shop: shop.unnamed("a")),
    "cached": ("cached", lambda shop: [shop.cached.cache_clear(), shop.cached("a")][1]),
    "in an object of a framework": ("framework", lambda shop: shop.framework("a")),
    "async": ("awaited", lambda shop: shop.awaited("a")),
    "generator": ("yielded", lambda shop: shop.yielded("a")),
    "async generator": ("streamed", lambda shop: shop.streamed("a")),
    "closure": ("closed", lambda shop: shop.closed("a")),
    "method": ("Bank.pay", lambda shop: shop.Bank().pay("a")),
    "method of an instance": ("bank.pay", lambda shop: shop.bank.pay("a")),
    "bound method": ("pay", lambda shop: shop.pay("a")),
    "async static method": ("Bank.lend", lambda shop: shop.Bank.lend("a")),
    "decorated class method": ("Bank.save", lambda shop: shop.bank.save("a")),
    "method of an imported class": ("Bank.pay", lambda shop: __import__("user").Bank().pay("a")),
}


@pytest.mark.parametrize("early", [True, False], ids=["imported before", "imported in the session"])
@pytest.mark.parametrize("kind", KINDS)
def test_a_named_function_is_answered_from_the_tape(
    kind: str, early: bool, tape: Path, shop: Callable[[], ModuleType]
) -> None:
    """One exchange, whichever reference is called; the function is as before afterwards."""
    name, call = KINDS[kind]
    codes = {}
    if early:
        codes = {name: f.__code__ for name, f in vars(shop()).items() if inspect.isfunction(f)}

    def agent() -> object:
        return collected(call(shop()))

    with record(tape, tools=[f"shop:{name}=read"]) as run:
        recorded = agent()
    assert run.receipt is not None
    assert (run.receipt.exchanges, run.receipt.unused_tools) == (1, [])
    done = len(shop().ran)
    assert done
    if not early:
        del sys.modules["shop"]
        sys.modules.pop("user", None)
        done = 0
    with replay(tape) as replaying:
        assert agent() == recorded
    assert replaying.digest == run.digest
    assert len(shop().ran) == done, "the function ran at replay"
    after = {name: f.__code__ for name, f in vars(shop()).items() if name in codes}
    assert after == codes
    agent()
    assert len(shop().ran) > done, "the function does not run outside of a session"
    with Tape.open(tape) as opened:
        assert opened.exchanges[0].aside.effect == "read"


def test_without_a_name_a_function_runs_again(tape: Path, shop: Callable[[], ModuleType]) -> None:
    """The negative control."""
    with record(tape) as run:
        shop().plain("a")
    assert run.receipt is not None
    assert run.receipt.exchanges == 0
    with replay(tape):
        shop().plain("a")
    assert shop().ran == ["a", "a"]


@pytest.mark.parametrize(("table", "calls"), [("TABLE", ["plain", "pay"]), ("NESTED", 2)])
def test_each_function_of_a_table_is_a_tool(
    table: str, calls: Any, tape: Path, shop: Callable[[], ModuleType]
) -> None:
    """Also in tables inside of it, and under the key that OpenAI's schema has for it."""

    def agent() -> list[object]:
        module = shop()
        if table == "TABLE":
            return [module.TABLE[name]("a") for name in calls]
        return [module.NESTED[0]["function"]("a"), *(f("b") for f in module.NESTED[1]["more"])]

    with record(tape, tools_of=[f"shop:{table}"]) as run:
        recorded = agent()
    assert run.receipt is not None
    assert run.receipt.exchanges == 2
    done = list(shop().ran)
    with replay(tape):
        assert agent() == recorded
    assert shop().ran == done


def test_functions_themselves_can_be_given(tape: Path, shop: Callable[[], ModuleType]) -> None:
    """The tape holds their names, so a replay finds them."""
    module = shop()

    def agent() -> list[object]:
        return [module.plain("a"), module.wrapped("b"), module.bank.pay("c")]

    with record(tape, tools=[module.plain, module.wrapped, module.bank.pay]):
        recorded = agent()
    with Tape.open(tape) as opened:
        assert opened.environment is not None
        assert opened.environment.tools == ["shop:plain", "shop:wrapped", "shop:Bank.pay"]
    with replay(tape):
        assert agent() == recorded
    assert module.ran == ["a", "b", "c"]


def test_a_fork_answers_its_prefix_and_repeats_no_write(
    tape: Path, shop: Callable[[], ModuleType]
) -> None:
    """A named tool has the effect that was given with its name; the branch replays as well."""
    module = shop()

    def agent() -> list[object]:
        return [module.plain("a"), module.wrapped("b"), module.plain("c")]

    with record(tape, tools=["shop:plain=write", "shop:wrapped=read"]):
        agent()
    branch = tape.with_name("branch.tape")
    with fork(tape, at=1, writes="stub", to=branch):
        assert agent() == ["a", "b", "c"]
    assert module.ran == ["a", "b", "c", "b"]
    with replay(branch):
        agent()
    assert module.ran == ["a", "b", "c", "b"]


def test_a_function_that_is_named_twice_or_decorated_is_one_exchange(
    tape: Path, shop: Callable[[], ModuleType]
) -> None:
    """By two names, by a name and a table, and by a name and `@tool`."""
    module = shop()
    module.decorated = tool(effect="read")(module.wrapped)  # type: ignore[attr-defined]
    names = ["shop:plain", "shop:added", "shop:plain=pure", "shop:wrapped"]
    with record(tape, tools=names, tools_of=["shop:TABLE"]) as run:
        module.plain("a")
        module.decorated("b")
    assert run.receipt is not None
    assert run.receipt.exchanges == 2
    with Tape.open(tape) as opened:
        assert [exchange.aside.effect for exchange in opened.exchanges] == ["pure", "read"]


def test_only_the_session_that_names_a_function_records_it(
    tape: Path, shop: Callable[[], ModuleType]
) -> None:
    """Two sessions of one process, one inside of the other's block."""
    module, other = shop(), tape.with_name("other.tape")
    with record(tape, tools=["shop:plain"]) as outer:
        module.plain("a")
        with record(other, tools=["shop:wrapped"]) as inner:
            module.plain("b")
            module.wrapped("c")
        module.wrapped("d")
        module.plain("e")
    assert outer.receipt is not None
    assert inner.receipt is not None
    assert (outer.receipt.exchanges, inner.receipt.exchanges) == (2, 1)


def test_a_tool_looks_as_it_did(tape: Path, shop: Callable[[], ModuleType]) -> None:
    """Signature, source, kind and the error for wrong arguments are the function's own."""
    module = shop()
    before = inspect.signature(module.plain), inspect.getsource(module.plain)
    with pytest.raises(TypeError) as plain:
        module.plain()
    with record(tape, tools=["shop:plain", "shop:streamed", "shop:awaited"]) as run:
        assert (inspect.signature(module.plain), inspect.getsource(module.plain)) == before
        assert inspect.getfullargspec(module.plain).kwonlydefaults == {"limit": 3}
        assert inspect.isasyncgenfunction(inspect.unwrap(module.streamed))
        assert inspect.iscoroutinefunction(inspect.unwrap(module.awaited))
        with pytest.raises(TypeError) as caught:
            module.plain()
    assert str(caught.value) == str(plain.value)
    assert run.receipt is not None
    assert run.receipt.exchanges == 0


def test_names_without_effect_are_in_the_receipt(
    tape: Path, shop: Callable[[], ModuleType]
) -> None:
    """A module that is not imported, and a function that is not called."""
    with record(tape, tools=["shop:plain", "user:Bank.pay", "shop:wrapped"]) as run:
        shop().wrapped("a")
    assert run.receipt is not None
    assert run.receipt.unused_tools == [
        "--tool shop:plain (not called in this process)",
        "--tool user:Bank.pay (user was not imported)",
    ]


@pytest.mark.parametrize("method", ["fork", "spawn"])
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_child_process_has_the_tools_of_its_parent(
    method: str,
    tape: Path,
    shop: Callable[[], ModuleType],
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
) -> None:
    """Forked or spawned: the function runs once, and not at replay; the child ends in silence."""
    counted = tmp_path / "counted"
    (tmp_path / "shop.py").write_text(
        f"def plain(what):\n    open({str(counted)!r}, 'a').write(what)\n    return what\n"
        "def in_child(what):\n    return plain(what)\n"
    )
    loaded = shop()

    def agent() -> list[object]:
        with multiprocessing.get_context(method).Pool(1) as pool:
            return pool.map(loaded.in_child, ["a", "b"])

    with record(tape, tools=["shop:plain"]) as run:
        recorded = agent()
    assert run.receipt is not None
    assert run.receipt.exchanges == 2
    with replay(tape):
        assert agent() == recorded
    assert counted.read_text() == "ab"
    assert capfd.readouterr().err == ""
