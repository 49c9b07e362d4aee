"""A run goes on from any point: what came before is proven, what comes after is live."""

from __future__ import annotations

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
def test_what_comes_before_is_free_and_what_comes_after_is_live(
    tape: Path, url: str, moody: Moody, way: str
) -> None:
    """Forked at 1 with another answer: 0 from the tape, 1 as given, 2 live, all on the branch."""
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


def test_a_fork_without_a_change_asks_again(tape: Path, url: str) -> None:
    """The same question once more, live, and all that follows from it."""
    with record(tape):
        run(url)
    for at, expected in [(0, 3), (1, 2), (3, 0)]:
        with fork(tape, at=at) as branch:
            run(url)
        assert (branch.replayed, branch.live) == (3 - expected, expected)


def test_a_prefix_that_is_not_asked_as_recorded_diverges(tape: Path, url: str) -> None:
    """The negative control: one byte of a prompt before the fork point, and nothing is forked."""
    with record(tape):
        run(url)
    with pytest.raises(DivergenceError, match="exchange 0"), fork(tape, at=1, replace="x"):
        ask(url, "question 0 after!")


def test_a_fork_point_that_is_asked_otherwise_diverges(tape: Path, url: str) -> None:
    """Nothing was changed before it, so the question there is the recorded one."""
    with record(tape):
        run(url)

    def agent() -> None:
        ask(url, "question 0 after ")
        ask(url, "question 1 after something else")

    with pytest.raises(DivergenceError, match="exchange 1"), fork(tape, at=1, replace="x"):
        agent()


def test_another_endpoint_at_the_fork_point_diverges(tape: Path, url: str, moody: Moody) -> None:
    """It is not where the fork was to be made, and to go on live would be paid for in vain."""
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


def test_a_fork_point_that_is_not_reached_diverges(tape: Path, url: str) -> None:
    """An agent that ends just before the fork point was not forked, either."""
    with record(tape):
        run(url)
    with pytest.raises(DivergenceError, match="never asked for: #1"), fork(tape, at=1):
        ask(url, "question 0 after ")


def test_a_fork_ends_where_it_is_told_to(tape: Path, url: str, moody: Moody) -> None:
    """After the exchange it was made for: what is asked then raises, and the block just ends."""
    with record(tape):
        run(url)
    with fork(tape, at=1, until=1) as branch:
        run(url)
        pytest.fail("it went on")
    assert (branch.live, len(moody.asked)) == (1, 4)
    with Tape.open(branch.path) as written:
        assert len(written.exchanges) == 2


def test_a_prefix_that_is_not_asked_whole_diverges(tape: Path, url: str) -> None:
    """An agent that ends before the fork point was not forked."""
    with record(tape):
        run(url)
    with pytest.raises(DivergenceError, match="never asked for"), fork(tape, at=2):
        ask(url, "question 0 after ")


def test_a_set_of_exchanges_is_held(tape: Path, url: str, moody: Moody) -> None:
    """What is held after the fork point is answered as recorded, whatever is asked there."""
    with record(tape):
        run(url)
    with fork(tape, at=0, hold=[1]) as branch:
        assert run(url) == ["answer 4", "answer 2", "answer 5"]
    assert (branch.replayed, branch.live) == (1, 2)
    assert moody.asked[-1] == "question 2 after answer 4 and answer 2"
    with Tape.open(branch.path) as written:
        assert [one.aside.answered for one in written.exchanges] == ["", "recorded", ""]


def test_what_does_not_depend_on_the_change_is_free(tape: Path, url: str, moody: Moody) -> None:
    """Asked as it was recorded, it is answered so, wherever it comes; what is changed is not."""

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


def test_what_asks_the_same_as_the_fork_point_does_not_answer_for_it(tape: Path, url: str) -> None:
    """In a loop each call has its own place, what is changed behind the fork point too."""

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


def test_a_placebo_is_a_replay(tape: Path, url: str, moody: Moody) -> None:
    """The recorded answer given by force, and all after it held: the same digest, no live call."""
    with record(tape) as recorded:
        run(url)
    with fork(tape, at=1, replace=Keep(), hold=[2]) as branch:
        run(url)
    assert (branch.digest, branch.live, len(moody.asked)) == (recorded.digest, 0, 3)


