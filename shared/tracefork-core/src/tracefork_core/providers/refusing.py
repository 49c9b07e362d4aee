"""Error answers in the form of the provider that is asked."""

from __future__ import annotations

import math

from tracefork_core.providers.draft import Draft
from tracefork_core.providers.lenient import Json
from tracefork_core.providers.question import Question

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


def failure_document(draft: Draft, status: int, message: str, retry_after: float | None) -> Json:
    """Give the body of an error answer; Gemini's arrays hold it as their only element."""
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
    """Give the headers that say when to try again; Google says it in the body."""
    if retry_after is None or question.call.api == "gemini":
        return []
    headers = [("retry-after", str(math.ceil(retry_after)))]
    if retry_after != int(retry_after):
        # The header has whole seconds; OpenAI's and Anthropic's own clients look here first.
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
