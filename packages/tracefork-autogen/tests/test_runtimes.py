"""Programs of autogen-core: messages, the agents that handle them, and what led to each."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from autogen_core import (
    AgentId,
    ClosureAgent,
    ClosureContext,
    DefaultSubscription,
    DefaultTopicId,
    MessageContext,
    RoutedAgent,
    SingleThreadedAgentRuntime,
    TypeSubscription,
    message_handler,
)
from autogen_core.models import UserMessage

import tracefork_core as tracefork
from tracefork_testkit import ProviderServer

Call = Callable[..., Any]
MODEL = "model:gpt-4o"


@dataclass
class Task:
    text: str


@dataclass
class Draft:
    text: str
    rounds: int = 0


class Worker(RoutedAgent):
    """Asks a model for each message; what it is told as a draft, it publishes again."""

    def __init__(self, client: Any) -> None:
        super().__init__("Works.")
        self._client = client

    async def ask(self, text: str) -> str:
        answer = await self._client.create([UserMessage(content=text, source="user")])
        return str(answer.content)

    @message_handler
    async def on_task(self, message: Task, ctx: MessageContext) -> Draft:
        return Draft(await self.ask(message.text))

    @message_handler
    async def on_draft(self, message: Draft, ctx: MessageContext) -> None:
        said = await self.ask(message.text)
        if message.rounds:
            await self.publish_message(Draft(said, message.rounds - 1), DefaultTopicId())


class Boss(Worker):
    """Has workers of two keys do a task each, and asks a model about their drafts."""

    @message_handler
    async def on_task(self, message: Task, ctx: MessageContext) -> Draft:
        sent = [self.send_message(message, AgentId("worker", key)) for key in ("a", "b")]
        drafts = await asyncio.gather(*sent)
        return Draft(await self.ask(f"@say {len(drafts)} drafts."))


async def talk(client: Any) -> str:
    runtime = SingleThreadedAgentRuntime()
    for name in ("ann", "ben"):
        await Worker.register(runtime, name, lambda: Worker(client()))
        await runtime.add_subscription(TypeSubscription("default", name))
    runtime.start()
    await runtime.publish_message(Draft("@say Hm.", rounds=1), DefaultTopicId())
    await runtime.stop_when_idle()
    return "done"


async def delegate(client: Any) -> str:
    runtime = SingleThreadedAgentRuntime()
    await Worker.register(runtime, "worker", lambda: Worker(client()))
    await Boss.register(runtime, "boss", lambda: Boss(client()))
    runtime.start()
    tasks = [runtime.send_message(Task(f"@say {n}."), AgentId("boss", "default")) for n in (1, 2)]
    drafts = await asyncio.gather(*tasks)
    await runtime.stop()
    return str(drafts)


async def hand_over(client: Any, text: str, kind: str) -> None:
    """Give a worker a text, and wait until it is done."""
    handled = asyncio.Event()

    class Waking(Worker):
        @message_handler
        async def on_draft(self, message: Draft, ctx: MessageContext) -> None:
            await self.ask(message.text)
            handled.set()

    runtime = SingleThreadedAgentRuntime()
    await Waking.register(runtime, "worker", lambda: Waking(client()))
    await runtime.add_subscription(TypeSubscription("default", "worker"))
    runtime.start()
    if kind == "sent":
        await runtime.send_message(Task(text), AgentId("worker", "default"))
    else:
        await runtime.publish_message(Draft(text), DefaultTopicId())
        await (handled.wait() if kind == "awaited" else runtime.stop_when_idle())


def test_a_sent_message_is_in_the_step_of_its_sender(
    client: Call, twice: Call, paths: Call, tape: Path
) -> None:
    """The sender waits for the response. Agents of several keys have their own names."""
    recorded, again = twice(lambda: asyncio.run(delegate(client)))
    assert recorded == again
    boss = "message:Task ▸ agent:boss"
    inner = [f"{boss} ▸ message:Task ▸ agent:worker/{key} ▸ {MODEL}" for key in ("a", "b")]
    assert sorted(paths()) == sorted([*inner, f"{boss} ▸ {MODEL}"] * 2)
    with tracefork.Tape.open(tape) as opened:
        ends = [step.detail for step in opened.steps if step.kind == "message"]
    assert ends[:2] == [{"to": "boss"}] * 2
    assert {"from": "boss", "to": "worker/a"} in ends


def test_a_published_message_comes_after_its_sender(
    client: Call, twice: Call, paths: Call, causes: Call
) -> None:
    """It is beside the message before it: a long talk is not a deep one."""
    twice(lambda: asyncio.run(talk(client)))
    assert sorted(paths()) == sorted(
        [f"message:Draft ▸ agent:{name} ▸ {MODEL}" for name in ("ann", "ben")] * 2
    )
    assert sorted(causes()) == [("Draft", ["ann"]), ("Draft", ["ben"])]


def test_a_message_is_a_fork_point(client: Call, tape: Path) -> None:
    """`message:Draft:2` is the second one: what was asked before it is replayed."""
    with tracefork.record(tape):
        asyncio.run(talk(client))
    with tracefork.fork(tape, "message:Draft:2") as forked:
        asyncio.run(talk(client))
    assert (forked.replayed, forked.live) == (2, 2)


def test_lanes_are_named_after_agents_without_ids(client: Call, twice: Call, tape: Path) -> None:
    """Keys of topics are often uuids, and the names of two runs are to be alike."""
    topic = "8a2a4f8e-3c1d-4f6a-9d0b-6a1f2e3d4c5b"

    async def run() -> None:
        runtime = SingleThreadedAgentRuntime()
        await Worker.register(runtime, f"ann_{topic}", lambda: Worker(client()))
        await runtime.add_subscription(TypeSubscription("default", f"ann_{topic}"))
        runtime.start()
        await runtime.publish_message(Draft("@say Hm."), DefaultTopicId(source=topic))
        await runtime.stop_when_idle()

    twice(lambda: asyncio.run(run()))
    with tracefork.Tape.open(tape) as opened:
        assert [exchange.lane.partition("/")[0] for exchange in opened.exchanges] == ["main.ann.1"]


def test_a_runtime_that_was_started_before_the_session_is_recorded(
    client: Call, tape: Path, paths: Call, server: ProviderServer
) -> None:
    """A service starts its runtime once, and records one request after another."""

    async def serve(session: Any) -> tuple[str, str]:
        runtime = SingleThreadedAgentRuntime()
        await Worker.register(runtime, "worker", lambda: Worker(client()))
        runtime.start()
        with session:
            tasks = [
                runtime.send_message(Task("@say Hm."), AgentId("worker", "default"))
                for _ in range(2)
            ]
            said = [draft.text for draft in await asyncio.gather(*tasks)]
        await runtime.stop()
        return said[0], said[1]

    recorded = asyncio.run(serve(tracefork.record(tape)))
    server.stop()
    assert asyncio.run(serve(tracefork.replay(tape, strict=True))) == recorded
    assert paths() == [f"message:Task ▸ agent:worker ▸ {MODEL}"] * 2


def test_an_agent_made_of_a_function_is_an_agent(client: Call, twice: Call, paths: Call) -> None:
    """A `ClosureAgent` often collects the results."""
    collected: list[str] = []

    async def collect(context: ClosureContext, message: Draft, ctx: MessageContext) -> None:
        answer = await client().create([UserMessage(content=message.text, source="user")])
        collected.append(str(answer.content))

    async def run() -> None:
        runtime = SingleThreadedAgentRuntime()
        subscriptions = lambda: [DefaultSubscription()]  # noqa: E731
        await ClosureAgent.register_closure(
            runtime, "collector", collect, subscriptions=subscriptions
        )
        runtime.start()
        await runtime.publish_message(Draft("@say Hm."), DefaultTopicId())
        await runtime.stop_when_idle()

    twice(lambda: asyncio.run(run()))
    assert collected[0] == collected[1]
    assert paths() == [f"message:Draft ▸ agent:collector ▸ {MODEL}"]


@pytest.mark.parametrize("kind", ["sent", "published", "awaited"])
def test_a_divergence_in_a_handler_ends_the_program(
    client: Call, tape: Path, server: ProviderServer, kind: str, caplog: pytest.LogCaptureFixture
) -> None:
    """A runtime only logs the errors of subscribers, and a program may wait for one of them.

    The log would have a traceback through all of AutoGen, above the one line that differs.
    """
    with tracefork.record(tape):
        asyncio.run(hand_over(client, "@say One.", kind))

    def diverge() -> None:
        with tracefork.replay(tape):
            try:
                asyncio.run(asyncio.wait_for(hand_over(client, "@say Two.", kind), 5))
            except TimeoutError:
                hung.append(kind)  # The session raises its own error instead.
                raise

    hung: list[str] = []
    with pytest.raises(tracefork.DivergenceError):
        diverge()
    assert hung == []
    assert len(server.requests) == 1
    assert [one for one in caplog.records if one.exc_info and "autogen" in one.name] == []


def test_other_errors_of_handlers_are_logged(caplog: pytest.LogCaptureFixture, tape: Path) -> None:
    """The control: a runtime says what goes wrong in the program."""

    class Failing(RoutedAgent):
        @message_handler
        async def on_draft(self, message: Draft, ctx: MessageContext) -> None:
            raise ValueError("no")

    async def run() -> None:
        runtime = SingleThreadedAgentRuntime()
        await Failing.register(runtime, "worker", lambda: Failing("Fails."))
        await runtime.add_subscription(TypeSubscription("default", "worker"))
        runtime.start()
        await runtime.publish_message(Draft("Hm."), DefaultTopicId())
        await runtime.stop_when_idle()

    with tracefork.record(tape):
        asyncio.run(run())
    assert len([one for one in caplog.records if one.exc_info and "autogen" in one.name]) == 1


_CORE_ONLY = """
import sys
import tracefork_core as tracefork
import autogen_core
with tracefork.record(sys.argv[1]):
    runtime = autogen_core.SingleThreadedAgentRuntime()
print([name for name in sys.modules if name.startswith("autogen_agentchat")])
"""


@pytest.mark.many_processes
def test_a_program_of_autogen_core_never_loads_agentchat(tape: Path) -> None:
    """It takes long to load, and need not be installed with a program's own agents."""
    words = [sys.executable, "-c", _CORE_ONLY, str(tape)]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"
