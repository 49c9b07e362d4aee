"""Answers made up for a request, in the form of the provider it is meant for.

`answer` says a text and tool calls, `from_document` gives a whole response of the provider's,
`failure_answer` refuses. Each is a stream exactly where the request asks for one, and `decode`
reads back what was said.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256

from tracefork_core.errors import UsageError
from tracefork_core.providers.anthropic import fold as fold_messages
from tracefork_core.providers.anthropic_answer import messages_document, messages_stream
from tracefork_core.providers.call import ModelCall
from tracefork_core.providers.decode import decode
from tracefork_core.providers.draft import Call, Draft
from tracefork_core.providers.encoding import compact
from tracefork_core.providers.gemini import fold as fold_gemini
from tracefork_core.providers.gemini_answer import gemini_document, gemini_stream
from tracefork_core.providers.lenient import MAX_DEPTH, Json, parse
from tracefork_core.providers.openai_chat import fold as fold_chat
from tracefork_core.providers.openai_chat_answer import chat_document, chat_stream
from tracefork_core.providers.openai_responses import fold as fold_responses
from tracefork_core.providers.openai_responses_answer import responses_document
from tracefork_core.providers.openai_responses_stream import responses_stream
from tracefork_core.providers.question import Asked, Question, read_question
from tracefork_core.providers.refusing import failure_document, retry_headers
from tracefork_core.providers.wire import Headers, read_wire

ToolCalls = Sequence[tuple[str, Mapping[str, object] | str]]

# They were true of the recorded bytes, or tell a client what to do about a failure.
_OF_THE_BYTES = frozenset(
    "connection content-encoding content-length content-md5 content-type digest etag keep-alive"
    " retry-after retry-after-ms trailer transfer-encoding x-should-retry".split()
)
# How deep the documents of the providers, and the events around them, put a call's arguments.
_AROUND = 12


@dataclass(frozen=True, slots=True)
class Answer:
    """Hold a response; `chunks` are its body as the network would deliver it."""

    status: int
    headers: Headers
    chunks: tuple[bytes, ...]

    @property
    def body(self) -> bytes:
        """Join the chunks."""
        return b"".join(self.chunks)


@dataclass(frozen=True, slots=True)
class _Form:
    """Write one wire format; `field` is what a whole response of it must have."""

    field: str
    document: Callable[[Draft], dict[str, Json]]
    stream: Callable[[Question, dict[str, Json]], Iterator[bytes]]
    fold: Callable[[Sequence[dict[str, Json]]], dict[str, Json]]


_FORMS = {
    "openai.chat_completions": _Form("choices", chat_document, chat_stream, fold_chat),
    "openai.responses": _Form("output", responses_document, responses_stream, fold_responses),
    "anthropic.messages": _Form("content", messages_document, messages_stream, fold_messages),
    "gemini": _Form("candidates", gemini_document, gemini_stream, fold_gemini),
}
_GENERATIONS = ("chat", "generate_content")


def answer(
    request: Asked,
    recorded: Answer | None = None,
    *,
    text: str | None,
    tool_calls: ToolCalls | None = None,
) -> Answer:
    """Say a text, tool calls or both in answer to a request.

    Ids, model and counts are those of the recorded answer where there is one, else made up, the
    same ones every time. Arguments are an object, or text to be sent as it is (OpenAI alone).
    UsageError where this cannot be said: nothing at all, half a character, no model's answer.
    """
    question = read_question(request)
    if question.call.operation not in _GENERATIONS:
        raise UsageError(
            f"{question.place} asks for {question.call.operation}, whose answer has no text and"
            " no tool calls: give a whole document"
        )
    calls = tuple(_checked(name, arguments) for name, arguments in tool_calls or ())
    if text is None and not calls:
        raise UsageError("an answer needs a text (it may be empty) or a tool call")
    draft = _draft(request, question, recorded, text, calls)
    document = _FORMS[question.call.api].document(draft)
    return _rendered(question, document, recorded)


def from_document(request: Asked, document: object, recorded: Answer | None = None) -> Answer:
    """Give a whole response document of the provider, as a stream where one is asked for.

    UsageError where it is not the response this request waits for.
    """
    question = read_question(request)
    form, whole = _FORMS.get(question.call.api), parse(compact(document))
    if not isinstance(whole, dict):
        raise UsageError(f"a response to {question.place} is a JSON object, not {document!r:.60}")
    # A prompt that Gemini refuses has no candidates.
    needed = {form.field, "promptFeedback"} if form else set()
    if question.call.operation in _GENERATIONS and not needed & whole.keys():
        raise UsageError(
            f"a response to {question.place} has {form.field if form else ''!r}; this has"
            f" {', '.join(map(repr, whole)) or 'nothing'}"
            " (an error is given with its status and message)"
        )
    return _rendered(question, whole, recorded)


def failure_answer(
    request: Asked, status: int, message: str, retry_after: float | None = None
) -> Answer:
    """Refuse a request with an HTTP status of 400 or more; `retry_after` is in seconds."""
    question = read_question(request)
    if not 400 <= status <= 599:
        raise UsageError(f"an error answer has a status from 400 to 599, not {status}")
    draft = _draft(request, question, None, message, ())
    body = compact(failure_document(draft, status, message, retry_after)).encode()
    headers = _whole_headers(question, body)
    return Answer(status, (*headers, *retry_headers(question, retry_after)), (body,))


def _checked(name: str, arguments: Mapping[str, object] | str) -> Call:
    if not name:
        raise UsageError("a tool call needs the name of the tool")
    if isinstance(arguments, str):
        return Call(name, arguments)
    # Read as it will be read: a tuple has become a list, and what is too deep is nothing.
    read = parse("[" * _AROUND + compact(arguments) + "]" * _AROUND)
    while isinstance(read, list):
        read = read[0]
    if not isinstance(read, dict):
        raise UsageError(
            f"the arguments of {name!r} are no object nested at most {MAX_DEPTH - _AROUND} deep"
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
    whole = _FORMS[question.call.api].fold(wire.chunks) if wire.chunks else wire.body
    return {key: value for key, value in whole.items() if value is not None}, call


def _rendered(question: Question, document: dict[str, Json], recorded: Answer | None) -> Answer:
    kept = () if recorded is None or recorded.status >= 400 else recorded.headers
    taken = tuple(pair for pair in kept if pair[0].lower() not in _OF_THE_BYTES)
    form = _FORMS.get(question.call.api)
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
