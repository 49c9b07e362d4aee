"""Carry out an intervention: build the answer that it gives, or the request that it sends."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import cast

from tracefork_core.errors import UsageError
from tracefork_core.exchange.contract import TOOL, TOOL_TEXT, TOOL_VALUE, Failure, Head, Request
from tracefork_core.providers import answering
from tracefork_core.providers.asking import edit
from tracefork_core.providers.decode import is_model_call
from tracefork_core.providers.formats import Answer, Format, Wanted, format_of
from tracefork_core.providers.lenient import Json
from tracefork_core.session.interventions import (
    Drop,
    Edit,
    Fail,
    Given,
    Replace,
    described,
)
from tracefork_core.tape import Exchange
from tracefork_core.tape.json_pointer import put

_FRAMING = frozenset({"content-length", "content-encoding", "transfer-encoding"})


def answer(change: Replace | Fail | Drop | Given, request: Request, recorded: Exchange) -> Given:
    """Return the answer that an intervention gives to a request.

    Raises:
        UsageError: the request cannot get an answer of this kind.
    """
    own = format_of(request.method, request.url)
    if own is not None and (wanted := _wanted(change, own)) is not None:
        return _given(own.encode(request, wanted, _before(recorded)))
    asks_model = _asks_model(request)
    match change:
        case Given():
            return change
        case Fail(status=None, kind=kind):
            return Given(Failure(kind or "ConnectError", change.message))
        case Fail(status=int(status)) if asks_model:
            return _given(answering.failure_answer(request, status, change.message))
        case Fail(status=int(status)) if request.seam == TOOL:
            raise UsageError(
                f"tracefork: {request.url} is a tool and has no status. Name the exception it "
                "fails with: Fail(kind='TimeoutError')."
            )
        case Fail(status=int(status)):
            return _whole(status, recorded, change.message.encode())
        case Drop() if asks_model:
            return _given(answering.answer(request, _before(recorded), text=""))
        case Drop():
            return _whole(recorded.status or 200, recorded, b"")
        case Replace():
            return _replaced(change, request, recorded, asks_model=asks_model)
    raise AssertionError(change)


def edited(change: Edit, request: Request) -> Request:
    """Return the request that is sent instead of the agent's.

    Raises:
        UsageError: the request has no such part.
    """
    own = format_of(request.method, request.url)
    if own is not None:
        url, body = own.reword(request, described(change))
        return request._replace(url=url, body=body)
    if set(described(change)) == {"values"} and not _asks_model(request):
        return request._replace(body=_with_values(request, change.values))
    url, body = edit(
        request,
        model=change.model,
        temperature=change.temperature,
        system=change.system,
        prompt=change.prompt,
        drop_message=change.drop_message,
        tools=change.tools,
        set=change.values,
    )
    return request._replace(url=url, body=body)


def _wanted(change: Replace | Fail | Drop | Given, own: Format) -> Wanted | None:
    """Return what an adapter's own format has to say; None if that needs no knowledge of it."""
    match change:
        case Drop():
            return Wanted(text="")
        case Fail(status=int(status)):
            return Wanted(text=change.message, status=status)
        case Fail(kind=str(kind)) if (stated := own.status_of(kind)) is not None:
            return Wanted(text=change.message, status=stated, error=kind)
        case Replace(body=None):
            document = cast(Json, change.document) if change.has_document else None
            calls = tuple(change.tool_calls)
            return Wanted(change.text, calls, document, change.has_document)
    return None


def _asks_model(request: Request) -> bool:
    return is_model_call(request.method, request.url, request.headers, request.body)


def _with_values(request: Request, values: Mapping[str, object]) -> bytes:
    """Return a JSON body with other values at some pointers."""
    try:
        document = json.loads(request.body)
    except ValueError as error:
        where = f"{request.method} {request.url.partition('?')[0]}"
        raise UsageError(f"tracefork: cannot edit {where}: its body is not JSON.") from error
    for pointer, value in values.items():
        put(document, pointer, cast(Json, value))
    return json.dumps(document, ensure_ascii=False).encode()


def _replaced(change: Replace, request: Request, recorded: Exchange, *, asks_model: bool) -> Given:
    if change.body is not None and request.seam == TOOL:
        raise UsageError(
            f"tracefork: {request.url} is a tool and returns a value, not bytes. Use "
            "Replace(document=…) or Replace(text=…)."
        )
    if change.body is not None:
        return _whole(recorded.status or 200, recorded, change.body)
    if change.has_document:
        if asks_model:
            before = _before(recorded)
            return _given(answering.from_document(request, change.document, before))
        body = json.dumps(change.document, ensure_ascii=False).encode()
        return _whole(recorded.status or 200, recorded, body)
    if not asks_model:
        if change.text is None or change.tool_calls:
            raise UsageError(
                f"tracefork: exchange {recorded.n} calls no known model API "
                f"({request.method} {request.url.partition('?')[0]}). Use Replace(body=…) or "
                "Replace(document=…)."
            )
        return _said(change.text, request, recorded)
    return _given(
        answering.answer(
            request, _before(recorded), text=change.text, tool_calls=change.tool_calls or None
        )
    )


def _said(text: str, request: Request, recorded: Exchange) -> Given:
    """Return a text as the answer of something that is no model."""
    body = text.encode()
    if request.seam != TOOL:
        return _whole(recorded.status or 200, recorded, body)
    if ("content-type", TOOL_VALUE) in recorded.response_headers:
        return Given(Head(200, "OK", (("content-type", TOOL_TEXT),)), (body,))
    return _whole(200, recorded, json.dumps(text).encode())  # Of a stream it is the one value.


def _before(recorded: Exchange) -> Answer | None:
    if recorded.status is None:
        return None
    return Answer(recorded.status, recorded.response_headers, tuple(recorded.chunks))


def _given(made: Answer) -> Given:
    return Given(Head(made.status, "", tuple(made.headers)), made.chunks)


def _whole(status: int, recorded: Exchange, body: bytes) -> Given:
    """Return the recorded answer with another status and body."""
    unframed = [pair for pair in recorded.response_headers if pair[0].lower() not in _FRAMING]
    headers = (*unframed, ("content-length", str(len(body))))
    return Given(Head(status, "", headers), (body,) if body else ())
