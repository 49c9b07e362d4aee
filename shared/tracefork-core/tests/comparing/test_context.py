"""What a model was told by two questions is compared message by message."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tracefork_core import Tape, UsageError
from tracefork_core.comparing.context import Contexts, compare_contexts

from .runs import Item, chat, conversation, write

ANSWER = {"role": "assistant", "content": "Yes."}
LONG = "The report says that orders went up in May, and down again in June, for no reason."
MESSAGES = [
    {"role": "system", "content": "Be brief."},
    {"role": "user", "content": "Read the report."},
    {"role": "assistant", "content": "I read it."},
    {"role": "user", "content": LONG},
]


def contexts(tape: Path, first: list[Any], second: list[Any], **settings: Any) -> Contexts:
    """Compare two questions with these messages, of one tape."""
    write(tape, [chat("main", first, ANSWER), chat("main", second, ANSWER, **settings)])
    with Tape.open(tape) as opened:
        one, other = opened.exchanges
        return compare_contexts((opened, one), (opened, other))


def told(found: Contexts) -> list[tuple[str, str, int | None, int | None]]:
    """Return the differences in short."""
    return [(one.how, one.what, one.first, one.second) for one in found.told]


def test_an_injected_message_is_named(tape: Path) -> None:
    """So is a dropped one, which is the same seen from the other side."""
    memory = {"role": "user", "content": "Remember: the customer is angry."}
    longer = [*MESSAGES[:1], memory, *MESSAGES[1:]]
    found = contexts(tape, MESSAGES, longer)
    assert told(found) == [("injected", "prompt", None, 1)]
    assert found.shared == 4
    assert told(contexts(tape, longer, MESSAGES)) == [("dropped", "prompt", 1, None)]


def test_a_changed_message_is_told_from_a_truncated_one(tape: Path) -> None:
    """A text that was cut keeps its beginning, with or without a mark of the cut."""
    for text, how in (
        ("Orders went down.", "changed"),
        (LONG[:50], "truncated"),
        (LONG[:50] + " … [cut]", "truncated"),
    ):
        found = contexts(tape, MESSAGES, [*MESSAGES[:3], {"role": "user", "content": text}])
        assert told(found) == [(how, "prompt", 3, 3)]


def test_settings_and_tools_are_sections_of_their_own(tape: Path) -> None:
    """They are no messages."""
    tools = [{"type": "function", "function": {"name": "search", "parameters": {}}}]
    found = contexts(tape, MESSAGES, MESSAGES, tools=tools, temperature=0)
    assert [one.what for one in found.told] == ["settings", "tools offered"]
    assert told(contexts(tape, MESSAGES, MESSAGES)) == []


def test_only_questions_to_models_have_a_context(tape: Path) -> None:
    """For a call of a tool, the error says where the calls of models are listed."""
    items: list[Item] = conversation([("search", {}, "found"), "Done."])
    with Tape.open(write(tape, items)) as opened:
        model, tool, *_ = opened.exchanges
        with pytest.raises(UsageError, match="not a call of a model"):
            compare_contexts((opened, model), (opened, tool))