def test_the_question_is_changed(tape: Path, url: str, moody: Moody) -> None:
    """Another prompt goes out in place of the agent's; the branch replays with the agent's own."""
    with record(tape):
        run(url)
    with fork(tape, at=2, replace=Edit(prompt="never mind", model="other")) as branch:
        assert run(url)[2] == "answer 4"
    assert moody.asked[-1] == "never mind"
    with replay(branch.path):
        assert run(url)[2] == "answer 4"


@pytest.mark.parametrize("way", ["sync", "async", "anthropic"])
def test_an_error_is_injected(tape: Path, url: str, way: str) -> None:
    """A 429 of the provider's, as its SDK raises it."""
    with record(tape):
        run(url, way)
    with (
        pytest.raises(Exception, match="slow down") as caught,
        fork(tape, at=1, replace=Fail(status=429, message="slow down")),
    ):
        run(url, way)
    assert type(caught.value).__name__ == "RateLimitError"


def test_a_timeout_is_injected(tape: Path, url: str) -> None:
    """An exception of the HTTP library, by its name."""
    with record(tape):
        run(url)
    with (
        pytest.raises(Exception, match="timed out") as caught,
        fork(tape, at=1, replace=Fail(kind="ReadTimeout")),
    ):
        run(url)
    assert type(caught.value).__name__ == "APITimeoutError"


def test_nothing_is_said(tape: Path, url: str) -> None:
    """An answer is left out: the model says nothing."""
    with record(tape):
        run(url)
    with fork(tape, at=1, replace=Drop()):
        assert run(url)[1] == ""


def test_a_write_is_not_done_twice(
    tape: Path, url: str, http: httpx2.Client, provider: ProviderServer
) -> None:
    """A POST that asks no model stops the fork, is answered as recorded, or is allowed."""

    def agent() -> bytes:
        ask(url, "what now")
        return http.post(f"{provider.url}/echo", content=b"pay 9 euros").content

    with record(tape):
        paid = agent()
    done = len(provider.requests)
    with pytest.raises(WriteError, match="may change the world"), fork(tape, at=0):
        agent()
    with fork(tape, at=0, writes="stub", to=tape.with_name("stub.tape")):
        assert agent() == paid
    assert len(provider.requests) == done
    with fork(tape, at=0, writes="allow"):
        agent()
    assert len(provider.requests) == done + 1


def test_a_bare_body_is_replaced(tape: Path, http: httpx2.Client, provider: ProviderServer) -> None:
    """What asks no model gets bytes, or a document."""
    with record(tape):
        http.get(f"{provider.url}/bytes/4")
    for change, expected in [
        (Replace(body=b"other"), b"other"),
        (Replace(document={"n": 1}), b'{"n": 1}'),
    ]:
        with fork(tape, at=0, replace=change):
            assert http.get(f"{provider.url}/bytes/4").content == expected


def test_a_replacement_of_another_kind_is_refused_where_it_is_written() -> None:
    """Bytes for a text, a text for bytes: before anything runs, and with the word to use."""
    with pytest.raises(UsageError, match=r"a text, and not bytes: Replace\(body=…\)"):
        Replace(b"other")  # type: ignore[arg-type]
    with pytest.raises(UsageError, match=r"Replace\(body=…\) takes bytes, and not str"):
        Replace(body="other")  # type: ignore[arg-type]


def test_a_place_that_is_none_is_refused(tape: Path, url: str) -> None:
    """Beyond the end, before the fork point, by a name that no step has: told before anything."""
    with record(tape):
        run(url)
    places: list[tuple[int | str, dict[int | str, Intervention], str]] = [
        (4, {}, "exchanges 0 to 2"),
        (2, {1: Keep()}, "nothing to change at exchange 1"),
        ("researcher", {}, "no step 'researcher'"),
    ]
    for at, change, what in places:
        with pytest.raises(UsageError, match=what), fork(tape, at=at, change=change):
            pytest.fail("it began")
    assert [one.name for one in tape.parent.glob("*.tape")] == [tape.name]


def test_all_that_is_live_is_asked_otherwise(tape: Path, provider: ProviderServer) -> None:
    """Another model from the fork point on; what is given or asks no model stays as it is."""
    with record(tape):
        run(provider.url)
    asked = len(provider.requests)
    with fork(tape, at=1, replace="mine", tail=Edit(model="better")):
        run(provider.url)
    (last,) = provider.requests[asked:]
    assert b'"model":"better"' in last.body.replace(b'": "', b'":"')


def test_a_run_that_was_cut_off_goes_on(tape: Path) -> None:
    """Forked where it was cut off, nothing that was paid for is paid for again."""

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
