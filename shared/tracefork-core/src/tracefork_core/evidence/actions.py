"""The actions of a run, read from its tape: each call of a tool with its result, and each stop."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping

import msgspec

from tracefork_core.evidence.signature import signature
from tracefork_core.exchange.contract import Failure
from tracefork_core.providers import Json, ModelCall, is_bounded, model_call, tool_use
from tracefork_core.run.untaped import untaped_calls
from tracefork_core.tape import Exchange, Tape
from tracefork_core.tape.event import SideEffects

_EXIT_NAMES = ("exit_code", "exitcode", "returncode", "return_code", "exit_status")
_EXIT_TEXT = re.compile(
    r"(?i)\b(?:exit(?:ed)?(?: with)?(?: code| status)?|return ?code)[:= ]+(-?\d{1,3})\b"
)
_URL = re.compile(r"https?://[^\s\"'<>\\)\]}]+")
_ID_NAMES = re.compile(r"(?i)^(?:id|uuid|number|[a-z_]+_id|[a-z]+Id)$")
_MOST_CREATED = 50


class Result(msgspec.Struct, frozen=True, omit_defaults=True):
    """What came of a call.

    Attributes:
        status: "ok", "error" or "unknown" (a call that is not on the tape).
        exit_code: the exit code that the result names.
        error: the error, as the class of the exception and its message.
        signature: the signature of the failure; the same for the same failure in another run. It
            is that of the result, where that names no exit code.
    """

    status: str
    exit_code: int | None = None
    error: str | None = None
    signature: str | None = None


class Action(msgspec.Struct, frozen=True, omit_defaults=True):
    """One action of the agent.

    Attributes:
        n: the exchange that it is on.
        kind: "tool" or "stop".
        tool, arguments: what was called, and with what.
        reason: why the model stopped.
        result: what came of it.
        side_effects: which files it changed; None if that was not watched.
        created: ids and URLs in the result of a call that is not known to read only.
    """

    n: int
    kind: str
    tool: str | None = None
    arguments: Json = None
    reason: str | None = None
    result: Result | None = None
    side_effects: SideEffects | None = None
    created: list[str] = []


def actions(tape: Tape) -> list[Action]:
    """Return the actions of a run in their order.

    Raises:
        TapeError: the tape is corrupt.
    """
    untaped: dict[int, list[Action]] = {}
    for exchange, part in untaped_calls(tape):
        missing = Action(exchange.n, "tool", part.name, part.arguments, result=Result("unknown"))
        untaped.setdefault(exchange.n, []).append(missing)
    return [
        action
        for exchange in tape.exchanges
        if not exchange.is_auxiliary
        for action in (*_of(exchange), *untaped.get(exchange.n, []))
    ]


def _of(exchange: Exchange) -> Iterator[Action]:
    call = model_call(exchange)
    if call is not None:
        if not call.tool_calls and (reason := _stop(exchange, call)):
            yield Action(exchange.n, "stop", reason=reason)
        return
    use = tool_use(exchange)
    if use is None and exchange.aside.seam != "tool":
        return
    name = use.name if use else exchange.url.removeprefix("tool:")
    arguments = use.arguments if use else _json(exchange.request_body)
    value = use.result if use else _json(exchange.response_body)
    is_error = use.is_error if use else False
    created = [] if exchange.aside.effect in ("read", "pure") else _created(value)
    yield Action(
        exchange.n,
        "tool",
        name,
        arguments,
        result=_result(exchange, value, is_error=is_error),
        side_effects=exchange.aside.side_effects,
        created=created,
    )


def _stop(exchange: Exchange, call: ModelCall) -> str:
    if call.error is not None:
        return call.error.type
    if exchange.failure is not None:
        return exchange.failure.kind
    return call.finish_reasons[0] if call.finish_reasons else ""


def result_of(body: bytes, failure: Failure | None) -> Result:
    """Return what came of a call of a tool, from its result as it lies on a tape."""
    if failure is not None:
        return _failed(failure.kind, failure.message)
    return _judged(_json(body), is_error=False)


def _result(exchange: Exchange, value: Json, *, is_error: bool) -> Result:
    if exchange.failure is not None:
        return _failed(exchange.failure.kind, exchange.failure.message)
    return _judged(value, is_error=is_error)


def _failed(kind: str, message: str) -> Result:
    error = f"{kind}: {message}"
    return Result("error", None, error, signature(error))


def _judged(value: Json, *, is_error: bool) -> Result:
    code, text = _exit_code(value), _text(value)
    if is_error or code:
        return Result("error", code, text, signature(text))
    # Without an exit code, only the words of a result say whether a check passed.
    return Result("ok", code, None, signature(text) if code is None else None)


def _exit_code(value: Json) -> int | None:
    """Return the exit code that a result names."""
    if isinstance(value, Mapping):
        for name in _EXIT_NAMES:
            code = value.get(name)
            if isinstance(code, int) and not isinstance(code, bool):
                return code
    match = _EXIT_TEXT.search(value) if isinstance(value, str) else None
    return int(match[1]) if match else None


def _text(value: Json) -> str:
    """Return the output in a result: its text, or those of its fields that are output."""
    if isinstance(value, str):
        return value
    if isinstance(value, Mapping):
        output = [value.get(name) for name in ("stdout", "output", "stderr", "error", "message")]
        if texts := [text for text in output if isinstance(text, str) and text]:
            return "\n".join(texts)
    return json.dumps(value, ensure_ascii=False, sort_keys=True)


def _created(value: Json) -> list[str]:
    found: dict[str, None] = {}
    waiting = [value]
    while waiting and len(found) < _MOST_CREATED:
        one = waiting.pop()
        if isinstance(one, Mapping):
            for name, item in one.items():
                if _ID_NAMES.match(name) and isinstance(item, str | int):
                    found[f"{name} {item}"] = None
                else:
                    waiting.append(item)
        elif isinstance(one, list):
            waiting += one
        elif isinstance(one, str):
            found.update(dict.fromkeys(_URL.findall(one)[:_MOST_CREATED]))
    return list(found)


def _json(body: bytes) -> Json:
    if not is_bounded(body):
        return None
    try:
        value: Json = json.loads(body)
    except (ValueError, RecursionError):
        return body.decode("utf-8", "backslashreplace")
    return value
