"""What a tool does to its run besides returning a result is done again in a replay."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest
from pydantic import BaseModel
from pydantic_ai import Agent, ModelRetry, RunContext
from pydantic_ai.toolsets import FunctionToolset

import tracefork_core as tracefork
from tracefork_pydantic_ai import leave_live

Call = Callable[..., Any]
WORDS = "@call work {}\n@then\n@say Done."


@dataclass
class Todo:
    text: str


class Profile(BaseModel):
    name: str = "unknown"


class Database:
    """A class of the program without any fields that could be read off it."""

    def __init__(self) -> None:
        self.rows: dict[str, int] = {}
        self.lock = object()


@dataclass
class Deps:
    count: int = 0
    log: list[str] = field(default_factory=list)
    todos: list[Todo] = field(default_factory=list)
    profile: Profile = field(default_factory=Profile)
    database: Database = field(default_factory=Database)
    chosen: Todo | None = None
    objects: list[Any] = field(default_factory=list)


ran: list[str] = []


@pytest.fixture(autouse=True)
def _nothing_ran() -> None:
    ran.clear()


def counting(ctx: RunContext[Deps]) -> None:
    ran.append("counting")
    ctx.deps.count += len(ran)
    ctx.deps.log.append("counted")
    ctx.deps.profile.name = "Ann"


def listing(ctx: RunContext[Deps]) -> str:
    ran.append("listing")
    ctx.deps.todos.append(Todo("buy tea"))
    ctx.deps.chosen = ctx.deps.todos[0]
    ctx.deps.database.rows["tea"] = 3
    return "listed"


def failing(ctx: RunContext[Deps]) -> str:
    ran.append("failing")
    ctx.deps.log.append("tried")
    if ctx.retry == 0:
        raise ModelRetry("Once more.")
    return "done"


def writing(ctx: RunContext[Deps]) -> str:
    ran.append("writing")
    ctx.enqueue("@say And this.")
    return "written"


@pytest.mark.parametrize("function", [counting, listing, failing, writing])
def test_what_a_tool_changes_is_changed_again(
    agent: Call, ask: Call, twice: Call, function: Any
) -> None:
    """Dependencies, which instructions read, and messages that the tool puts in."""

    def run() -> tuple[str, Deps, bool]:
        deps = Deps()
        log = deps.log
        toolset: FunctionToolset[Any] = FunctionToolset()
        toolset.add_function(function, name="work")
        words = (
            WORDS.replace("@then", "@then\n@call work {}\n@then") if function is failing else WORDS
        )
        helper = agent("helper", toolsets=[toolset])
        helper.instructions(lambda ctx: f"{words}\nSo far: {ctx.deps.count} {ctx.deps.log}")
        messages = ask(helper, deps=deps)
        deps.database.lock = None
        return messages, deps, log is deps.log

    (messages, deps, _), (again, same, is_kept) = twice(run)
    assert messages == again
    assert (deps.count, deps.log, deps.todos, deps.profile, deps.chosen) == (
        *(same.count, same.log, same.todos, same.profile, same.chosen),
    )
    assert deps.database.rows == same.database.rows
    assert is_kept
    assert ran == [function.__name__] * (2 if function is failing else 1)
    if function is not writing:
        assert deps != Deps(database=deps.database) or deps.database.rows


def test_tools_at_once_leave_what_they_left(agent: Call, ask: Call, twice: Call) -> None:
    """They end in another order than they began."""

    async def work(ctx: RunContext[Any], seconds: float) -> int:
        ran.append("work")
        await asyncio.sleep(seconds)
        ctx.deps.append(seconds)
        return len(ctx.deps)

    calls = "\n".join(f'@call work {{"seconds": {seconds}}}' for seconds in (0.09, 0.03, 0.06))

    def run() -> tuple[str, list[float]]:
        deps: list[float] = []
        return ask(agent("helper", f"{calls}\n@then\n@say Done.", tools=[work]), deps=deps), deps

    recorded, again = twice(run)
    assert recorded == again
    assert sorted(recorded[1]) == [0.03, 0.06, 0.09]
    assert ran == ["work"] * 3


@pytest.mark.skipif(
    not hasattr(RunContext, "cancel"), reason="a tool of this version cannot cancel its run"
)
def test_a_tool_that_cancels_its_run_is_warned_of(agent: Call, twice: Call, tape: Any) -> None:
    """The call never ends, so it runs again in a replay, with a mark."""

    async def work(ctx: RunContext[Any]) -> str:
        ran.append("work")
        ctx.cancel()
        await asyncio.sleep(5)
        return "late"

    def run() -> str:
        with pytest.raises(Exception) as raised:  # noqa: PT011 - the class is compared
            asyncio.run(agent("helper", WORDS, tools=[work]).run("Go on."))
        return type(raised.value).__name__

    with tracefork.record(tape), pytest.warns(UserWarning, match="cancelled its run"):
        run()
    leave_live(work)
    tape.unlink()
    assert twice(run) == ("RunCancelled", "RunCancelled")


def test_a_change_that_cannot_be_made_again_is_warned_of(agent: Call, ask: Call, tape: Any) -> None:
    """The warning names the attribute, and what to do."""

    def work(ctx: RunContext[Deps]) -> None:
        ctx.deps.objects.append(object())

    deps = Deps()
    with (
        tracefork.record(tape),
        pytest.warns(UserWarning, match=r"changed `deps\.objects`.*leave_live"),
    ):
        ask(agent("helper", WORDS, tools=[work]), deps=deps)


def test_agents_and_clients_in_the_dependencies_are_left_alone(
    agent: Call, ask: Call, twice: Call
) -> None:
    """They are no data; looking at them would cost time."""

    @dataclass
    class WithAgent:
        other: Agent
        names: list[str]

    def work(ctx: RunContext[Any]) -> None:
        ran.append("work")
        ctx.deps.names.append("Ann")

    def run() -> list[str]:
        deps = WithAgent(agent("other"), [])
        ask(agent("helper", WORDS, tools=[work]), deps=deps)
        return deps.names

    assert twice(run) == (["Ann"], ["Ann"])
    assert ran == ["work"]
