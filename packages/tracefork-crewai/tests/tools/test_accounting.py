"""What CrewAI keeps count of goes on in a replay: usages, cached results, final answers."""

from __future__ import annotations

from typing import Any

import pytest
from crewai.tools import tool

ASK = '@call look_up {"order": 17}'


@pytest.fixture
def looking_up(ran: Any) -> Any:
    """Make a tool with options of CrewAI's."""

    def make(**options: Any) -> Any:
        @tool("look_up", **options)
        def look_up(order: int) -> str:
            """Look up an order."""
            ran.append(f"look_up {order}")
            return f"order {order} is lost"

        return look_up

    return make


def test_a_result_is_the_answer(way: str, calling: Any, twice: Any, looking_up: Any) -> None:
    """With `result_as_answer` no model is asked what it means."""
    run = calling(way, ASK, lambda: [looking_up(result_as_answer=True)])
    recorded, replayed = twice(run)
    assert recorded.raw == replayed.raw == "order 17 is lost"


def test_usages_are_limited(
    way: str, calling: Any, twice: Any, looking_up: Any, ran: Any, prompts: Any, exchanges: Any
) -> None:
    """The second call is refused by CrewAI, and the tool's count is the same at replay."""
    made = []

    def tools() -> list[Any]:
        made.append(looking_up(max_usage_count=1))
        return [made[-1]]

    calls = '@call look_up {"order": 1}\n@call look_up {"order": 2}'
    twice(calling(way, calls, tools))
    assert ran.now() == ["look_up 1"]
    assert [asked for _, asked in exchanges()] == [{"order": 1}]
    assert "usage limit" in prompts()
    assert made[0].current_usage_count == made[1].current_usage_count > 0


@pytest.mark.parametrize("cache", [True, False])
def test_a_cached_result_is_no_exchange(
    way: str, cache: bool, calling: Any, twice: Any, looking_up: Any, ran: Any, exchanges: Any
) -> None:
    """A crew with a cache asks once for what it asks again, and one without asks twice."""
    options = {"agents_": {"cache": cache}, "options_": {"cache": cache}}
    # Another call lies between them: CrewAI refuses a ReAct agent that repeats its last one.
    calls = "\n@then\n".join(f'@call look_up {{"order": {order}}}' for order in (17, 18, 17))
    twice(calling(way, calls, lambda: [looking_up()], **options))
    assert len(ran.now()) == len(exchanges()) == (2 if cache else 3)
