"""A replay may count other tokens than the recorded run, or none: it is the same run."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import anthropic
import httpx2
import openai
import pytest

from tracefork_core import DivergenceError, Fail, Tape, fork, record, replay
from tracefork_testkit import ProviderServer

COUNT, CHAT = "/v1/messages/count_tokens", "/v1/messages"


def body(text: str) -> dict[str, Any]:
    return {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": text}]}


class Agent:
    """Follows a script: "count one" counts tokens, "ask one" calls the model; keeps each status."""

    def __init__(self, http: httpx2.Client, url: str) -> None:
        self._http = http
        self._url = url

    def __call__(self, *words: str) -> list[int]:
        return [self._do(*word.split()) for word in words]

    def _do(self, verb: str, text: str) -> int:
        path = COUNT if verb == "count" else CHAT
        return self._http.post(self._url + path, json=body(text)).status_code


@pytest.fixture
def agent(http: httpx2.Client, provider: ProviderServer) -> Agent:
    return Agent(http, provider.url)


RECORDED = ("count one", "ask one", "count two", "ask two")


@pytest.fixture
def recorded(tape: Path, agent: Agent) -> Path:
    """Record two model calls, each after a token count."""
    with record(tape):
        assert agent(*RECORDED) == [200] * 4
    return tape


def test_token_counts_are_recorded_as_auxiliary(recorded: Path, agent: Agent) -> None:
    """A replay that repeats them is bit for bit the same."""
    with Tape.open(recorded) as tape:
        assert [exchange.is_auxiliary for exchange in tape.exchanges] == [True, False, True, False]
    with replay(recorded) as run:
        assert agent(*RECORDED) == [200] * 4
    assert run.digest == run.tape.digest
    assert (run.exchanges, run.auxiliary_misses, run.auxiliary_left) == (4, 0, 0)


@pytest.mark.parametrize(
    ("words", "statuses", "exchanges", "left", "misses"),
    [
        (("ask one", "ask two"), [200, 200], 2, 2, 0),
        (("ask one", "count two", "ask two"), [200] * 3, 3, 1, 0),
        (("ask one", "count two", "ask two", "count one"), [200] * 4, 4, 0, 0),
        ((*RECORDED, "count two"), [200] * 4 + [400], 4, 0, 1),
        (("count three", "ask one", "ask two"), [400, 200, 200], 2, 2, 1),
    ],
    ids=["none", "fewer", "another order", "more", "others"],
)
def test_other_token_counts_do_not_diverge(
    recorded: Path,
    agent: Agent,
    words: tuple[str, ...],
    statuses: list[int],
    exchanges: int,
    left: int,
    misses: int,
) -> None:
    """Counts on the tape are answered and others refused; the replay counts both."""
    with replay(recorded) as run:
        assert agent(*words) == statuses
    assert (run.exchanges, run.auxiliary_left, run.auxiliary_misses) == (exchanges, left, misses)
    assert (run.digest == run.tape.digest) is (left == 0)


@pytest.mark.parametrize(
    ("words", "kind"),
    [
        (("count one", "ask one", "count two", "ask three"), "request"),
        (("count one", "ask one", "count two"), "leftover"),
        ((*RECORDED, "ask two"), "extra"),
        (("count one", "ask one", "count two", "ask one"), "request"),
    ],
)
def test_ordinary_exchanges_still_diverge(
    recorded: Path, agent: Agent, words: tuple[str, ...], kind: str
) -> None:
    """The negative control: a changed call, a missing one, an extra one, a repeated one."""
    with pytest.raises(DivergenceError) as raised, replay(recorded):
        agent(*words)
    assert raised.value.divergence.kind == kind


def test_a_refused_count_is_not_retried_and_does_not_poison(
    recorded: Path, provider: ProviderServer, agent: Agent
) -> None:
    """SDKs raise their usual error after one attempt, and the run continues."""
    claude = anthropic.Anthropic(base_url=provider.url, api_key="none")
    gpt = openai.OpenAI(base_url=f"{provider.url}/v1", api_key="none")
    with replay(recorded) as run:
        with pytest.raises(anthropic.BadRequestError, match="count_tokens"):
            claude.messages.count_tokens(model="m", messages=[{"role": "user", "content": "hm"}])
        with pytest.raises(openai.BadRequestError, match="input_tokens"):
            gpt.responses.input_tokens.count(model="m", input="hm")
        agent("ask one", "ask two")
    assert run.auxiliary_misses == 2


def test_every_seam_refuses_an_unknown_count(
    provider: ProviderServer, recorded: Path, agent: Agent
) -> None:
    """On an event loop too, as a response of the library that sent the request."""
    import aiohttp

    async def count() -> tuple[int, str]:
        async with (
            aiohttp.ClientSession() as client,
            client.post(provider.url + COUNT, json=body("hm")) as got,
        ):
            return got.status, (await got.json())["error"]["type"]

    with replay(recorded):
        assert asyncio.run(count()) == (400, "tracefork_not_held")
        agent("ask one", "ask two")


def in_threads(agent: Callable[..., object], parts: Sequence[tuple[str, ...]]) -> None:
    threads = [threading.Thread(target=agent, args=part) for part in parts]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def test_threads_do_not_wait_for_a_missing_count(tape: Path, agent: Agent) -> None:
    """Deliveries keep their recorded order, and the turn of a missing count is skipped."""
    parts = [("count a", "ask a", "count b", "ask b"), ("count c", "ask c", "count d", "ask d")]
    with record(tape):
        in_threads(agent, parts)
    with replay(tape) as run:
        in_threads(agent, [tuple(word for word in part if "ask" in word) for part in parts])
    assert (run.exchanges, run.auxiliary_left, run.reordered) == (4, 4, 0)


async def test_tasks_do_not_wait_for_a_missing_count(tape: Path, provider: ProviderServer) -> None:
    """Two tasks counted in the recording and do not count now."""

    async def asking(client: httpx2.AsyncClient, text: str, *, counts: bool) -> None:
        for path in (COUNT, CHAT) if counts else (CHAT,):
            await client.post(provider.url + path, json=body(text))

    async def run(*, counts: bool) -> None:
        async with httpx2.AsyncClient(verify=False) as client:
            texts = ("a", "b", "c")
            await asyncio.gather(*(asking(client, text, counts=counts) for text in texts))

    async with record(tape):
        await run(counts=True)
    async with replay(tape) as replayed:
        await run(counts=False)
    assert (replayed.exchanges, replayed.auxiliary_left) == (3, 3)


def test_a_fork_counts_live_after_its_fork_point(
    recorded: Path, agent: Agent, provider: ProviderServer
) -> None:
    """Before it, a count is answered from the tape or refused."""
    before = len(provider.requests)
    with fork(recorded, at=3) as branch:
        said = agent("count three", "ask one", "count two", "ask two", "count three")
    assert said == [400, 200, 200, 200, 200]
    assert [request.path for request in provider.requests[before:]] == [CHAT, COUNT]
    with Tape.open(branch.path) as tape:
        assert [exchange.is_auxiliary for exchange in tape.exchanges][3:] == [False, True]


def test_counts_do_not_use_up_the_limit_of_live_calls(recorded: Path, agent: Agent) -> None:
    """`calls` limits the calls of a model."""
    with fork(recorded, at=1, calls=2) as branch:
        agent("count one", "ask one", "count two", "count three", "ask two")
    assert not branch.overspent


def test_a_run_can_be_forked_at_a_count(recorded: Path, agent: Agent) -> None:
    """If the agent does not count there, the change has no effect, and the fork fails."""
    with fork(recorded, 2, Fail(429)) as branch:
        assert agent(*RECORDED) == [200, 200, 429, 200]
    assert (branch.replayed, branch.given, branch.live) == (2, 1, 1)
    with pytest.raises(DivergenceError, match="#"):
        with fork(recorded, 2, Fail(429)):
            agent("ask one", "ask two")
    with fork(recorded, 2):
        agent("ask one", "ask two")


PRICES = (
    "https://raw.githubusercontent.com/BerriAI/litellm/main/model_prices_and_context_window.json"
)


def test_a_download_of_prices_is_auxiliary(
    tape: Path, tmp_path: Path, provider: ProviderServer, agent: Agent
) -> None:
    """LiteLLM downloads them only where it is first imported, and handles a refusal."""
    bare = tmp_path / "bare.tape"
    with provider.real_hosts("raw.githubusercontent.com"):
        with record(tape):
            fetched = httpx2.get(PRICES)
            agent("ask one")
        with record(bare):
            agent("ask one")
    with replay(tape) as run:
        again = httpx2.get(PRICES)
        agent("ask one")
    assert (again.status_code, again.content) == (fetched.status_code, fetched.content)
    assert run.digest == run.tape.digest
    with replay(tape) as run:
        agent("ask one")
    assert (run.exchanges, run.auxiliary_left) == (1, 1)
    with replay(bare) as run:
        assert httpx2.get(PRICES).status_code == 400
        agent("ask one")
    assert (run.exchanges, run.auxiliary_misses) == (1, 1)
