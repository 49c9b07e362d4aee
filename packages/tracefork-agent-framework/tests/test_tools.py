"""A replay calls no tool again, and all of the framework's work around a tool is done again."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, date, datetime
from enum import Enum
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest
from agent_framework import (
    AgentSession,
    Content,
    FunctionInvocationContext,
    Message,
    MiddlewareTermination,
    function_middleware,
    tool,
)
from agent_framework.exceptions import UserInputRequiredException
from pydantic import BaseModel

import tracefork_core as tracefork
from tracefork_agent_framework import leave_live

from .conftest import answers_of

Call = Callable[..., Any]
ran: list[str] = []


@pytest.fixture(autouse=True)
def _nothing_ran() -> None:
    ran.clear()


class Sky(Enum):
    """A class of the program's."""

    CLEAR = "clear"


class Weather(BaseModel):
    """A class of the program's."""

    city: str
    sky: Sky
    at: datetime


@dataclass
class Range:
    """A class of the program's."""

    low: int
    high: int


class Unknown:
    """A class that no annotation names."""

    def __str__(self) -> str:
        return "unknown"


def text() -> str:
    ran.append("text")
    return "sunny"


async def model() -> Weather:
    ran.append("model")
    return Weather(city="Rome", sky=Sky.CLEAR, at=datetime(2026, 1, 2, tzinfo=UTC))


def mapping() -> dict[str, Range]:
    ran.append("mapping")
    return {"today": Range(1, 2)}


def image() -> list[Any]:
    ran.append("image")
    return ["seen", Content.from_uri("data:image/png;base64,AAAA", media_type="image/png")]


def unknown() -> Any:
    ran.append("unknown")
    return {"it": Unknown()}


def nothing() -> None:
    ran.append("nothing")


def known_error() -> str:
    ran.append("known_error")
    raise KeyError("Rome")


def own_error() -> str:
    ran.append("own_error")
    raise type("StormError", (Exception,), {})("It storms.")


RESULTS = (text, model, mapping, image, unknown, nothing, known_error, own_error)


def test_no_tool_runs_again_whatever_it_returns_or_raises(
    agent: Call, ask: Call, twice: Call, tape: Path
) -> None:
    """Sync and async functions; the model gets the same, and middleware the same objects."""
    seen: list[Any] = []

    @function_middleware
    async def look(context: FunctionInvocationContext, call_next: Any) -> None:
        seen.append(context.function.name)
        await call_next()

    words = "".join(f"@call {it.__name__} {{}}\n@then\n" for it in RESULTS) + "@say Done."

    def run() -> list[Any]:
        return answers_of(ask(agent("helper", words, tools=list(RESULTS), middleware=[look])))

    recorded, again = twice(run)
    names = [it.__name__ for it in RESULTS]
    assert recorded == again
    assert len(recorded) == len(names)
    assert ran == names
    assert seen == names * 2
    with tracefork.Tape.open(tape) as opened:
        assert sum(one.aside.seam == "tool" for one in opened.exchanges) == len(names)


def test_the_parser_of_a_tool_runs_again(agent: Call, ask: Call, twice: Call) -> None:
    """It gets the object that the function returned."""
    parsed: list[object] = []

    def parse(result: Any) -> str:
        parsed.append(result)
        return "parsed"

    weather = tool(model, result_parser=parse)
    words = "@call model {}\n@then\n@say Done."
    recorded, again = twice(lambda: answers_of(ask(agent("helper", words, tools=[weather]))))
    assert recorded == again
    assert ran == ["model"]
    assert parsed[0] == parsed[1]
    assert type(parsed[0]) is Weather


def test_the_arguments_of_a_tool_keep_their_classes(agent: Call, ask: Call, twice: Call) -> None:
    """The tape has them as JSON, and the function gets what the framework made of the JSON."""
    if version("agent-framework-core") == "1.0.0":
        pytest.skip("Agent Framework 1.0 refuses arguments that are no JSON")
    got: list[object] = []

    def book(day: date, sky: Sky = Sky.CLEAR) -> str:
        got.append(day)
        return day.isoformat()

    words = '@call book {"day": "2026-01-02"}\n@then\n@say Done.'
    recorded, again = twice(lambda: answers_of(ask(agent("helper", words, tools=[book]))))
    assert recorded == again
    assert got == [date(2026, 1, 2)]


def test_what_a_tool_does_to_the_session_is_done_again(agent: Call, ask: Call, twice: Call) -> None:
    """Also by a tool that raises. Another tool reads it, and the session ends up the same."""

    def add(item: str, ctx: FunctionInvocationContext) -> str:
        ran.append("add")
        assert ctx.session is not None
        ctx.session.state.setdefault("cart", []).append(item)
        ctx.session.state.pop("draft", None)
        if item == "nail":
            raise ValueError("We have none.")
        return "added"

    @function_middleware
    async def look(context: FunctionInvocationContext, call_next: Any) -> None:
        await call_next()
        assert context.session is not None
        seen.append(str(context.session.state.get("cart")))

    seen: list[str] = []
    words = '@call add {"item": "saw"}\n@then\n@call add {"item": "nail"}\n@then\n@say Done.'

    def run() -> Any:
        session = AgentSession(session_id="s")
        session.state["draft"] = True
        helper = agent("helper", words, tools=[add], middleware=[look])
        answers = answers_of(ask(helper, session=session))
        return answers, session.state["cart"], "draft" in session.state

    recorded, again = twice(run)
    assert recorded == again
    assert recorded[1:] == (["saw", "nail"], False)
    assert ran == ["add", "add"]
    assert seen == ["['saw']"] * 2


