"""Tools run once, below everything that ADK does around them."""

from __future__ import annotations

import asyncio
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from google.adk.artifacts.in_memory_artifact_service import InMemoryArtifactService
from google.adk.plugins.base_plugin import BasePlugin
from google.adk.plugins.reflect_retry_tool_plugin import ReflectAndRetryToolPlugin
from google.adk.runners import InMemoryRunner
from google.adk.tools.base_tool import BaseTool
from google.adk.tools.base_toolset import BaseToolset
from google.adk.tools.exit_loop_tool import exit_loop
from google.adk.tools.function_tool import FunctionTool
from google.adk.tools.long_running_tool import LongRunningFunctionTool
from google.adk.tools.tool_context import ToolContext
from google.genai import types
from pydantic import BaseModel

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # It is deprecated in favour of workflows.
    from google.adk.agents.loop_agent import LoopAgent

import tracefork_core as tracefork
from tracefork_google_adk import leave_live

Call = Callable[..., Any]
CALL = "@call work {}\n@then\n@say Done."


class Weather(BaseModel):
    city: str
    degrees: float


@dataclass
class Cart:
    items: list[str]


ran: list[str] = []


@pytest.fixture(autouse=True)
def _nothing_ran() -> None:
    ran.clear()


def text() -> str:
    ran.append("text")
    return "sunny"


def nothing() -> None:
    ran.append("nothing")


def model() -> Weather:
    ran.append("model")
    return Weather(city="Rome", degrees=21.5)


def items():  # type: ignore[no-untyped-def] # a function as users write it
    ran.append("items")
    return Cart(["tea"])


def part() -> types.Part:
    ran.append("part")
    return types.Part(text="a part")


def writing(tool_context: ToolContext) -> dict[str, int]:
    ran.append("writing")
    tool_context.state["n"] = tool_context.state.get("n", 0) + len(ran)
    tool_context.state["user:name"] = "Ann"
    tool_context.actions.skip_summarization = True
    return {"n": tool_context.state["n"]}


def failing() -> str:
    ran.append("failing")
    raise LookupError("no such city")


def failing_late(tool_context: ToolContext) -> str:
    ran.append("failing_late")
    tool_context.state["tried"] = True
    raise LookupError("no such city")


async def asking(tool_context: ToolContext) -> None:
    ran.append("asking")
    if tool_context.tool_confirmation is None:
        tool_context.request_confirmation(hint="Sure?")


class Heard(BasePlugin):
    """Writes down what the callbacks of a plugin get; answers errors."""

    def __init__(self) -> None:
        super().__init__("heard")
        self.results: list[str] = []

    async def before_tool_callback(self, *, tool: Any, **_: Any) -> None:
        self.results.append(f"before {tool.name}")

    async def after_tool_callback(self, *, result: Any, **_: Any) -> None:
        self.results.append(f"after: {result!r}")

    async def on_tool_error_callback(self, *, error: Exception, **_: Any) -> dict[str, str]:
        self.results.append(f"error: {error!r}")
        return {"answer": "ask again"}


@pytest.mark.parametrize(
    "function", [text, nothing, model, items, part, writing, failing, failing_late, asking]
)
def test_what_a_tool_did_is_done_again(agent: Call, ask: Call, twice: Call, function: Any) -> None:
    """The session with its state and actions, and what other plugins hear, are the recorded ones.

    The function runs once.
    """

    def run() -> tuple[str, list[str]]:
        tool, heard = FunctionTool(function), Heard()
        tool.name = "work"
        session = ask(agent("helper", CALL, tools=[tool]), plugins=[heard])
        return session.model_dump_json(indent=1), heard.results

    recorded, again = twice(run)
    assert recorded == again
    assert recorded[1][0] == "before work"
    assert ran == [function.__name__]


def escalating(tool_context: ToolContext) -> str:
    ran.append("escalating")
    tool_context.actions.escalate = True
    return "enough"


@pytest.mark.parametrize(("function", "exchanges"), [(escalating, 4), (exit_loop, 2)])
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_tool_that_ends_a_loop_ends_it_again(
    agent: Call, ask: Call, twice: Call, tape: Path, function: Any, exchanges: int
) -> None:
    """What it did to the run is on the tape; `exit_loop` of ADK does nothing else."""
    words = f"@call {function.__name__} {{}}\n@then\n@say Done."
    loop = LoopAgent(name="loop", sub_agents=[agent("writer", words, tools=[function])])
    recorded, again = twice(lambda: ask(loop).model_dump_json())
    assert recorded == again
    assert len(ran) == (1 if function is escalating else 0)
    with tracefork.Tape.open(tape) as opened:
        assert len(opened.exchanges) <= exchanges


