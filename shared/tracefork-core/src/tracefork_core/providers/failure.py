"""What an error body says, in the dialects of the providers and of servers that imitate them."""

from __future__ import annotations

from tracefork_core.providers.call import ModelError
from tracefork_core.providers.lenient import Json, field, mapping, text


def failure(status: int | None, body: dict[str, Json]) -> ModelError | None:
    """Read the error of an answer; None when it is not one.

    The type is the provider's own word, else its code, else the HTTP status.
    """
    error = body.get("error")
    failed = status is not None and status >= 400
    if not error and not failed:
        return None
    details = mapping(error) or body
    kind = text(details.get("type")) or text(details.get("status"))
    code = field(details, "code")
    if kind is None and isinstance(code, str | int):
        kind = str(code)
    if kind is None:
        kind = str(status) if failed else "error"
    message = text(error) or text(field(details, "message", "detail"))
    return ModelError(kind, message)
