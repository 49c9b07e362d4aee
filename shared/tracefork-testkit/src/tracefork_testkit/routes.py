"""Map paths to providers, and serve plain endpoints for raw HTTP tests."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from urllib.parse import parse_qs, urlsplit

from tracefork_testkit.anthropic import Anthropic
from tracefork_testkit.bedrock import BedrockConverse
from tracefork_testkit.bedrock_invoke import BedrockAgent, BedrockInvoke
from tracefork_testkit.dialect import Dialect, Json, estimate
from tracefork_testkit.gemini import Gemini, GeminiEmbeddings
from tracefork_testkit.http1 import Delivery, ReceivedRequest, json_delivery
from tracefork_testkit.ollama import Ollama
from tracefork_testkit.openai_chat import OpenAIChat
from tracefork_testkit.openai_embeddings import OpenAIEmbeddings
from tracefork_testkit.openai_responses import OpenAIResponses
from tracefork_testkit.script import Reply

TEXT = [("content-type", "text/plain; charset=utf-8")]
BYTES = [("content-type", "application/octet-stream")]
CHAT, RESPONSES, ANTHROPIC, GEMINI = OpenAIChat(), OpenAIResponses(), Anthropic(), Gemini()
CONVERSE, INVOKE = BedrockConverse(), BedrockInvoke()
DIALECTS: dict[str, Dialect] = {
    "/chat/completions": CHAT,
    "/responses": RESPONSES,
    "/messages": ANTHROPIC,
    ":rawPredict": ANTHROPIC,
    ":streamRawPredict": ANTHROPIC,
    "/embeddings": OpenAIEmbeddings(),
    "/api/chat": Ollama(),
    ":generateContent": GEMINI,
    ":streamGenerateContent": GEMINI,
    ":embedContent": GeminiEmbeddings(),
    ":batchEmbedContents": GeminiEmbeddings(),
    "/converse": CONVERSE,
    "/converse-stream": CONVERSE,
    "/invoke": INVOKE,
    "/invoke-with-response-stream": INVOKE,
    "/text": BedrockAgent(),
}
COUNTERS: dict[str, tuple[Dialect, str]] = {
    "/messages/count_tokens": (ANTHROPIC, "input_tokens"),
    "/responses/input_tokens": (RESPONSES, "input_tokens"),
    ":countTokens": (GEMINI, "totalTokens"),
}


def dialect_of(path: str) -> Dialect | None:
    """Return the wire format of a path, or None."""
    return DIALECTS.get(_verb(path))


def plain_answer(request: ReceivedRequest) -> Delivery | None:
    """Answer an endpoint other than a model call, or return None."""
    url = urlsplit(request.path)
    counter = COUNTERS.get(_verb(url.path))
    if counter is not None:
        return _count(request, *counter)
    name, _, rest = url.path.lstrip("/").partition("/")
    endpoint = ENDPOINTS.get(name)
    if endpoint is not None:
        query = {key: values[-1] for key, values in parse_qs(url.query).items()}
        return endpoint(request, rest, query)
    if url.path.endswith("/traces/ingest"):
        return Delivery(204, [], [])
    return None


def _verb(path: str) -> str:
    last = path.rsplit("/", 1)[-1]
    if ":" in last:
        return ":" + last.rsplit(":", 1)[-1]
    two = "/" + "/".join(path.rsplit("/", 2)[-2:])
    return two if two in DIALECTS or two in COUNTERS else "/" + last


def _count(request: ReceivedRequest, dialect: Dialect, field: str) -> Delivery:
    asked = request.json()
    payload: Json = asked.get("generateContentRequest", asked)
    tokens = estimate(dialect.read(request.path, payload), Reply()).input_tokens
    kind = {"object": "response.input_tokens"} if dialect is RESPONSES else {}
    return json_delivery(200, {**kind, field: tokens})


def _redirect(request: ReceivedRequest, rest: str, query: dict[str, str]) -> Delivery:
    return Delivery(307, [("location", query.get("to", "/echo")), *TEXT], [b""])


def _echo(request: ReceivedRequest, rest: str, query: dict[str, str]) -> Delivery:
    kind = request.header("content-type") or "application/octet-stream"
    return Delivery(200, [("content-type", kind)], [request.body])


def _bytes(request: ReceivedRequest, rest: str, query: dict[str, str]) -> Delivery:
    size = int(rest)
    return Delivery(200, [*BYTES], [(bytes(range(256)) * (size // 256 + 1))[:size]])


def _gzip(request: ReceivedRequest, rest: str, query: dict[str, str]) -> Delivery:
    body = gzip.compress(request.body or b"compressed " * 100, mtime=0)
    return Delivery(200, [("content-encoding", "gzip"), *TEXT], [body])


def _chunked(request: ReceivedRequest, rest: str, query: dict[str, str]) -> Delivery:
    chunks = [b"chunk %d\n" % index for index in range(int(query.get("n", "5")))]
    delay = float(query.get("delay", "0"))
    return Delivery(200, [*TEXT], chunks, chunked=True, chunk_delay=delay)


def _set_cookie(request: ReceivedRequest, rest: str, query: dict[str, str]) -> Delivery:
    cookie = ("set-cookie", "session=testkit-cookie-value; Path=/; HttpOnly")
    return Delivery(200, [cookie, *TEXT], [b"ok"])


def _status(request: ReceivedRequest, rest: str, query: dict[str, str]) -> Delivery:
    return Delivery(int(rest), [*TEXT], [f"status {rest}".encode()])


ENDPOINTS: dict[str, Callable[[ReceivedRequest, str, dict[str, str]], Delivery]] = {
    "redirect": _redirect,
    "echo": _echo,
    "bytes": _bytes,
    "gzip": _gzip,
    "chunked": _chunked,
    "set-cookie": _set_cookie,
    "status": _status,
}
