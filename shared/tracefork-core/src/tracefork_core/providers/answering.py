"""Make an answer to a request, in the wire format of its provider.

`answer` makes one from a text and tool calls, `from_document` from a whole response document.
`failure_answer` makes an HTTP error. An answer or document is a stream exactly if the request asks
for one. `decode` can read all of them back.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256

from tracefork_core.errors import UsageError
from tracefork_core.providers.anthropic import fold as fold_messages
from tracefork_core.providers.anthropic_answer import messages_document, messages_stream
from tracefork_core.providers.call import ModelCall
from tracefork_core.providers.decode import decode
from tracefork_core.providers.draft import Call, Draft
from tracefork_core.providers.formats import Answer, Asked
from tracefork_core.providers.gemini import fold as fold_gemini
from tracefork_core.providers.gemini_answer import gemini_document, gemini_stream
from tracefork_core.providers.lenient import MAX_DEPTH, Json, compact, parse
from tracefork_core.providers.openai_chat import fold as fold_chat
from tracefork_core.providers.openai_chat_answer import chat_document, chat_stream
from tracefork_core.providers.openai_responses import fold as fold_responses
from tracefork_core.providers.openai_responses_answer import responses_document, responses_stream
from tracefork_core.providers.question import Question, read_question
from tracefork_core.providers.realtime_answer import live_stream, realtime_stream
from tracefork_core.providers.wire import read_wire

ToolCalls = Sequence[tuple[str, Mapping[str, object] | str]]

# Not copied to a new answer: they describe the recorded bytes, or tell a client to retry.
_OF_THE_BYTES = frozenset(
    "connection content-encoding content-length content-md5 content-type digest etag keep-alive"
    " retry-after retry-after-ms trailer transfer-encoding x-should-retry".split()
)
# How many levels of JSON the providers' documents and events put around a call's arguments.
_AROUND = 12

_OPENAI_TYPES = {429: "requests"}
_OPENAI_CODES = {401: "invalid_api_key", 429: "rate_limit_exceeded"}
_ANTHROPIC_TYPES = {
    401: "authentication_error",
    402: "billing_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    504: "timeout_error",
    529: "overloaded_error",
}
_GOOGLE_STATUSES = {
    400: "INVALID_ARGUMENT",
    401: "UNAUTHENTICATED",
    403: "PERMISSION_DENIED",
    404: "NOT_FOUND",
    409: "ABORTED",
    429: "RESOURCE_EXHAUSTED",
    499: "CANCELLED",
    500: "INTERNAL",
    501: "UNIMPLEMENTED",
    503: "UNAVAILABLE",
    504: "DEADLINE_EXCEEDED",
}


@dataclass(frozen=True, slots=True)
class _Form:
    """The functions that write one wire format; a whole response must have `field`."""

    field: str
    document: Callable[[Draft], dict[str, Json]]
    stream: Callable[[Question, dict[str, Json]], Iterator[bytes]]
    fold: Callable[[Sequence[dict[str, Json]]], dict[str, Json]]


FORMS = {
    "openai.chat_completions": _Form("choices", chat_document, chat_stream, fold_chat),
    "openai.responses": _Form("output", responses_document, responses_stream, fold_responses),
    "anthropic.messages": _Form("content", messages_document, messages_stream, fold_messages),
    "gemini": _Form("candidates", gemini_document, gemini_stream, fold_gemini),
    "openai.realtime": _Form("output", responses_document, realtime_stream, fold_responses),
    "gemini.live": _Form("candidates", gemini_document, live_stream, fold_gemini),
}
"""How each wire format is written."""
_GENERATIONS = ("chat", "generate_content")


def answer(
    request: Asked,
    recorded: Answer | None = None,
    *,
    text: str | None,
    tool_calls: ToolCalls | None = None,
) -> Answer:
    """Answer a request with a text, tool calls or both.

    Ids, model and token counts are copied from the recorded answer. Without one they are derived
    from the request and the answer, so they are the same every time. The arguments of a tool call
    are an object, or (OpenAI only) text that is sent unchanged.

    Raises:
        UsageError: The request does not ask a model for text, the answer is empty, or UTF-8 cannot
            encode it.
    """
    question = read_question(request)
    if question.call.operation not in _GENERATIONS:
        raise UsageError(
            f"{question.place} asks for {question.call.operation}, which a text or tool calls"
            " cannot answer. Give a whole response document"
        )
    calls = tuple(checked_call(name, arguments) for name, arguments in tool_calls or ())
    if text is None and not calls:
        raise UsageError("an answer needs a text (which may be empty) or a tool call")
    draft = _draft(request, question, recorded, text, calls)
    document = FORMS[question.call.api].document(draft)
    return _rendered(question, document, recorded)


def from_document(request: Asked, document: object, recorded: Answer | None = None) -> Answer:
    """Answer a request with a whole response document, as a stream if the request asks for one.

    Raises:
        UsageError: The document is not a response to this request.
    """
    question = read_question(request)
    form, whole = FORMS.get(question.call.api), parse(compact(document))
    if not isinstance(whole, dict):
        raise UsageError(
            f"a response to {question.place} must be a JSON object (got {document!r:.60})"
        )
    # When Gemini refuses a prompt, its response has no candidates.
    needed = {form.field, "promptFeedback"} if form else set()
    if question.call.operation in _GENERATIONS and not needed & whole.keys():
        raise UsageError(
            f"a response to {question.place} must have {form.field if form else ''!r}; this one has"
            f" {', '.join(map(repr, whole)) or 'no fields'}."
            " To answer with an error, give its status and message"
        )
    return _rendered(question, whole, recorded)


def failure_answer(
    request: Asked, status: int, message: str, retry_after: float | None = None
) -> Answer:
    """Answer a request with an HTTP error; `retry_after` is in seconds.

    Raises:
        UsageError: The status is not from 400 to 599.
    """
    question = read_question(request)
    if not 400 <= status <= 599:
        raise UsageError(f"the status of an error must be from 400 to 599 (got {status})")
    draft = _draft(request, question, None, message, ())
    body = compact(failure_document(draft, status, message, retry_after)).encode()
    headers = _whole_headers(question, body)
    return Answer(status, (*headers, *retry_headers(question, retry_after)), (body,))


def checked_call(name: str, arguments: Mapping[str, object] | str) -> Call:
    """Return a tool call of an answer.

    Raises:
        UsageError: it has no name, or its arguments cannot be read back.
    """
    if not name:
        raise UsageError("a tool call needs the name of its tool")
    if isinstance(arguments, str):
        return Call(name, arguments)
    # Parse what a reader will see: a tuple becomes a list, and too deep nesting cannot be read.
    read = parse("[" * _AROUND + compact(arguments) + "]" * _AROUND)
    while isinstance(read, list):
        read = read[0]
    if not isinstance(read, dict):
        raise UsageError(
            f"the arguments of {name!r} must be an object, nested at most"
            f" {MAX_DEPTH - _AROUND} levels deep"
        )
    return Call(name, read)


def _draft(
    request: Asked,
    question: Question,
    recorded: Answer | None,
    text: str | None,
    calls: tuple[Call, ...],
) -> Draft:
    said = [text, [[call.name, call.arguments] for call in calls]]
    seed = sha256(request.url.encode() + b"\n" + request.body + compact(said).encode()).digest()
    before, meaning = _before(request, question, recorded)
    return Draft(question, text, calls, before, meaning, seed)


def _before(
    request: Asked, question: Question, recorded: Answer | None
) -> tuple[dict[str, Json], ModelCall | None]:
    if recorded is None:
        return {}, None
    asked = (request.url, request.headers, request.body)
    answered = (recorded.status, recorded.headers, recorded.body)
    wire, call = read_wire(*asked, *answered), decode(request.method, *asked, *answered)
    if wire is None or call is None or call.error:
        return {}, None
    whole = FORMS[question.call.api].fold(wire.chunks) if wire.chunks else wire.body
    return {key: value for key, value in whole.items() if value is not None}, call


def _rendered(question: Question, document: dict[str, Json], recorded: Answer | None) -> Answer:
    kept = () if recorded is None or recorded.status >= 400 else recorded.headers
    taken = tuple(pair for pair in kept if pair[0].lower() not in _OF_THE_BYTES)
    form = FORMS.get(question.call.api)
    if form is None or not question.streams:
        body = compact(document).encode()
        return Answer(200, (*_whole_headers(question, body), *taken), (body,))
    chunks = tuple(form.stream(question, document))
    return Answer(200, (("content-type", _stream_type(question)), *taken), chunks)


def _whole_headers(question: Question, body: bytes) -> tuple[tuple[str, str], ...]:
    kind = "application/json"
    if question.call.api == "gemini":
        kind += "; charset=UTF-8"
    return (("content-type", kind), ("content-length", str(len(body))))


def _stream_type(question: Question) -> str:
    if question.call.api != "gemini":
        return "text/event-stream; charset=utf-8"
    return "text/event-stream" if question.wants_events else "application/json; charset=UTF-8"


def failure_document(draft: Draft, status: int, message: str, retry_after: float | None) -> Json:
    """Return the body of an error answer; in Gemini's arrays it is the only element."""
    question = draft.question
    provider, api = question.call.provider, question.call.api
    if api == "gemini" or provider == "gcp.vertex_ai":
        body = _google(status, message, retry_after)
        return (
            [body] if question.streams and api == "gemini" and not question.wants_events else body
        )
    if api == "anthropic.messages":
        stated: Json = {"type": _type(_ANTHROPIC_TYPES, status, "api_error"), "message": message}
        return {"type": "error", "error": stated, "request_id": draft.id("req_01", 22)}
    if provider == "azure.ai.openai":
        return {"error": {"code": str(status), "message": message}}
    if provider == "openrouter":
        return {"error": {"message": message, "code": status}}
    return {
        "error": {
            "message": message,
            "type": _type(_OPENAI_TYPES, status, "server_error"),
            "param": None,
            "code": _OPENAI_CODES.get(status),
        }
    }


def retry_headers(question: Question, retry_after: float | None) -> list[tuple[str, str]]:
    """Return the headers that say when to retry; empty for Gemini, which uses the body."""
    if retry_after is None or question.call.api == "gemini":
        return []
    headers = [("retry-after", str(math.ceil(retry_after)))]
    if retry_after != int(retry_after):
        # `retry-after` has whole seconds. The clients of OpenAI and Anthropic read -ms first.
        headers.append(("retry-after-ms", str(round(retry_after * 1000))))
    return headers


def _type(types: dict[int, str], status: int, failed: str) -> str:
    return types.get(status, failed if status >= 500 else "invalid_request_error")


def _google(status: int, message: str, retry_after: float | None) -> Json:
    error: dict[str, Json] = {
        "code": status,
        "message": message,
        "status": _GOOGLE_STATUSES.get(status, "UNKNOWN"),
    }
    if retry_after is not None:
        kind = "type.googleapis.com/google.rpc.RetryInfo"
        error["details"] = [{"@type": kind, "retryDelay": f"{retry_after:g}s"}]
    return {"error": error}
