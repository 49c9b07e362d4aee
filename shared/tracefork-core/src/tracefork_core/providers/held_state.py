"""Find what a request continues that its provider keeps: a response, or a conversation."""

from __future__ import annotations

import re
from urllib.parse import urlsplit

from tracefork_core.providers.formats import Asked
from tracefork_core.providers.lenient import Json, mapping, parse, text

_IN_PATH = re.compile(r"/conversations/([^/]+)")
_FIELDS = (b'"previous_response_id"', b'"conversation"')


def continued_response(request: Asked) -> str | None:
    """Return the id of the response that a request continues."""
    return text(_fields(request).get("previous_response_id"))


def continued_conversation(request: Asked) -> str | None:
    """Return the id of the conversation that a request reads or adds to."""
    in_path = _IN_PATH.search(urlsplit(request.url).path)
    if in_path is not None:
        return in_path[1]
    named = _fields(request).get("conversation")
    return text(named) or text(mapping(named).get("id"))


def _fields(request: Asked) -> dict[str, Json]:
    if not any(field in request.body for field in _FIELDS):
        return {}
    return mapping(parse(request.body))
