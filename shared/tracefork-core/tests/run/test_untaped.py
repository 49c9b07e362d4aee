"""Tools that ran without being on the tape are known, and do not run again unasked."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

import httpx2
import pytest

from tracefork_core import UsageError, bisect, blame, fork, record, replay, tool
from tracefork_testkit import ProviderServer

from .shopping import Tools, aask_openai, ask_anthropic, ask_openai

PROMPT = '@call charge_card {"euros": 5}\n@then\n@say Paid.'
TWICE = '@call charge_card {"euros": 5}\n@call search {"words": "hat"}\n@then\n@say Done.'


class Bank:
    """A tool with a side effect, that counts its calls."""

    def __init__(self) -> None:
        self.charges = 0

    def charge_card(self, euros: int) -> str:
        """Charge the card."""
        self.charges += 1
        return f"charged {euros}"


@pytest.fixture
def bank() -> Bank:
    return Bank()


@pytest.fixture
def tools(bank: Bank) -> Tools:
    return {"charge_card": bank.charge_card, "search": lambda words: f"no {words}"}


Ask = Callable[[str, str, Tools], str]


def aask(url: str, prompt: str, tools: Tools) -> str:
    """Ask on an event loop."""

    def later(work: Callable[..., object]) -> Callable[..., object]:
        async def do(**arguments: object) -> object:
            return work(**arguments)

        return do

    return asyncio.run(aask_openai(url, prompt, {name: later(tools[name]) for name in tools}))


@pytest.mark.parametrize("ask", [ask_openai, ask_anthropic, aask])
def test_a_recording_knows_the_tools_that_are_not_on_it(
    ask: Ask, tape: Path, provider: ProviderServer, bank: Bank, tools: Tools
) -> None:
    """A replay runs them again, and knows them too."""
    with record(tape) as recording:
        assert ask(provider.url, TWICE, tools) == "Done."
    assert recording.untaped == {"charge_card": 1, "search": 1}
    with replay(tape) as replaying:
        ask(provider.url, TWICE, tools)
    assert replaying.untaped == recording.untaped
    assert bank.charges == 2


def test_a_fork_does_not_run_an_untaped_tool_again(
    tape: Path, provider: ProviderServer, bank: Bank, tools: Tools
) -> None:
    """The refusal names the tool, its calls, and what to type; a fork that may write runs."""
    with record(tape):
        ask_openai(provider.url, PROMPT, tools)
    expected = (
        r"tracefork: 1 tool call ran in your process and is not on the tape: charge_card ×1\. .*"
        r"--allow-writes \(writes='allow'\).*`tracefork record --tool MODULE:charge_card`"
    )
    with pytest.raises(UsageError, match=expected), fork(tape, 1, "Never."):
        ask_openai(provider.url, PROMPT, tools)
    with pytest.raises(UsageError, match="charge_card"), fork(tape, 1, writes="stub"):
        ask_openai(provider.url, PROMPT, tools)
    assert bank.charges == 1
    assert list(tape.parent.glob("*.tape")) == [tape]
    with fork(tape, 1, "Free.", rerun_tools=True):
        assert ask_openai(provider.url, PROMPT, tools) == "Free."
    with fork(tape, 1, "Allowed.", writes="allow"):
        ask_openai(provider.url, PROMPT, tools)
    assert bank.charges == 3


def test_blame_and_bisect_do_not_run_an_untaped_tool_again(
    tape: Path, provider: ProviderServer, bank: Bank, tools: Tools
) -> None:
    """They refuse before anything is spent, also where writes are answered as recorded."""
    with record(tape):
        ask_openai(provider.url, PROMPT, tools)

    def agent() -> str:
        return ask_openai(provider.url, PROMPT, tools)

    asked = len(provider.requests)
    for search in (blame, bisect):
        for writes in ("refuse", "stub"):
            with pytest.raises(UsageError, match="charge_card ×1"):
                search(tape, agent, lambda said: said != "Paid.", writes=writes)
    assert bank.charges == 1
    assert len(provider.requests) == asked
    bisect(tape, agent, lambda said: said != "Paid.", rerun_tools=True)
    assert bank.charges > 1


def test_a_tool_that_is_an_exchange_is_on_the_tape(
    tape: Path, provider: ProviderServer, bank: Bank
) -> None:
    """A fork answers it from the tape; the model may know it by another name."""
    tools = {"charge_card": tool(effect="write")(bank.charge_card)}
    other_name = {"pay": tool(effect="write")(bank.charge_card)}
    with record(tape) as recording:
        ask_openai(provider.url, PROMPT, tools)
        ask_openai(provider.url, PROMPT.replace("charge_card", "pay"), other_name)
    assert recording.untaped == {}
    with fork(tape, 5, "Never mind."):
        ask_openai(provider.url, PROMPT, tools)
        ask_openai(provider.url, PROMPT.replace("charge_card", "pay"), other_name)
    assert bank.charges == 2


def test_one_of_two_calls_of_an_answer_may_be_on_the_tape(
    tape: Path, provider: ProviderServer, bank: Bank, tools: Tools
) -> None:
    """The exchange of one tool is no proof of the other."""
    mixed = {**tools, "search": tool(effect="read", name="search")(tools["search"])}
    with record(tape) as recording:
        ask_openai(provider.url, TWICE, mixed)
    assert recording.untaped == {"charge_card": 1}


def test_a_tool_whose_request_is_on_the_tape_counts_as_taped(
    tape: Path, provider: ProviderServer
) -> None:
    """A replay answers the request, so the function repeats nothing."""

    def charge_card(euros: int) -> str:
        return httpx2.post(f"{provider.url}/echo", content=str(euros).encode()).text

    with record(tape) as recording:
        ask_openai(provider.url, PROMPT, {"charge_card": charge_card})
    assert recording.untaped == {}


def test_a_request_of_every_turn_is_no_proof_of_a_tool(
    tape: Path, provider: ProviderServer, tools: Tools
) -> None:
    """A search that the program makes before each question belongs to no tool."""

    def look_up() -> None:
        httpx2.post(f"{provider.url}/echo", content=b"context")

    def asking(url: str, prompt: str, tools: Tools) -> str:
        def searching(tool: Callable[..., object]) -> Callable[..., object]:
            def run(**arguments: object) -> object:
                result = tool(**arguments)
                look_up()
                return result

            return run

        look_up()
        return ask_openai(url, prompt, {name: searching(tools[name]) for name in tools})

    with record(tape) as recording:
        asking(provider.url, PROMPT, tools)
    assert recording.untaped == {"charge_card": 1}


def test_a_demanded_call_without_a_result_is_an_answer(
    tape: Path, provider: ProviderServer, tools: Tools
) -> None:
    """Structured output comes as a call that nothing runs; a call that was not demanded may run."""

    def ask_once(**asked: object) -> None:
        body = {"model": "m", "messages": [{"role": "user", "content": PROMPT}], **asked}
        httpx2.post(f"{provider.url}/v1/chat/completions", json=body).raise_for_status()

    demand = {"type": "function", "function": {"name": "charge_card"}}
    with record(tape) as recording:
        ask_once(tool_choice=demand)
        ask_once(tool_choice="required")
    assert recording.untaped == {}
    with record(tape, overwrite=True) as recording:
        ask_once(tool_choice="auto")
    assert recording.untaped == {"charge_card": 1}


def test_a_tool_that_ends_the_run_counts(
    tape: Path, provider: ProviderServer, tools: Tools
) -> None:
    """Its result never reached the model, but it ran."""

    def charge_card(euros: int) -> str:
        raise ConnectionError("the bank is closed")

    with pytest.raises(ConnectionError), record(tape) as recording:
        ask_openai(provider.url, PROMPT, {"charge_card": charge_card})
    assert recording.untaped == {"charge_card": 1}


def test_tools_after_the_end_of_a_fork_do_not_count(
    tape: Path, provider: ProviderServer, bank: Bank, tools: Tools
) -> None:
    """A fork that ends before the answer which calls the tool may run."""
    with record(tape):
        ask_openai(provider.url, "@say Hello.", tools)
        ask_openai(provider.url, PROMPT, tools)
    with fork(tape, 0, "Hi.", until=0):
        ask_openai(provider.url, "@say Hello.", tools)
    assert bank.charges == 1
