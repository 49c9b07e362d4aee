from __future__ import annotations

import io
from pathlib import Path

import pytest
from rich.console import Console

from tracefork_core.cli.display.card import card_document, commands, print_card
from tracefork_core.errors import Candidate, Divergence

RECORDED = "…ou answer support tickets. Be brief. Today is 2026-11-20."
HINT = "a date or time: the clock is not on this tape (recorded with --no-clock)."
NOW = "…ou answer support tickets. Be brief. Today is 2026-11-21."


def divergence(recorded: str = RECORDED, actual: str = NOW, **other: object) -> Divergence:
    given: dict[str, object] = {
        "kind": "request",
        "summary": "the request differs from recorded exchange 3",
        "tape": "refund.tape",
        "of": 7,
        "n": 3,
        "step": "agent ▸ plan",
        "caller": "support_agent.py:41",
        "request": "POST https://api.openai.com/v1/chat/completions",
        "pointer": "/messages/0/content",
        "recorded": recorded,
        "actual": actual,
        "candidates": (Candidate(3, "1 difference: /messages/0/content"),),
        "replayed": 2,
    }
    return Divergence(**{**given, **other})  # type: ignore[arg-type]


def printed(found: Divergence, *, width: int = 80) -> list[str]:
    stream = io.StringIO()
    console = Console(file=stream, width=width, markup=False, highlight=False)
    print_card(console, found, agent="agent.py")
    return stream.getvalue().splitlines()


def test_the_card_shows_the_difference_and_the_next_commands() -> None:
    """It has step, request, pointer, both values and the nearest exchange."""
    assert printed(divergence(hints=(HINT,))) == [
        "✗ diverged after 2 of 7 exchanges · step agent ▸ plan · support_agent.py:41",
        "  POST api.openai.com/v1/chat/completions",
        "  /messages/0/content",
        f"    recorded  {RECORDED}",
        f"    now       {NOW}",
        " " * (14 + NOW.index("21.") + 1) + "▲",
        "    ─ a date or time: the clock is not on this tape (recorded with --no-clock).",
        "  nearest #3 1 difference: /messages/0/content",
        "  rerun   tracefork rerun refund.tape agent.py",
        "  diff    tracefork diff refund.rerun.tape",
        "  see     tracefork show refund.tape 3",
        "  keep    tracefork record -o refund.tape agent.py",
        "  ignore  tracefork replay --ignore /messages/0/content refund.tape agent.py",
    ]


@pytest.mark.parametrize(
    ("recorded", "actual", "place"),
    [
        ("kind.", "kinD.", 3),
        ("same", "same and more", 4),
        ("a\tb", "a b", 1),
        ("", "x", 0),
        ("漢字 one", "漢字 two", 5),
    ],
)
def test_a_mark_points_at_the_first_difference(recorded: str, actual: str, place: int) -> None:
    """It accounts for the width of the characters."""
    lines = printed(divergence(recorded, actual))
    assert lines[5] == " " * (14 + place) + "▲"


def test_invisible_differences_become_visible() -> None:
    """Zero-width characters and terminal escapes are spelled out."""
    lines = printed(divergence("order\u200b 17", "order\x1b[2J 17"))
    assert lines[3].endswith(r"order\u200b 17")
    assert lines[4].endswith(r"order\x1b[2J 17")


@pytest.mark.parametrize("width", [40, 60, 80, 200])
def test_values_fit_the_screen(width: int) -> None:
    """Long values are cut around the difference, which remains visible."""
    recorded, actual = "x" * 300 + "A" + "y" * 300, "x" * 300 + "B" + "y" * 300
    lines = printed(divergence(recorded, actual), width=width)
    (place,) = (i for i, line in enumerate(lines) if line.strip() == "▲")
    then, now, mark = lines[place - 2 : place + 1]
    assert max(len(then), len(now)) <= width
    assert (then[mark.index("▲")], now[mark.index("▲")]) == ("A", "B")


def test_a_request_too_many_has_no_exchange_number() -> None:
    """Nothing was recorded there that could be shown or ignored."""
    extra = divergence(
        kind="extra", n=None, pointer=None, candidates=(), summary="one more request", step=None
    )
    lines = printed(extra)
    assert lines[0] == "✗ diverged after 2 of 7 exchanges · support_agent.py:41"
    assert lines[1] == "  one more request"
    assert [line.split()[0] for line in lines[3:]] == ["rerun", "diff", "see", "keep"]


def test_the_document_has_every_field_of_the_card() -> None:
    """It has the commands too."""
    document = card_document(divergence(), "agent.py")
    assert document["pointer"] == "/messages/0/content"
    assert document["candidates"] == ({"n": 3, "reason": "1 difference: /messages/0/content"},)
    assert document["commands"] == {
        "rerun": "tracefork rerun refund.tape agent.py",
        "diff": "tracefork diff refund.rerun.tape",
        "see": "tracefork show refund.tape 3",
        "keep": "tracefork record -o refund.tape agent.py",
        "ignore": "tracefork replay --ignore /messages/0/content refund.tape agent.py",
    }


def test_a_new_recording_never_gets_the_name_of_the_evidence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The tape holds what happened; a branch and an earlier copy are kept too."""
    monkeypatch.chdir(tmp_path)
    for name in ("refund.tape", "refund-2.tape"):
        Path(name).touch()
    assert (
        commands(divergence(), "agent.py")["keep"] == "tracefork record -o refund-3.tape agent.py"
    )


@pytest.mark.parametrize(
    ("agent", "verbs"), [("", ["rerun", "diff", "see", "ignore"]), (None, ["see"])]
)
def test_each_command_is_complete(agent: str | None, verbs: list[str]) -> None:
    """Where the agent is not known, a command that needs it is not there; none has a gap in it."""
    found = commands(divergence(), agent)
    assert list(found) == verbs
    assert "…" not in "".join(found.values())
