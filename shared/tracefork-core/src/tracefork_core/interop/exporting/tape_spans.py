"""The spans of a tape: one around the run, one for each step, and one for each exchange.

The ids are hashes of the digest and of the place in the run. So a second export of a run is the
same trace, and a collector that keeps a span by its id keeps it once.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from hashlib import sha256
from urllib.parse import urlsplit

from tracefork_core.blaming.ranking import ranking
from tracefork_core.blaming.report import Report, sentence
from tracefork_core.exchange.contract import AFTER
from tracefork_core.interop import conventions
from tracefork_core.interop.exporting import gen_ai, openinference
from tracefork_core.interop.span import Span, SpanEvent
from tracefork_core.providers import Json, ModelCall, ToolUse, model_call, tool_use
from tracefork_core.providers.lenient import parse
from tracefork_core.providers.prices import price_of
from tracefork_core.tape import Exchange, StepRecord, Tape
from tracefork_core.tape.imported import UNKNOWN

_EXECUTE = "execute_tool"
_OPERATIONS = {
    "agent": "invoke_agent",
    "crew": "invoke_agent",
    "run": "invoke_agent",
    "knowledge": "retrieval",
    "retrieval": "retrieval",
    "retriever": "retrieval",
    "tool": _EXECUTE,
}
_NAME_OF = {"invoke_agent": "gen_ai.agent.name", _EXECUTE: "gen_ai.tool.name"}
_CLASS = re.compile(r"([A-Za-z_][\w.]*)(?:[(:]|$)")
"""The class of an error at the start of its words: `KeyError('x')`, `KeyError: x`."""
_OTHER = "_OTHER"
"""What the conventions call an error whose class is not known."""
_STREAM = "application/x-ndjson"
_SECOND = 1_000_000_000


@dataclass(frozen=True, slots=True)
class Choice:
    """What is exported.

    Attributes:
        gen_ai: whether spans have the names of OpenTelemetry's conventions for AI.
        openinference: whether they have those of OpenInference.
        content: whether they say what was said.
        blame: the last blame of the run, if there is one.
    """

    gen_ai: bool = True
    openinference: bool = True
    content: bool = False
    blame: Report | None = None


def trace_id(digest: str) -> str:
    """Return the id of the trace of a run, 32 hexadecimal digits."""
    return sha256(f"{digest}/trace".encode()).hexdigest()[:32]


def spans_of(tape: Tape, name: str, choice: Choice) -> Iterator[Span]:
    """Yield the spans of a tape, each after the one around it.

    Args:
        tape: the tape; without bodies, its spans have no model and no counts.
        name: what the run is called.
        choice: what is exported.
    """
    maker = SpanMaker(tape.digest, choice, {conventions.DIGEST: tape.digest})
    maker.meet(tape.steps)
    calls = [maker.exchange(exchange) for exchange in tape.exchanges]
    yield maker.run(tape, name)
    yield from map(maker.step, tape.steps)
    yield from calls


class SpanMaker:
    """Makes the spans of one run.

    Args:
        key: what the ids of the spans are made from: the digest, where it is known.
        choice: what is exported.
        common: the attributes of each span.
    """

    def __init__(self, key: str, choice: Choice, common: Mapping[str, Json]) -> None:
        self._ids = _Ids(key)
        self._choice = choice
        self._common = common
        self._blamed = _Blamed(choice)
        self._around_tools: set[str | None] = set()

    def meet(self, steps: Iterable[StepRecord]) -> None:
        """Learn of steps that spans may stand in."""
        self._ids.steps.update(step.id for step in steps)

    def run(self, tape: Tape, name: str) -> Span:
        """Return the span around a run."""
        steps, exchanges = tape.steps, tape.exchanges
        ends = [exchange.aside.started + (exchange.aside.took or 0) for exchange in exchanges]
        ends += [step.ended or step.started for step in steps]
        starts = [exchange.aside.started for exchange in exchanges]
        starts += [step.started for step in steps]
        receipt = tape.receipt
        failed = receipt is not None and receipt.outcome not in ("ok", UNKNOWN)
        kind = openinference.of_step("run", name) if self._choice.openinference else {}
        return Span(
            id=self._ids.of("run"),
            name=name,
            started=min(starts, default=0),
            ended=max(ends, default=0),
            error=receipt.outcome if receipt is not None and failed else None,
            attributes={
                **self._common,
                conventions.RUN: name,
                conventions.DIGEST: tape.digest,
                conventions.OUTCOME: receipt.outcome if receipt is not None else None,
                **kind,
                **self._blamed.of_run(),
            },
        )

    def step(self, step: StepRecord) -> Span:
        """Return the span of a step, once the spans of its exchanges are made."""
        is_around = step.kind == "tool" and step.id in self._around_tools
        span = _of_step(step, self._ids, self._choice, is_around=is_around)
        span.attributes |= self._common
        return span

    def exchange(self, exchange: Exchange) -> Span:
        """Return the span of an exchange."""
        span = _of_exchange(exchange, self._ids, self._choice)
        if span.name.startswith(f"{_EXECUTE} "):
            self._around_tools.add(exchange.step)
        span.attributes |= {
            **self._common,
            conventions.EXCHANGE: exchange.n,
            **self._blamed.attributes(exchange.n),
        }
        span.events += self._blamed.events(exchange.n)
        return span


class _Ids:
    """The ids of the spans of one run."""

    def __init__(self, key: str) -> None:
        self._key = key
        self.steps: set[object] = set()

    def of(self, place: str) -> str:
        return sha256(f"{self._key}/{place}".encode()).hexdigest()[:16]

    def around(self, step: str | None) -> str:
        """Return the id of the span around what runs in a step, if that is on the tape."""
        return self.of(f"step/{step}") if step in self.steps else self.of("run")

    def of_steps(self, steps: Iterable[object]) -> list[str]:
        """Return the ids of the steps that are on the tape."""
        known = (step for step in steps if isinstance(step, str) and step in self.steps)
        return [self.of(f"step/{step}") for step in known]


def _of_step(step: StepRecord, ids: _Ids, choice: Choice, *, is_around: bool) -> Span:
    """Return the span of a step; `is_around` a call of a tool that is a span of its own."""
    operation = None if is_around else _OPERATIONS.get(step.kind)
    attributes: dict[str, Json] = {conventions.STEP_KIND: step.kind}
    if choice.gen_ai and operation is not None:
        attributes["gen_ai.operation.name"] = operation
        if name := _NAME_OF.get(operation):
            attributes[name] = step.name
    if choice.openinference:
        kind = "node" if is_around else step.kind
        attributes |= openinference.of_step(kind, step.name)
    if step.error:
        error = _CLASS.match(step.error)
        attributes["error.type"] = error[1] if error else _OTHER
    waited = step.detail.get(AFTER)
    return Span(
        id=ids.of(f"step/{step.id}"),
        name=f"{operation} {step.name}" if operation else step.name,
        parent=ids.around(step.parent),
        started=step.started,
        ended=step.ended or step.started,
        error=step.error and (step.error if choice.content else str(attributes["error.type"])),
        attributes=attributes,
        links=ids.of_steps(waited) if isinstance(waited, list) else [],
    )


def _of_exchange(exchange: Exchange, ids: _Ids, choice: Choice) -> Span:
    call = model_call(exchange)
    use = None if call else tool_use(exchange) or _own_tool(exchange)
    span = Span(
        id=ids.of(f"exchange/{exchange.n}"),
        name=_name(exchange, call, use),
        parent=ids.around(exchange.step),
        kind="internal" if use else "client",
        started=exchange.aside.started,
        ended=exchange.aside.started + (exchange.aside.took or 0),
    )
    if call is not None:
        span.attributes |= _of_call(exchange, call, choice)
    elif use is not None:
        span.attributes |= _of_tool(use, choice)
    else:
        span.attributes |= _of_request(exchange, choice)
    kind, message = _problem(exchange, call, use)
    if kind is not None:
        span.attributes["error.type"] = kind
        span.error = message if choice.content else kind
    return span


def _name(exchange: Exchange, call: ModelCall | None, use: ToolUse | None) -> str:
    if call is not None:
        return f"{call.operation} {call.request_model or ''}".rstrip()
    return f"{_EXECUTE} {use.name}" if use is not None else exchange.method


def _of_call(exchange: Exchange, call: ModelCall, choice: Choice) -> dict[str, Json]:
    written: dict[str, Json] = {conventions.API: call.api}
    price = price_of(exchange, call)
    if choice.gen_ai:
        written |= gen_ai.of_call(call, content=choice.content) | _server(exchange)
        if exchange.aside.first_byte is not None and call.stream:
            first = exchange.aside.first_byte / _SECOND
            written["gen_ai.response.time_to_first_chunk"] = first
    if choice.openinference:
        written |= openinference.of_call(call, content=choice.content)
        if price is not None:
            written["llm.cost.total"] = float(price)
    return written


def _of_tool(use: ToolUse, choice: Choice) -> dict[str, Json]:
    written: dict[str, Json] = {}
    if choice.gen_ai:
        written |= gen_ai.of_tool(use, content=choice.content)
    if choice.openinference:
        written |= openinference.of_tool(use, content=choice.content)
    return written


def _of_request(exchange: Exchange, choice: Choice) -> dict[str, Json]:
    """Return the attributes of a request that asks neither a model nor a tool."""
    written: dict[str, Json] = {
        "http.request.method": exchange.method,
        "url.full": exchange.url if choice.content else exchange.url.partition("?")[0],
        **_server(exchange),
    }
    if exchange.status is not None:
        written["http.response.status_code"] = exchange.status
    if choice.openinference:
        written[openinference.KIND] = "CHAIN"
    return written


def _server(exchange: Exchange) -> dict[str, Json]:
    try:
        parts = urlsplit(exchange.url)
        host, port = parts.hostname, parts.port
    except ValueError:
        return {}
    default = {"https": 443, "http": 80}.get(parts.scheme)
    port = port or default
    if host is None or port is None:
        return {}
    return {"server.address": host, "server.port": port}


def _own_tool(exchange: Exchange) -> ToolUse | None:
    """Return a call of a function that was made a tool."""
    if exchange.aside.seam != "tool":
        return None
    asked = parse(exchange.request_body) if exchange.has_bodies else None
    answered = _returned(exchange) if exchange.has_bodies else None
    return ToolUse(exchange.url.removeprefix("tool:"), asked, result=answered)


def _returned(exchange: Exchange) -> Json:
    """Return what a tool returned; of one that yields, the list of what it yielded."""
    kinds = (value for name, value in exchange.response_headers if name.lower() == "content-type")
    if next(kinds, "").startswith(_STREAM):
        return [parse(line) for line in exchange.response_body.splitlines()]
    return parse(exchange.response_body)


def _problem(
    exchange: Exchange, call: ModelCall | None, use: ToolUse | None
) -> tuple[str | None, str | None]:
    """Return the kind of the error that an exchange ended with, and what it says."""
    if exchange.failure is not None:
        return exchange.failure.kind, exchange.failure.message or exchange.failure.kind
    if call is not None and call.error is not None:
        return call.error.type, call.error.message or call.error.type
    if use is not None and use.is_error:
        return "tool_error", "the tool returned an error"
    if exchange.status is not None and exchange.status >= 400:
        return str(exchange.status), f"status {exchange.status}"
    return None, None


class _Blamed:
    """What the last blame of the run found, by exchange."""

    def __init__(self, choice: Choice) -> None:
        self._report = choice.blame
        self._content = choice.content
        ranked = ranking(choice.blame) if choice.blame is not None else []
        self._ranked = {each.exchange: each for each in ranked}

    def of_run(self) -> dict[str, Json]:
        if self._report is None:
            return {}
        verdict = self._report.result.verdict
        said: dict[str, Json] = {
            f"{conventions.BLAME}.verdict": verdict.kind,
            f"{conventions.BLAME}.certain": verdict.certain,
            f"{conventions.BLAME}.exchanges": list(verdict.units),
        }
        if self._content:
            said[f"{conventions.BLAME}.sentence"] = sentence(self._report)
        return said

    def attributes(self, n: int) -> dict[str, Json]:
        """Return the figures of an exchange that has a part in the failure."""
        found = self._ranked.get(n)
        if found is None:
            return {}
        figures: dict[str, Json] = {
            "verdict": found.verdict or None,
            "effect": found.effect,
            "effect.low": found.low,
            "effect.high": found.high,
            "probability": found.probability,
            "draws": found.draws,
        }
        return {
            f"{conventions.BLAME}.{name}": value
            for name, value in figures.items()
            if value is not None
        }

    def events(self, n: int) -> list[SpanEvent]:
        """Return an event for an exchange that the verdict names: viewers list those."""
        found = self._ranked.get(n)
        if found is None or found.verdict not in ("named", "likely"):
            return []
        return [SpanEvent(conventions.BLAME, self.attributes(n))]