def test_equal_calls_at_once_get_their_own_results(agent: Call, ask: Call, twice: Call) -> None:
    """They end in another order than they began."""

    async def wait(seconds: float) -> int:
        ran.append("wait")
        await asyncio.sleep(seconds)
        return len(ran) + int(seconds * 1000)

    words = "\n".join(f'@call wait {{"seconds": {seconds}}}' for seconds in (0.09, 0.03, 0.03))
    helper = agent("helper", f"{words}\n@then\n@say Done.", tools=[wait])
    recorded, again = twice(lambda: ask(helper).model_dump_json())
    assert recorded == again
    assert ran == ["wait"] * 3


def confirmed(session: Any) -> types.Content:
    """Return a person's yes to the tool that the session waits for."""
    (call,) = (
        call
        for event in session.events
        for call in event.get_function_calls()
        if call.name == "adk_request_confirmation"
    )
    answer = types.FunctionResponse(id=call.id, name=call.name, response={"confirmed": True})
    return types.Content(role="user", parts=[types.Part(function_response=answer)])


@pytest.mark.parametrize("needs", ["always", "callable", "itself"])
def test_a_confirmation_is_asked_for_as_recorded(
    agent: Call, ask: Call, twice: Call, needs: str
) -> None:
    """The gate is above the tool, so a replay asks again; a tool may ask by itself, too."""
    asked: list[str] = []

    def required(tool_context: ToolContext) -> bool:
        asked.append("asked")
        return True

    def charge(tool_context: ToolContext) -> str:
        if needs == "itself" and tool_context.tool_confirmation is None:
            tool_context.request_confirmation(hint="Sure?")
            return "waiting"
        ran.append("charge")
        return f"charged {len(ran)}"

    gate: Any = {"always": True, "callable": required, "itself": False}[needs]
    tool = FunctionTool(charge, require_confirmation=gate)
    helper = agent("helper", "@call charge {}\n@then\n@say Done.", tools=[tool])
    recorded, again = twice(lambda: ask(helper, "Go on.", confirmed).model_dump_json())
    assert recorded == again
    assert "charged 1" in recorded
    assert ran == ["charge"]
    assert bool(asked) == (needs == "callable")


def test_a_retry_that_was_recorded_is_replayed(agent: Call, ask: Call, twice: Call) -> None:
    """The plugin tells the model about the error, and the model calls the tool again."""

    def flaky() -> str:
        ran.append("flaky")
        if len(ran) == 1:
            raise LookupError("no such city")
        return "sunny"

    def run() -> str:
        plugin = ReflectAndRetryToolPlugin(max_retries=2)
        words = "@call flaky {}\n@then\n@call flaky {}\n@then\n@say Done."
        return str(ask(agent("helper", words, tools=[flaky]), plugins=[plugin]).model_dump_json())

    recorded, again = twice(run)
    assert recorded == again
    assert "reflection_guidance" in recorded
    assert ran == ["flaky"] * 2


def test_a_long_running_tool_is_not_begun_again(agent: Call, ask: Call, twice: Call) -> None:
    """Its function begins the work and returns nothing yet; the answer comes as a message."""

    def approve() -> None:
        ran.append("approve")

    def answered(session: Any) -> types.Content:
        call = session.events[1].get_function_calls()[0]
        answer = types.FunctionResponse(id=call.id, name="approve", response={"ok": True})
        return types.Content(role="user", parts=[types.Part(function_response=answer)])

    words = "@call approve {}\n@then\n@say Done."
    helper = agent("helper", words, tools=[LongRunningFunctionTool(approve)])
    recorded, again = twice(lambda: ask(helper, "Go on.", answered).model_dump_json())
    assert recorded == again
    assert ran == ["approve"]


class Toolset(BaseToolset):
    """Copies its tools, to put a prefix before their names."""

    async def get_tools(self, readonly_context: Any = None) -> list[BaseTool]:
        class Later(BaseTool):
            async def run_async(self, *, args: dict[str, Any], tool_context: ToolContext) -> Any:
                ran.append("later")
                return {"rain": len(ran), **args}

            def _get_declaration(self) -> types.FunctionDeclaration:
                return types.FunctionDeclaration(name=self.name)

        return [Later(name="work", description="Works.")]


