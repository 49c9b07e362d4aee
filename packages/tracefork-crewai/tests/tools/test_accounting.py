"""CrewAI counts usages, caches results and returns final answers in a replay as in a recording."""

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


def test_result_as_answer_replays(way: str, calling: Any, twice: Any, looking_up: Any) -> None:
    """With `result_as_answer` no model is called with the result."""
    run = calling(way, ASK, lambda: [looking_up(result_as_answer=True)])
    recorded, replayed = twice(run)
    assert recorded.raw == replayed.raw == "order 17 is lost"


def test_the_usage_limit_of_a_tool_holds_in_a_replay(
    way: str, calling: Any, twice: Any, looking_up: Any, ran: Any, prompts: Any, exchanges: Any
) -> None:
    """CrewAI refuses the second call, and the tool's count is the same at replay."""
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
def test_a_cached_result_makes_no_exchange(
    way: str, cache: bool, calling: Any, twice: Any, looking_up: Any, ran: Any, exchanges: Any
) -> None:
    """A crew with a cache runs an equal call once, and one without runs it twice."""
    options = {"agents_": {"cache": cache}, "options_": {"cache": cache}}
    # With another call between: CrewAI refuses a ReAct agent that repeats its last call.
    calls = "\n@then\n".join(f'@call look_up {{"order": {order}}}' for order in (17, 18, 17))
    twice(calling(way, calls, lambda: [looking_up()], **options))
    assert len(ran.now()) == len(exchanges()) == (2 if cache else 3)