def test_a_tool_that_adds_tools_is_named_in_a_warning(agent: Call, ask: Call, tape: Path) -> None:
    """Its replay would lack them; marked with `leave_live` it runs in a replay, too."""
    if not hasattr(FunctionInvocationContext, "add_tools"):
        pytest.skip("Agent Framework 1.0 cannot add tools to a run")

    def unlock(ctx: FunctionInvocationContext) -> str:
        ran.append("unlock")
        ctx.add_tools(text)
        return "unlocked"

    words = "@call unlock {}\n@then\n@call text {}\n@then\n@say Done."

    def run(function: Any) -> Any:
        return answers_of(ask(agent("helper", words, tools=[function])))

    with pytest.warns(UserWarning, match="the tool unlock changed the tools"):
        with tracefork.record(tape):
            run(unlock)
    with pytest.raises(tracefork.DivergenceError), tracefork.replay(tape):
        run(unlock)
    ran.clear()
    with tracefork.record(tape, overwrite=True):
        recorded = run(leave_live(unlock))
    with tracefork.replay(tape, strict=True):
        assert run(unlock) == recorded
    assert ran == ["unlock", "text", "unlock"]


def test_an_approval_is_asked_for_again(agent: Call, ask: Call, twice: Call) -> None:
    """The user answers in the replay, too, and the approved tool does not run again."""

    @tool(approval_mode="always_require")
    def charge(amount: int) -> str:
        ran.append("charge")
        return f"charged {amount}"

    async def run() -> str:
        session = AgentSession(session_id="s")
        words = '@call charge {"amount": 7}\n@then\n@say Done.'
        helper = agent("helper", words, tools=[charge])
        response = await helper.run("Go on.", session=session)
        (request,) = response.user_input_requests
        answer = Message("user", [request.to_function_approval_response(approved=True)])
        return str((await helper.run(answer, session=session)).text)

    recorded, again = twice(lambda: asyncio.run(run()))
    assert recorded == again
    assert recorded.startswith("Done.")
    assert ran == ["charge"]


def test_a_tool_that_asks_the_user_asks_again(agent: Call, ask: Call, twice: Call) -> None:
    """It does so by an exception that the framework does not tell the model about."""

    def login() -> str:
        ran.append("login")
        raise UserInputRequiredException(
            [Content.from_oauth_consent_request("https://login.example")]
        )

    helper = agent("helper", "@call login {}\n@then\n@say Done.", tools=[login])

    def run() -> Any:
        return [
            content.consent_link
            for message in ask(helper).messages
            for content in message.contents
            if content.type == "oauth_consent_request"
        ]

    recorded, again = twice(run)
    assert recorded == again == ["https://login.example"]
    assert ran == ["login"]


def test_the_limit_of_a_tool_holds_in_a_replay(agent: Call, ask: Call, twice: Call) -> None:
    """The framework counts calls in the tool itself."""
    words = "@call text {}\n@then\n@call text {}\n@then\n@say Done."

    def run() -> Any:
        limited = tool(text, max_invocations=1)
        answers = answers_of(ask(agent("helper", words, tools=[limited])))
        return answers, limited.invocation_count, limited.invocation_exception_count

    recorded, again = twice(run)
    assert recorded == again
    assert recorded[1:] == (1, 0)
    assert ran == ["text"]


def test_middleware_may_answer_in_place_of_a_tool(
    agent: Call, ask: Call, twice: Call, tape: Path
) -> None:
    """No exchange is made of that: the middleware is the program's own, and runs again."""

    @function_middleware
    async def instead(context: FunctionInvocationContext, call_next: Any) -> None:
        ran.append("instead")
        context.result = "cloudy"
        raise MiddlewareTermination("It is known.")

    words = "@call text {}\n@then\n@say Done."

    def run() -> Any:
        return answers_of(ask(agent("helper", words, tools=[text], middleware=[instead])))

    recorded, again = twice(run)
    assert recorded == again
    assert ran == ["instead"] * 2
    with tracefork.Tape.open(tape) as opened:
        assert [one.aside.seam == "tool" for one in opened.exchanges] == [False]


def test_a_function_runs_in_the_thread_that_the_framework_chose(
    agent: Call, ask: Call, tape: Path
) -> None:
    """Later versions of the framework run it in a thread of its own."""
    threads: list[bool] = []

    def where() -> str:
        threads.append(threading.current_thread() is threading.main_thread())
        return "here"

    words = "@call where {}\n@then\n@say Done."
    ask(agent("helper", words, tools=[where]))
    with tracefork.record(tape):
        ask(agent("helper", words, tools=[where]))
    assert threads[0] == threads[1]
