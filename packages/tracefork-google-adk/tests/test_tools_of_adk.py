"""Tools that ADK itself brings: a choice of the user, the end of a task, nodes as tools."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from google.adk.tools.get_user_choice_tool import get_user_choice_tool
from google.adk.tools.tool_context import ToolContext
from google.adk.workflow import START, Workflow, node
from google.genai import types

Call = Callable[..., Any]


def test_a_choice_of_the_user_is_waited_for_again(
    agent: Call, ask: Call, twice: Call, paths: Call
) -> None:
    """The tool does nothing but wait, so it runs in replays too, and is no exchange."""

    def chosen(session: Any) -> types.Content:
        call = session.events[1].get_function_calls()[0]
        answer = types.FunctionResponse(id=call.id, name=call.name, response={"result": "tea"})
        return types.Content(role="user", parts=[types.Part(function_response=answer)])

    words = '@call get_user_choice {"options": ["tea", "coffee"]}\n@then\n@say Done.'
    helper = agent("helper", words, tools=[get_user_choice_tool])
    recorded, again = twice(lambda: ask(helper, "Go on.", chosen).model_dump_json())
    assert recorded == again
    assert "tea" in recorded
    assert all("model:" in path for path in paths())


def test_the_end_of_a_task_is_reached_again(
    agent: Call, ask: Call, twice: Call, paths: Call
) -> None:
    """`finish_task` hands the result of a task to the agent that gave it."""
    words = '@call finish_task {"result": "A draft."}\n@then\n@say Over.'
    writer = agent("writer", words, mode="task", description="Writes.")
    words = '@call writer {"request": "Write."}\n@then\n@say Done.'
    boss = agent("boss", words, sub_agents=[writer])
    recorded, again = twice(lambda: ask(boss).model_dump_json())
    assert recorded == again
    assert "A draft." in recorded
    assert any("agent:writer" in path for path in paths())


def test_a_workflow_as_a_tool_asks_from_the_tape(
    agent: Call, ask: Call, twice: Call, paths: Call
) -> None:
    """Its own tools and models are exchanges, each in the step of its node."""
    ran: list[str] = []

    def look_up(tool_context: ToolContext) -> str:
        ran.append("look_up")
        return f"found {len(ran)}"

    clerk = agent("clerk", "@call look_up {}\n@then\n@say Found.", tools=[look_up])

    @node
    def begin(node_input: Any) -> str:
        return str(node_input)

    flow = Workflow(
        name="desk", description="Looks up.", edges=[(START, begin, clerk)], input_schema=str
    )
    helper = agent("helper", '@call desk {"request": "Go."}\n@then\n@say Done.', tools=[flow])
    recorded, again = twice(lambda: ask(helper).model_dump_json())
    assert recorded == again
    assert ran == ["look_up"]
    assert [path for path in paths() if "agent:clerk ▸ tool:look_up" in path]