def test_a_tool_of_a_class_that_is_defined_later_is_recorded(
    agent: Call, ask: Call, twice: Call, paths: Call
) -> None:
    """Toolsets make tools in the middle of a run, and copy them."""
    words = '@call my_work {"city": "Rome"}\n@then\n@say Done.'
    helper = agent("helper", words, tools=[Toolset(tool_name_prefix="my")])
    recorded, again = twice(lambda: ask(helper).model_dump_json())
    assert recorded == again
    assert ran == ["later"]
    assert paths()[1] == "run:desk ▸ agent:helper ▸ tool:my_work"


def test_a_tool_can_be_left_live(agent: Call, ask: Call, twice: Call, tape: Path) -> None:
    """What it asks is an exchange of its own then."""
    inner = agent("inner", "@say Hm.")

    async def research(request: str) -> str:
        ran.append("research")
        runner = InMemoryRunner(inner, app_name="inner")
        events = await runner.run_debug(request, quiet=True)
        return str(events[-1].content.parts[0].text)

    leave_live(research)
    words = '@call research {"request": "Hm?"}\n@then\n@say Done.'
    recorded, again = twice(lambda: ask(agent("helper", words, tools=[research])).model_dump_json())
    assert recorded == again
    assert ran == ["research"] * 2
    with tracefork.Tape.open(tape) as opened:
        seams = [one.aside.seam for one in opened.exchanges]
    assert len(seams) == 3
    assert "tool" not in seams


def test_structured_output_has_no_side_effect(
    agent: Call, ask: Call, twice: Call, tape: Path
) -> None:
    """ADK offers a tool for it where an agent has tools, too. A fork may always call that."""
    words = '@call set_model_response {"city": "Rome", "degrees": 20}'
    helper = agent("helper", words, tools=[text], output_schema=Weather)
    recorded, again = twice(lambda: ask(helper).model_dump_json())
    assert recorded == again
    with tracefork.Tape.open(tape) as opened:
        asides = [exchange.aside for exchange in opened.exchanges]
    assert [(aside.seam == "tool", aside.effect) for aside in asides] == [
        (False, None),
        (True, "pure"),
    ]


def test_the_side_effect_of_a_tool_is_declared_at_its_function(
    agent: Call, ask: Call, tape: Path
) -> None:
    """A fork runs a read again, and refuses a write; a decorated function is one exchange."""

    @tracefork.tool(effect="read")
    def look() -> str:
        ran.append("look")
        return "found"

    def charge() -> str:
        ran.append("charge")
        return "charged"

    words = "@call look {}\n@then\n@call charge {}\n@then\n@say Done."
    helper = agent("helper", words, tools=[look, charge])
    with tracefork.record(tape):
        ask(helper)
    with tracefork.Tape.open(tape) as opened:
        effects = [(one.aside.seam, one.aside.effect) for one in opened.exchanges]
    assert effects[1::2] == [("tool", "read"), ("tool", None)]
    with pytest.raises(tracefork.WriteError, match="charge"), tracefork.fork(tape, "tool:look"):
        ask(helper)
    assert ran == ["look", "charge", "look"]
    with tracefork.fork(tape, "tool:look", reads=["charge"]):
        ask(helper)
    assert ran == ["look", "charge", "look", "look", "charge"]


def test_an_artifact_in_memory_is_saved_again(agent: Call, ask: Call, twice: Call) -> None:
    """A callback that reads it finds what the tool saved, though the tool does not run."""
    read: list[Any] = []

    async def draw(tool_context: ToolContext) -> str:
        ran.append("draw")
        image = types.Part.from_bytes(data=b"\x89PNG \xff", mime_type="image/png")
        await tool_context.save_artifact("sketch.png", image)
        return "drawn"

    async def look(callback_context: Any) -> None:
        read.append(await callback_context.load_artifact("sketch.png"))

    words = "@call draw {}\n@then\n@say Done."
    helper = agent("helper", words, tools=[draw], after_agent_callback=look)
    artifacts = InMemoryArtifactService
    recorded, again = twice(lambda: ask(helper, artifact_service=artifacts()).model_dump_json())
    assert recorded == again
    assert read[0] is not None
    assert read[0] == read[1]
    assert ran == ["draw"]


def test_a_fork_gives_a_text_for_a_tool(agent: Call, ask: Call, tape: Path) -> None:
    """The tool does not run, and the model reads the text."""
    helper = agent("helper", "@call text {}\n@then\n@say Done.", tools=[text])
    with tracefork.record(tape):
        ask(helper)
    with tracefork.fork(tape, "tool:text", tracefork.Replace(text="rainy")):
        session = ask(helper)
    assert ran == ["text"]
    (response,) = (one for event in session.events for one in event.get_function_responses())
    assert response.response == {"result": "rainy"}
