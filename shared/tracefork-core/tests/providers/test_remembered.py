"""What a conversation repeats is decoded once, and as if it were decoded alone."""

from __future__ import annotations

import json
import random

import pytest

from tracefork_core.providers.lenient import Json, parse
from tracefork_core.providers.remembered import parse_question

PADDING = "x" * 2_000
"""Short questions are decoded whole."""


def question(messages: list[Json], spaced: bool = False) -> bytes:
    body = {"model": "m", "messages": messages, "padding": PADDING}
    return json.dumps(body, indent=1 if spaced else None).encode()


def test_a_conversation_is_decoded_as_each_question_alone() -> None:
    """Conversations take turns, grow, are cut, start again, and are spaced in another way."""
    chance = random.Random(0)
    talks: list[list[Json]] = [[] for _ in range(12)]
    for n in range(600):
        talk = chance.choice(talks)
        if chance.random() < 0.1:
            del talk[chance.randint(0, len(talk)) :]
        values: list[Json] = [n, f"]{n},", {"role": "user", "content": f"[{n}]"}, [n], None, 1.5]
        talk += chance.sample(values, chance.randint(0, 3))
        raw = question(talk, spaced=chance.random() < 0.3)
        assert parse_question(raw) == parse(raw)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (b"[1, 2]", b"[1, 23]"),
        (b"[1 ]", b"[1 , 2 ]"),
        (b"[]", b"[1]"),
        (b"[1]", b"[1}"),
        (b"[1]", b"[1,]"),
        (b'["a"]', b'["a", "b"'),
    ],
)
def test_the_end_of_what_was_decoded_is_the_end_of_a_value(first: bytes, second: bytes) -> None:
    """A number may go on, and a question may be no JSON."""
    for array in (first, second):
        raw = b'{"padding": "%s", "messages": %s}' % (PADDING.encode(), array)
        assert parse_question(raw) == parse(raw)


def test_messages_that_were_decoded_are_the_same_objects() -> None:
    """So a question is compared with the one before without looking into it."""
    message: Json = {"role": "user", "content": "the only one of its kind"}
    first, second = (parse_question(question([message] * count)) for count in (1, 2))
    assert isinstance(first, dict)
    assert isinstance(second, dict)
    assert isinstance(first["messages"], list)
    assert isinstance(second["messages"], list)
    assert first["messages"][0] is second["messages"][0]
    first["messages"].clear()
    assert parse_question(question([message])) == {
        "model": "m",
        "messages": [message],
        "padding": PADDING,
    }
