"""A run continues from any fork point: what came before is proven, what comes after is live."""

from __future__ import annotations

import asyncio
import shutil
from pathlib import Path

import httpx2
import pytest

from tracefork_core import (
    DivergenceError,
    Drop,
    Edit,
    Fail,
    Keep,
    Replace,
    Tape,
    UsageError,
    WriteError,
    fork,
    record,
    replay,
)
from tracefork_core.session.interventions import Intervention
from tracefork_testkit import ModelRequest, ProviderServer, Reply

from .agent import WAYS, Moody, ask, run


@pytest.mark.parametrize("way", WAYS)
def test_a_fork_replays_the_prefix_and_runs_the_rest_live(
    tape: Path, url: str, moody: Moody, way: str
) -> None:
    """Forked at 1: 0 is from the tape, 1 is given, 2 is live; all are on the branch."""
    with record(tape):
        assert run(url, way) == ["answer 1", "answer 2", "answer 3"]
    with fork(tape, at=1, replace="something else") as branch:
        assert run(url, way) == ["answer 1", "something else", "answer 4"]
    assert moody.asked[3:] == ["question 2 after answer 1 and something else"]
    assert (branch.replayed, branch.given, branch.live) == (1, 1, 1)
    with replay(branch.path) as again:
        assert run(url, way) == ["answer 1", "something else", "answer 4"]
    assert again.digest == branch.digest
    assert len(moody.asked) == 4


def test_a_fork_without_a_change_repeats_the_call_live(tape: Path, url: str) -> None:
    """The same request is sent again, and everything that follows from it."""
    with record(tape):
        run(url)
    for at, expected in [(0, 3), (1, 2), (3, 0)]:
        with fork(tape, at=at) as branch:
            run(url)
        assert (branch.replayed, branch.live) == (3 - expected, expected)


def test_a_changed_request_before_the_fork_point_diverges(tape: Path, url: str) -> None:
    """The negative control: one changed byte of a prompt, and nothing is forked."""
    with record(tape):
        run(url)
    with pytest.raises(DivergenceError, match="exchange 0"), fork(tape, at=1, replace="x"):
        ask(url, "question 0 after!")


def test_a_changed_request_at_the_fork_point_diverges(tape: Path, url: str) -> None:
    """Nothing was changed before it, so the request there must equal the recorded one."""
    with record(tape):
        run(url)

    def agent() -> None:
        ask(url, "question 0 after ")
        ask(url, "question 1 after something else")

    with pytest.raises(DivergenceError, match="exchange 1"), fork(tape, at=1, replace="x"):
        agent()


def test_another_endpoint_at_the_fork_point_diverges(tape: Path, url: str, moody: Moody) -> None:
    """The run is not at the fork point there, and a live call would be paid for without use."""
    with record(tape):
        run(url)

    def agent() -> None:
        ask(url, "question 0 after ")
        httpx2.get(f"{url}/echo")

    with pytest.raises(DivergenceError, match="exchange 1") as caught, fork(tape, at=1):
        agent()
    assert caught.value.divergence.pointer == "method"
    assert len(moody.asked) == 3
    with fork(tape, at=3) as branch:
        run(url)
        httpx2.get(f"{url}/echo")
    assert branch.live == 1


def test_a_fork_point_that_is_never_reached_diverges(tape: Path, url: str) -> None:
    """An agent that ends just before the fork point was not forked."""
    with record(tape):
        run(url)
    with pytest.raises(DivergenceError, match="#1"), fork(tape, at=1):
        ask(url, "question 0 after ")


def test_until_ends_the_fork(tape: Path, url: str, moody: Moody) -> None:
    """After that exchange the next call raises, and the block ends without an error."""
    with record(tape):
        run(url)
    with fork(tape, at=1, until=1) as branch:
        run(url)
        pytest.fail("it went on")
    assert (branch.live, len(moody.asked)) == (1, 4)
    with Tape.open(branch.path) as written:
        assert len(written.exchanges) == 2


def test_an_incomplete_prefix_diverges(tape: Path, url: str) -> None:
    """An agent that ends before the fork point was not forked."""
    with record(tape):
        run(url)
    with pytest.raises(DivergenceError, match="#1"), fork(tape, at=2):
        ask(url, "question 0 after ")


