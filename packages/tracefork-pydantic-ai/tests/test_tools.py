"""Tools run once, below everything that pydantic-ai does around them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Any

import pytest
from pydantic import BaseModel, TypeAdapter
from pydantic_ai import BinaryContent, ImageUrl, ModelRetry, RunContext, ToolReturn
from pydantic_ai.capabilities import Hooks
from pydantic_ai.toolsets import FunctionToolset

Call = Callable[..., Any]
CALL = "@call work {}\n@then\n@say Done."
TWICE = "@call work {}\n@then\n@call work {}\n@then\n@say Done."


class Weather(BaseModel):
    city: str
    degrees: float


class Sky(Enum):
    CLEAR = "clear"


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


async def nothing() -> None:
    ran.append("nothing")


def with_context(ctx: RunContext[None]) -> str:
    ran.append("with_context")
    return f"{ctx.tool_name} {ctx.retry}"


def model() -> Weather:
    ran.append("model")
    return Weather(city="Rome", degrees=21.5)


def models() -> dict[str, list[Weather]]:
    ran.append("models")
    return {"all": [Weather(city="Rome", degrees=21.5)]}


def items():  # type: ignore[no-untyped-def] # a function as users write it
    ran.append("items")
    return Cart(["tea"]), Sky.CLEAR


def image() -> BinaryContent:
    ran.append("image")
    return BinaryContent(data=b"\x89PNG\xff", media_type="image/png")


def several() -> list[Any]:
    ran.append("several")
    return ["see", ImageUrl(url="https://example.com/sun.png", media_type="image/png"), 3]


def all_of_it() -> ToolReturn:
    ran.append("all_of_it")
    return ToolReturn(
        return_value=Weather(city="Rome", degrees=21.5),
        content=["@say The sky.", BinaryContent(data=b"\x89PNG\xff", media_type="image/png")],
        metadata={"source": Cart(["satellite"])},
    )


def retrying(ctx: RunContext[None]) -> str:
    ran.append("retrying")
    if ctx.retry == 0:
        raise ModelRetry("Ask for a city.")
    return "sunny"


def misjudging(ctx: RunContext[None]) -> str:
    ran.append("misjudging")
    if ctx.retry == 0:
        TypeAdapter(int).validate_python("two {of} them")
    return "sunny"


def unknown() -> object:
    ran.append("unknown")

    class Local(BaseModel):
        n: int

    return {"a": [Local(n=1)]}


class Heard(Hooks[Any]):
    """Writes down what hooks around the execution of tools get."""

    def __init__(self) -> None:
        self.results: list[str] = []
        super().__init__(before_tool_execute=self.before, after_tool_execute=self.after)

    async def before(self, ctx: Any, *, call: Any, tool_def: Any, args: Any) -> Any:
        self.results.append(f"before {call.tool_name}")
        return args

    async def after(self, ctx: Any, *, call: Any, tool_def: Any, args: Any, result: Any) -> Any:
        self.results.append(f"after: {result!r}")
        return result


RETRYING = [retrying, misjudging]
FUNCTIONS = [
    *(text, nothing, with_context, model, models, items, image, several, all_of_it, unknown),
    *RETRYING,
]


@pytest.mark.parametrize("function", FUNCTIONS)
def test_what_a_tool_returned_is_returned_again(
    agent: Call, ask: Call, twice: Call, function: Any
) -> None:
    """The messages and what hooks get are the recorded ones. A retry is one, too.

    Each call runs once.
    """

    def run() -> tuple[str, list[str]]:
        toolset: FunctionToolset[Any] = FunctionToolset()
        toolset.add_function(function, name="work")
        heard = Heard()
        words = TWICE if function in RETRYING else CALL
        helper = agent("helper", words, toolsets=[toolset], capabilities=[heard])
        return ask(helper), heard.results

    recorded, again = twice(run)
    assert recorded == again
    assert recorded[1][0] == "before work"
    assert ran == [function.__name__] * (2 if function in RETRYING else 1)
