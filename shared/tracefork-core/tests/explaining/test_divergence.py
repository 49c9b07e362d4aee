"""A divergence describes where the run left its tape: exchange, step, line, pointer and values."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx2
import pytest

from tracefork_core import DivergenceError, record, replay
from tracefork_core.adapters import begin_step, end_step
from tracefork_core.errors import Divergence
from tracefork_core.exchange.current import current_step
from tracefork_testkit import ProviderServer

Post = Callable[..., object]


@pytest.fixture
def post(provider: ProviderServer, http: httpx2.Client) -> Post:
    """Post JSON to the echo."""
    return lambda body, **more: http.post(f"{provider.url}/echo", json=body, **more)


def diverge(tape: Path, run: Callable[[], object], *, match: tuple[str, ...] = ()) -> Divergence:
    def under_replay() -> None:
        with replay(tape, match=match):
            run()

    with pytest.raises(DivergenceError) as raised:
        under_replay()
    return raised.value.divergence


@pytest.mark.parametrize(
    ("recorded", "now", "pointer", "shown"),
    [
        ({"a": 1}, {"a": 2}, "/a", ("1", "2")),
        ({"a": [{"b": "x"}]}, {"a": [{"b": "y"}]}, "/a/0/b", ("x", "y")),
        ({"a/b": {"c~d": 1}}, {"a/b": {"c~d": 2}}, "/a~1b/c~0d", ("1", "2")),
        ({"": {"": 1}}, {"": {"": 2}}, "//", ("1", "2")),
        ({"a": [1, 2]}, {"a": [1]}, "/a/1", ("2", "—")),
        ({"a": 1}, {"a": 1, "b": {"c": [1]}}, "/b", ("—", '{"c": [1]}')),
        ({"a": None}, {"a": "None"}, "/a", ("null", '"None"')),
        ([1], {"a": 1}, "", ("[1]", '{"a": 1}')),
        ({"a": True}, {"a": 1}, "/a", ("true", "1")),
        ({"a": 1}, {"a": 1.0}, "/a", ("1", "1.0")),
    ],
)
def test_the_first_difference_is_a_json_pointer(
    tape: Path, post: Post, recorded: Any, now: Any, pointer: str, shown: tuple[str, str]
) -> None:
    """As in RFC 6901, with ~ and / escaped; both values are shown as JSON."""
    with record(tape):
        post(recorded)
    card = diverge(tape, lambda: post(now))
    assert (card.kind, card.pointer) == ("request", pointer)
    assert (card.recorded, card.actual) == shown


def test_long_values_are_cut_to_the_text_around_the_difference(tape: Path, post: Post) -> None:
    """A change deep inside a long prompt is shown with a few words before and after it."""
    with record(tape):
        post({"prompt": "start " + "x" * 5000 + " the sky is blue " + "y" * 5000})
    card = diverge(
        tape, lambda: post({"prompt": "start " + "x" * 5000 + " the sky is grey " + "y" * 5000})
    )
    assert card.pointer == "/prompt"
    assert card.recorded is not None
    assert card.actual is not None
    assert "the sky is blue" in card.recorded
    assert "the sky is grey" in card.actual
    assert len(card.recorded) <= 62
    assert card.recorded[0] == card.recorded[-1] == "…"


def test_a_body_that_is_not_json_is_shown_as_text(tape: Path, provider: ProviderServer) -> None:
    """It is cut around the first difference, however large it is."""
    body = b"\xff" * 3_000_000 + b" tail"
    with httpx2.Client(verify=False) as http:
        with record(tape):
            http.post(f"{provider.url}/echo", content=body)
        card = diverge(tape, lambda: http.post(f"{provider.url}/echo", content=body[:-1] + b"L"))
    assert card.pointer == "body"
    assert (card.recorded or "").endswith(" tail")
    assert (card.actual or "").endswith(" taiL")


@pytest.mark.parametrize(
    ("changed", "pointer"),
    [
        ({"method": "PUT"}, "method"),
        ({"url": "/echo?x=2"}, "url"),
        ({"headers": {"accept": "new"}}, "headers/accept"),
        ({"headers": {"openai-beta": "new"}}, "headers/openai-beta"),
    ],
)
def test_a_difference_outside_the_body_is_named(
    tape: Path, provider: ProviderServer, http: httpx2.Client, changed: Any, pointer: str
) -> None:
    """Method, URL and headers have names in place of a pointer."""

    def ask(method: str = "POST", url: str = "/echo?x=1", **more: Any) -> None:
        http.request(method, f"{provider.url}{url}", json={}, **more)

    with record(tape):
        ask()
    assert diverge(tape, lambda: ask(**changed)).pointer == pointer


def test_deeply_nested_json_has_a_card(
    tape: Path, provider: ProviderServer, http: httpx2.Client
) -> None:
    """Comparison stops at a depth where no recursion limit is near."""

    def nested(leaf: int) -> bytes:
        return b'{"a":' * 400 + str(leaf).encode() + b"}" * 400

    with record(tape):
        http.post(f"{provider.url}/echo", content=nested(1))
    card = diverge(tape, lambda: http.post(f"{provider.url}/echo", content=nested(2)))
    assert (card.pointer or "").startswith("/a/a/a")


def test_the_card_names_the_exchange_the_step_and_the_line(
    tape: Path, post: Post, provider: ProviderServer, http: httpx2.Client
) -> None:
    """With the number of exchanges and the line of the user's code that made the request."""
    with record(tape):
        agent = begin_step("agent", "researcher")
        model = begin_step("model", "gpt", parent=agent)
        token = current_step.set(model)
        for n in range(3):
            post({"n": n})
        current_step.reset(token)
        end_step(model)

    def run() -> None:
        post({"n": 0})
        http.post(f"{provider.url}/echo", json={"n": 9})

    line = inspect.getsourcelines(run)[1] + 2
    card = diverge(tape, run)
    assert (card.n, card.of, card.step) == (1, 3, "researcher ▸ gpt")
    assert card.caller == f"test_divergence.py:{line}"
    assert card.where == f"after 1 of 3 exchanges · step researcher ▸ gpt · {card.caller}"
    assert (card.tape, card.request) == (str(tape), f"POST {provider.url}/echo")