def test_held_exchanges_keep_their_recorded_answers(tape: Path, url: str, moody: Moody) -> None:
    """That holds after the fork point too, whatever the request is there."""
    with record(tape):
        run(url)
    with fork(tape, at=0, hold=[1]) as branch:
        assert run(url) == ["answer 4", "answer 2", "answer 5"]
    assert (branch.replayed, branch.live) == (1, 2)
    assert moody.asked[-1] == "question 2 after answer 4 and answer 2"
    with Tape.open(branch.path) as written:
        assert [one.aside.answered for one in written.exchanges] == ["", "recorded", ""]


def test_reuse_answers_equal_requests_from_the_tape(tape: Path, url: str, moody: Moody) -> None:
    """Equal requests cost nothing, in any order; changed ones are live."""

    def apart(order: str) -> list[str]:
        first = ask(url, "first")
        return [first, *(ask(url, f"{one} after {first}" if one == "b" else one) for one in order)]

    with record(tape):
        assert apart("abc") == ["answer 1", "answer 2", "answer 3", "answer 4"]
    with fork(tape, at=0, replace="other", reuse=True) as branch:
        assert apart("cba") == ["other", "answer 4", "answer 5", "answer 2"]
    assert (branch.replayed, branch.given, branch.live) == (2, 1, 1)
    with fork(tape, at=1, reuse=True) as again:
        assert apart("abc") == ["answer 1", "answer 6", "answer 3", "answer 4"]
    assert (again.replayed, again.live) == (3, 1)


def test_equal_requests_in_a_loop_keep_their_own_places(tape: Path, url: str) -> None:
    """A later equal call does not take the place of the fork point, nor of a change after it."""

    def thrice() -> list[str]:
        return [ask(url, "the same") for _ in range(3)]

    with record(tape):
        assert thrice() == ["answer 1", "answer 2", "answer 3"]
    with fork(tape, at=0, replace="other", reuse=True):
        assert thrice() == ["other", "answer 2", "answer 3"]
    with fork(tape, at=1, reuse=True) as branch:
        assert thrice() == ["answer 1", "answer 4", "answer 3"]
    assert (branch.replayed, branch.live) == (2, 1)
    with fork(tape, at=0, change={1: Replace("other")}, reuse=True):
        assert thrice() == ["answer 5", "other", "answer 3"]


def test_a_fork_with_only_recorded_answers_equals_a_replay(
    tape: Path, url: str, moody: Moody
) -> None:
    """A forced recorded answer, with the rest held: the same digest and no live call."""
    with record(tape) as recorded:
        run(url)
    with fork(tape, at=1, replace=Keep(), hold=[2]) as branch:
        run(url)
    assert (branch.digest, branch.live, len(moody.asked)) == (recorded.digest, 0, 3)


def test_an_edit_changes_the_request(tape: Path, url: str, moody: Moody) -> None:
    """Another prompt is sent instead of the agent's; the branch replays with the agent's own."""
    with record(tape):
        run(url)
    with fork(tape, at=2, replace=Edit(prompt="never mind", model="other")) as branch:
        assert run(url)[2] == "answer 4"
    assert moody.asked[-1] == "never mind"
    with replay(branch.path):
        assert run(url)[2] == "answer 4"


@pytest.mark.parametrize("way", ["sync", "async", "anthropic"])
def test_fail_injects_an_error_response(tape: Path, url: str, way: str) -> None:
    """The SDK raises its own exception for a 429."""
    with record(tape):
        run(url, way)
    with (
        pytest.raises(Exception, match="slow down") as caught,
        fork(tape, at=1, replace=Fail(status=429, message="slow down")),
    ):
        run(url, way)
    assert type(caught.value).__name__ == "RateLimitError"


def test_fail_injects_an_exception_of_the_http_library(tape: Path, url: str) -> None:
    """The exception is given by its name."""
    with record(tape):
        run(url)
    with (
        pytest.raises(Exception, match="timed out") as caught,
        fork(tape, at=1, replace=Fail(kind="ReadTimeout")),
    ):
        run(url)
    assert type(caught.value).__name__ == "APITimeoutError"


def test_drop_gives_an_empty_answer(tape: Path, url: str) -> None:
    """The model says nothing."""
    with record(tape):
        run(url)
    with fork(tape, at=1, replace=Drop()):
        assert run(url)[1] == ""


