"""The bodies of a page: a request as what differs from the one that its conversation sent before.

A model is sent its whole history with each question. The start and the end of a body that it shares
with the body before are left out, so that a page of a long run is as small as what is new in it.
"""

from __future__ import annotations

from tracefork_core.cli.report.document import Body
from tracefork_core.tape import Exchange
from tracefork_core.unpacking import decompress

Headers = list[tuple[str, str]]
EMPTY = Body(-1, 0, "", 0)


def request_body(exchange: Exchange) -> str | int:
    """Return the text of a request, or its size if it is no text."""
    return _text(exchange.request_body, exchange.request_headers)


def response_body(exchange: Exchange) -> Body:
    """Return the body of a response."""
    return whole(_text(exchange.response_body, exchange.response_headers))


def whole(text: str | int) -> Body:
    """Return a body of its own, from its text or its size."""
    return Body(-1, 0, "", 0, text) if isinstance(text, int) else Body(-1, 0, text, 0)


def beside(text: str, base: str, n: int) -> Body:
    """Return a body as what differs from the body `base` of exchange `n`."""
    head = common(text, base, min(len(text), len(base)), ends=False)
    tail = common(text, base, min(len(text), len(base)) - head, ends=True)
    middle = text[head : len(text) - tail]
    return Body(n, _units(text[:head]), middle, _units(text[len(text) - tail :]))


def common(one: str, other: str, most: int, *, ends: bool) -> int:
    """Return how many characters two texts share at their start, or at their end."""
    same, step = 0, most
    while step:
        if ends:
            end = -same or None
            alike = one[-(same + step) : end] == other[-(same + step) : end]
        else:
            alike = one.startswith(other[same : same + step], same)
        if alike:
            same += step
            step = min(step, most - same)
        else:
            step //= 2
    return same


def _units(text: str) -> int:
    """Return the length of a text as JavaScript counts it: in units of UTF-16."""
    return len(text) if text.isascii() else len(text.encode("utf-16-le")) // 2


def _text(body: bytes, headers: Headers) -> str | int:
    codings = ", ".join(value for name, value in headers if name.lower() == "content-encoding")
    plain = decompress(body, codings) if codings else body
    try:
        return (body if plain is None else plain).decode("utf-8")
    except UnicodeDecodeError:
        return len(body)
