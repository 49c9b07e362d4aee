"""What the fixture `tape` gives a test: what its run asked so far."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from tracefork_core.providers import ToolCallPart, ToolCallResponsePart, model_call
from tracefork_core.providers.prices import price_of
from tracefork_core.run.replay import Replaying
from tracefork_core.tape import Exchange

if TYPE_CHECKING:
    from tracefork_core.providers import ModelCall
    from tracefork_core.pytest_plugin.taped import Taped


class Tokens(NamedTuple):
    """Tokens of a run, as far as the answers say."""

    input: int
    output: int

    @property
    def total(self) -> int:
        """Both together."""
        return self.input + self.output


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A call of a tool by a model.

    Attributes:
        name: the name of the tool.
        arguments: what the model gave it; text if that is not a JSON object.
        result: what was sent back to the model; None if nothing was.
    """

    name: str
    arguments: Any
    result: Any = None


class Handle:
    """The tape of a running test.

    All of it is what was asked so far, the same at recording and at replay. In the test's last line
    that is the whole run.
    """

    def __init__(self, taped: Taped) -> None:
        self._taped = taped

    def __repr__(self) -> str:
        return f"<tape of a test: {self.path}>"

    @property
    def path(self) -> Path:
        """Where the tape is, or will be once the test has passed."""
        return self._taped.path

    @property
    def is_live(self) -> bool:
        """Whether this run may ask live; a replay never does."""
        return not isinstance(self._taped.run, Replaying)

    @property
    def exchanges(self) -> list[Exchange]:
        """The exchanges so far, in the order asked."""
        taped = self._taped
        if taped.is_open and not self.is_live:
            answered: list[Exchange] = taped.scope.answered
            return answered
        return taped.so_far().exchanges

    @property
    def calls(self) -> list[ModelCall]:
        """The calls of models so far, decoded."""
        return [call for one in self.exchanges if (call := model_call(one)) is not None]

    @property
    def tools(self) -> list[ToolCall]:
        """The calls of tools that models asked for, in order."""
        calls = self.calls
        results = {
            part.id: part.response
            for call in calls
            for message in call.input
            for part in message.parts
            if isinstance(part, ToolCallResponsePart)
        }
        return [
            ToolCall(part.name, part.arguments, results.get(part.id)) for part in _called(calls)
        ]

    @property
    def tokens(self) -> Tokens | None:
        """The tokens so far; None if no answer tells any."""
        found = [
            call.usage
            for one in self.exchanges
            if not one.is_auxiliary and (call := model_call(one)) is not None and call.usage
        ]
        if not found:
            return None
        return Tokens(
            sum(usage.input_tokens or 0 for usage in found),
            sum(usage.output_tokens or 0 for usage in found),
        )

    @property
    def cost(self) -> Decimal | None:
        """What the run cost when it was recorded, in US dollars; None if a price is not known."""
        total = Decimal(0)
        for one in self.exchanges:
            call = model_call(one)
            if call is None or call.error is not None:
                continue
            if (price := price_of(one, call)) is None:
                return None
            total += price
        return total

    def assert_matches(self, expected: str | Path) -> None:
        """Check that this run asked what another tape holds: see `tracefork_core.assert_matches`.

        Raises:
            AssertionError: it did not; the text says where they differ.
        """
        __tracebackhide__ = True
        from tracefork_core.comparing.assertions import (
            assert_matches,  # Loaded here: it takes long.
        )

        assert_matches(self._taped.so_far(), expected)


def _called(calls: Sequence[ModelCall]) -> list[ToolCallPart]:
    return [part for call in calls for part in call.tool_calls]
