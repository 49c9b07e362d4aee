"""Rebuild Python's own exceptions from a tape, and refuse requests once a session has diverged.

No exception class reaches the agent through every SDK. Measured on today's SDKs: the openai SDK
passes an exception of the transport on; the anthropic SDK wraps and retries it. A synthetic
response 424 with `x-should-retry: false` is one attempt, in under half a second, with our text in
the error, for every SDK that Stainless generates (such an SDK says so in its headers). So these get
the 424, and all others get the exception. An agent may still swallow either: the session keeps its
first error, and raises it at the end of the block.
"""

from __future__ import annotations

import json

from tracefork_core.errors import TraceforkError
from tracefork_core.exchange.contract import Failure, Head, Request

STATUS = 424

BUILTINS: dict[str, type[Exception]] = {
    kind.__name__: kind
    for kind in (
        ArithmeticError,
        AssertionError,
        AttributeError,
        BlockingIOError,
        BrokenPipeError,
        BufferError,
        ChildProcessError,
        ConnectionAbortedError,
        ConnectionError,
        ConnectionRefusedError,
        ConnectionResetError,
        EOFError,
        Exception,
        FileExistsError,
        FileNotFoundError,
        FloatingPointError,
        ImportError,
        IndexError,
        InterruptedError,
        IsADirectoryError,
        KeyError,
        LookupError,
        MemoryError,
        ModuleNotFoundError,
        NameError,
        NotADirectoryError,
        NotImplementedError,
        OSError,
        OverflowError,
        PermissionError,
        ProcessLookupError,
        RecursionError,
        ReferenceError,
        RuntimeError,
        SyntaxError,
        SystemError,
        TimeoutError,
        TypeError,
        UnboundLocalError,
        ValueError,
        ZeroDivisionError,
    )
}


def builtin_of(failure: Failure) -> Exception | None:
    """Return the recorded failure as an exception of Python; None if it is not one of Python's."""
    kind = BUILTINS.get(failure.kind)
    return kind(failure.message) if kind is not None else None


def wants_response(request: Request) -> bool:
    """Return whether the SDK that sent `request` passes a response on better than an exception."""
    return any(name.lower() == "x-stainless-lang" for name, _ in request.headers)


def refusal(error: TraceforkError) -> tuple[Head, bytes]:
    """Return a synthetic response, head and body, with the text of `error`."""
    message = str(error)
    document = {
        "type": "error",
        "error": {"type": "tracefork_divergence", "code": "tracefork", "message": message},
        "message": message,
    }
    body = json.dumps(document).encode()
    headers = (
        ("content-type", "application/json"),
        ("content-length", str(len(body))),
        ("x-should-retry", "false"),
    )
    return Head(STATUS, "Failed Dependency", headers), body