@pytest.mark.parametrize(
    ("module", "place"), [("tracefork_desk.calls", "test_divergence.py"), ("desk", "calls.py")]
)
def test_an_adapter_is_not_user_code(
    tape: Path, http: httpx2.Client, provider: ProviderServer, module: str, place: str
) -> None:
    """Its module name decides, not its folder; a module of another name is user code."""
    names: dict[str, Any] = {"__name__": module, "http": http, "url": provider.url}
    exec(compile("def ask(n): http.post(url, json=n)", "/src/calls.py", "exec"), names)
    with record(tape):
        names["ask"](1)
    card = diverge(tape, lambda: names["ask"](2))
    assert (card.caller or "").partition(":")[0] == place


def test_the_nearest_exchanges_are_ranked_with_reasons(tape: Path, post: Post) -> None:
    """The closest exchange comes first, each with its differences."""
    with record(tape):
        post({"a": 1, "b": 1, "c": 1})
        post({"a": 1, "b": 2, "c": 3})
        post({"a": 1, "b": 2, "c": 4, "d": 5})
        post({"x": 1})
    card = diverge(tape, lambda: post({"a": 1, "b": 2, "c": 9}))
    assert [candidate.n for candidate in card.candidates] == [1, 0, 2]
    assert card.candidates[0].reason == "1 difference: /c"
    assert card.candidates[1].reason == "2 differences: /b, /c"
    assert (card.pointer, card.recorded, card.actual) == ("/c", "3", "9")


def test_the_card_leaves_out_what_a_matcher_ignores(tape: Path, post: Post) -> None:
    """The pointer and the candidates name only values that are compared."""
    with record(tape):
        post({"when": 1, "deep": {"id": 1}, "text": "a"})
    card = diverge(
        tape,
        lambda: post({"when": 2, "deep": {"id": 2}, "text": "b"}),
        match=("ignore:/when", "ignore:/deep"),
    )
    assert card.pointer == "/text"
    assert card.candidates[0].reason == "1 difference: /text"


def test_the_message_of_the_error_contains_the_card(tape: Path, post: Post) -> None:
    """A program without the CLI sees only the text of the exception."""
    with record(tape):
        post({"a": 1})
    with pytest.raises(DivergenceError) as raised, replay(tape):
        post({"a": 2})
    text = str(raised.value)
    for word in ("after 0 of 1 exchange", "/a", "recorded  1", "now       2", "tracefork show"):
        assert word in text
