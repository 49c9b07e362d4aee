"""The rows of a page's timeline: one per exchange, in columns."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from urllib.parse import urlsplit

from tracefork_core.cli.display.account import model_name
from tracefork_core.cli.display.content import content
from tracefork_core.cli.display.text import printable
from tracefork_core.cli.display.tool_call import is_tool
from tracefork_core.cli.report.document import Index, Kind, Step
from tracefork_core.providers import ModelCall, tool_use
from tracefork_core.tape import Exchange, StepRecord

_GIST = 60
_UNKNOWN = -1
_MILLION = 1_000_000


class Timeline:
    """Fills the columns. Give it each exchange in its order."""

    def __init__(self, steps: Sequence[StepRecord], began: int, *, content: bool) -> None:
        self.index = Index()
        self.lanes: dict[str, int] = {}
        self._began, self._content = began, content
        self._steps: dict[str, int] = {}
        self.meet(steps)

    def meet(self, steps: Sequence[StepRecord]) -> None:
        """Learn the steps so far: a run that is still recorded has more of them each time."""
        self._steps = {step.id: i for i, step in enumerate(steps)}
        self.index.steps = [
            Step(
                step.kind,
                step.name,
                self._steps.get(step.parent or "", _UNKNOWN),
                self._milliseconds(step.started),
                _UNKNOWN if step.ended is None else round((step.ended - step.started) / _MILLION),
                step.error if self._content else step.error and "error",
            )
            for step in steps
        ]

    def add(
        self, exchange: Exchange, call: ModelCall | None, price: Decimal | None, message: int
    ) -> None:
        """Add the row of an exchange; `message` is the number of its first new message."""
        index, aside, usage = self.index, exchange.aside, call.usage if call else None
        kind, label = _label(exchange, call, content=self._content)
        index.kind.append(kind)
        index.label.append(label)
        index.gist.append(content(exchange, call).text[:_GIST] if self._content else "")
        index.lane.append(self.lanes.setdefault(exchange.lane, len(self.lanes)))
        index.step.append(self._steps.get(exchange.step or "", _UNKNOWN))
        index.started.append(self._milliseconds(aside.started))
        index.took.append(_UNKNOWN if aside.took is None else round(aside.took / _MILLION))
        index.tokens_in.append(_known(usage.input_tokens if usage else None))
        index.tokens_out.append(_known(usage.output_tokens if usage else None))
        index.cost.append(_UNKNOWN if price is None else round(price * _MILLION))
        index.message.append(message)
        if (error := error_of(exchange, call, content=self._content)) is not None:
            index.errors[str(exchange.n)] = error
        marks = ["auxiliary"] if exchange.is_auxiliary else []
        if aside.answered:
            marks.append(aside.answered)
        if marks:
            index.marks[str(exchange.n)] = marks

    def _milliseconds(self, nanoseconds: int) -> int:
        return max(0, round((nanoseconds - self._began) / _MILLION))


def _label(exchange: Exchange, call: ModelCall | None, *, content: bool) -> tuple[Kind, str]:
    if call is not None:
        return "model", model_name(call)
    if is_tool(exchange):
        use = tool_use(exchange)
        return "tool", printable(use.name if use else exchange.url.removeprefix("tool:"))
    url = urlsplit(exchange.url)
    path = (url.path or "/") if content else ""
    return "http", printable(f"{exchange.method} {url.netloc}{path}")


def _known(count: int | None) -> int:
    return _UNKNOWN if count is None else count


def error_of(exchange: Exchange, call: ModelCall | None, *, content: bool) -> str | None:
    """Return the error that an exchange ended with; without content, only its kind."""
    if exchange.failure is not None:
        kind, message = exchange.failure.kind, exchange.failure.message
    elif call is not None and call.error is not None:
        kind, message = call.error.type, call.error.message or ""
    elif exchange.status is None or exchange.status >= 400:
        kind, message = str(exchange.status or "no answer"), exchange.reason
    elif (use := tool_use(exchange)) is not None and use.is_error:
        kind, message = "error", str(use.result)
    else:
        return None
    return printable(f"{kind}: {message}" if message and content else kind)
