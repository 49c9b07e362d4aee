"""One call of a bound tool: the request that is compared, the work, and LangChain's result."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import cached_property, wraps
from typing import Any

from langchain_core.tools import BaseTool
from langgraph.errors import GraphBubbleUp

from tracefork_core.adapters import Effect, atool_exchange, in_session, tool_exchange
from tracefork_langgraph.tool_arguments import Arguments, call_ids, plain, told_by_models
from tracefork_langgraph.tool_effects import bodies_of, marked_body
from tracefork_langgraph.tool_interrupts import answers, ask_again, counted, interrupted
from tracefork_langgraph.tool_values import Outcome, Values

_ANSWERS = "resumed with"


class Binding:
    """One bound tool: its properties, and the functions that replace `_run` and `_arun`."""

    def __init__(
        self, tool: BaseTool, effect: Effect | None, raises: tuple[type[Exception], ...]
    ) -> None:
        self.tool = tool
        self.run, self.arun = tool._run, tool._arun  # noqa: SLF001 - what LangChain calls
        annotated = (
            body for body in bodies_of(tool) if "return" in getattr(body, "__annotations__", ())
        )
        self.said: dict[str, Any] = {
            "effect": effect,
            "raises": raises,
            "returns": next(annotated, None),
            "function": marked_body(tool),
        }

    @cached_property
    def by_models(self) -> tuple[str, ...]:
        """The names of the arguments that a model gives to the tool."""
        return told_by_models(self.tool)

    @cached_property
    def call_ids(self) -> frozenset[str]:
        """The names of the arguments that receive the id of the call."""
        return call_ids(self.tool)

    def wrapped(self) -> Callable[..., Any]:
        """Return the replacement of `_run`: it does the work, or returns the result on the tape."""

        @wraps(self.run)
        def run(*args: Any, **kwargs: Any) -> Any:
            if not in_session():
                return self.run(*args, **kwargs)
            call = _Call(self, args, kwargs)
            return call.end(
                tool_exchange(self.tool.name, call.told, call.run, call.values, **self.said)
            )

        return run

    def awrapped(self) -> Callable[..., Awaitable[Any]]:
        """Return the replacement of `_arun`, which does in async code what `wrapped` does."""

        @wraps(self.arun)
        async def arun(*args: Any, **kwargs: Any) -> Any:
            if not in_session():
                return await self.arun(*args, **kwargs)
            call = _Call(self, args, kwargs)
            ended = atool_exchange(self.tool.name, call.told, call.arun, call.values, **self.said)
            return call.end(await ended)

        return arun


class _Call:
    def __init__(self, binding: Binding, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        self._binding = binding
        self._arguments = Arguments(binding.by_models, binding.call_ids, args, kwargs)
        self._ran = False
        self._left: GraphBubbleUp | None = None
        self.values = Values(self._arguments.call)
        self.told = self._arguments.told
        if answered := answers():
            self.told[_ANSWERS] = plain(answered)

    def run(self, **told: Any) -> object:
        """Run the tool."""
        self._ran = True
        args, kwargs = self._arguments.given(told)
        with counted() as asked:
            try:
                result = self._binding.run(*args, **kwargs)
            except GraphBubbleUp as error:
                return self._interrupted(error, asked)
        return Outcome(len(asked), result) if asked else result

    async def arun(self, **told: Any) -> object:
        """Run the tool in async code."""
        self._ran = True
        args, kwargs = self._arguments.given(told)
        with counted() as asked:
            try:
                result = await self._binding.arun(*args, **kwargs)
            except GraphBubbleUp as error:
                return self._interrupted(error, asked)
        return Outcome(len(asked), result) if asked else result

    def end(self, came: object) -> object:
        """Return the result for LangChain, or raise the interrupt that the tool ended with."""
        if self._left is not None:
            raise self._left
        if isinstance(came, Outcome):
            if not self._ran:
                ask_again(came)
            came = came.result
        if not self._ran and self._pairs and not isinstance(came, tuple):
            return came, None  # A fork replaced only the content.
        return came

    @property
    def _pairs(self) -> bool:
        return str(self._binding.tool.response_format) == "content_and_artifact"

    def _interrupted(self, error: GraphBubbleUp, asked: list[int]) -> Outcome:
        self._left = error
        return interrupted(self._binding.tool.name, error, asked)