def test_a_fork_does_not_repeat_a_side_effect(
    tape: Path, url: str, http: httpx2.Client, provider: ProviderServer
) -> None:
    """A POST that calls no model stops the fork, gets its recorded answer, or is allowed."""

    def agent() -> bytes:
        ask(url, "what now")
        return http.post(f"{provider.url}/echo", content=b"pay 9 euros").content

    with record(tape):
        paid = agent()
    done = len(provider.requests)
    with pytest.raises(WriteError), fork(tape, at=0):
        agent()
    with fork(tape, at=0, writes="stub", to=tape.with_name("stub.tape")):
        assert agent() == paid
    assert len(provider.requests) == done
    with fork(tape, at=0, writes="allow"):
        agent()
    assert len(provider.requests) == done + 1


def test_replace_gives_a_raw_body_or_document(
    tape: Path, http: httpx2.Client, provider: ProviderServer
) -> None:
    """For calls of anything but a model."""
    with record(tape):
        http.get(f"{provider.url}/bytes/4")
    for change, expected in [
        (Replace(body=b"other"), b"other"),
        (Replace(document={"n": 1}), b'{"n": 1}'),
    ]:
        with fork(tape, at=0, replace=change):
            assert http.get(f"{provider.url}/bytes/4").content == expected


def test_replace_checks_its_argument_types() -> None:
    """Bytes as a text, or a text as bytes, fail before anything runs."""
    with pytest.raises(UsageError):
        Replace(b"other")  # type: ignore[arg-type]
    with pytest.raises(UsageError):
        Replace(body="other")  # type: ignore[arg-type]


def test_an_invalid_place_is_a_usage_error(tape: Path, url: str) -> None:
    """After the end, before the fork point, or an unknown step: it fails before anything runs."""
    with record(tape):
        run(url)
    places: list[tuple[int | str, dict[int | str, Intervention], str]] = [
        (4, {}, "exchanges 0 to 2"),
        (2, {1: Keep()}, "exchange 1"),
        ("researcher", {}, "researcher"),
    ]
    for at, change, what in places:
        with pytest.raises(UsageError, match=what), fork(tape, at=at, change=change):
            pytest.fail("it began")
    assert [one.name for one in tape.parent.glob("*.tape")] == [tape.name]


def test_tail_changes_every_live_model_call(tape: Path, provider: ProviderServer) -> None:
    """Given answers and calls of anything but a model stay as they are."""
    with record(tape):
        run(provider.url)
    asked = len(provider.requests)
    with fork(tape, at=1, replace="mine", tail=Edit(model="better")):
        run(provider.url)
    (last,) = provider.requests[asked:]
    assert b'"model":"better"' in last.body.replace(b'": "', b'":"')


def test_a_fork_resumes_a_run_that_was_cut_off(tape: Path) -> None:
    """Forked at the end of its tape, the run repeats no call."""

    def cut_off() -> None:
        for file in list(tape.parent.glob("run.tape*")):
            shutil.copyfile(file, file.with_name(file.name.replace("run", "cut")))

    class Cut(Moody):
        def __call__(self, request: ModelRequest) -> Reply:
            if len(self.asked) == 2:
                cut_off()
            return super().__call__(request)

    with ProviderServer(Cut()) as server:
        url = server.url
        with record(tape):
            run(url)
        with fork(tape.with_name("cut.tape"), at=2) as branch:
            assert run(url) == ["answer 1", "answer 2", "answer 4"]
    assert (branch.replayed, branch.live) == (2, 1)
    with replay(branch.path):
        assert run(url) == ["answer 1", "answer 2", "answer 4"]


def test_until_lets_its_exchange_end_beside_other_tasks(tmp_path: Path) -> None:
    """Else a task that asks meanwhile would stop the run, and the answer would be lost."""
    path = tmp_path / "run.tape"

    async def both() -> None:
        async with httpx2.AsyncClient() as client:

            async def say(*texts: str) -> None:
                for text in texts:
                    messages = [{"role": "user", "content": text}]
                    await client.post(url, json={"model": "m", "messages": messages})

            async with asyncio.TaskGroup() as group:
                group.create_task(say("@slow 0.3\n@say A."))
                group.create_task(say("@say B.", "@say C.", "@say D."))
            await say("@say E.")

    with ProviderServer() as server:
        url = f"{server.url}/v1/chat/completions"
        with record(path):
            asyncio.run(both())
        with fork(path, at=0, until=0) as branch:
            asyncio.run(both())
            pytest.fail("it went on")
    with Tape.open(branch.path) as written:
        assert [one.status for one in written.exchanges] == [200] * 4
