"""The errors of Bedrock: their names, how an answer names one, and how a fork makes one.

An error before the answer is an HTTP status with the name in a header. An error in the middle of a
stream is a frame, whose name begins with a small letter.
"""

from __future__ import annotations

from collections.abc import Iterable

from tracefork_bedrock.formats.event_stream import Frame
from tracefork_core.adapters.formats import ModelError
from tracefork_core.adapters.formats import lenient as le

HEADER = "x-amzn-errortype"
_STATUSES = {
    "AccessDeniedException": 403,
    "BadGatewayException": 502,
    "ConflictException": 409,
    "DependencyFailedException": 424,
    "ExpiredTokenException": 403,
    "InternalServerException": 500,
    "ModelErrorException": 424,
    "ModelNotReadyException": 429,
    "ModelStreamErrorException": 424,
    "ModelTimeoutException": 408,
    "ResourceNotFoundException": 404,
    "RuntimeClientError": 424,
    "ServiceQuotaExceededException": 400,
    "ServiceUnavailableException": 503,
    "ThrottlingException": 429,
    "UnrecognizedClientException": 403,
    "ValidationException": 400,
}
NAMES = tuple(_STATUSES)
_NAMES = {
    400: "ValidationException",
    403: "AccessDeniedException",
    404: "ResourceNotFoundException",
    408: "ModelTimeoutException",
    409: "ConflictException",
    424: "ModelErrorException",
    429: "ThrottlingException",
    502: "BadGatewayException",
    503: "ServiceUnavailableException",
}
DAMAGED = "UnreadableStream"
"""What an answer is called whose frames are not frames, where an error would have its name."""


def status_of(error: str) -> int | None:
    """Return the status of an error by its name, in a stream or before it; None if unknown."""
    return _STATUSES.get(error[:1].upper() + error[1:])


def name_of(status: int) -> str:
    """Return the name of an error that has only a status."""
    failed = "InternalServerException" if status >= 500 else "ValidationException"
    return _NAMES.get(status, failed)


def error_of(status: int, headers: Iterable[tuple[str, str]], body: bytes) -> ModelError | None:
    """Read an answer as an error; None if it is not one."""
    if status < 400:
        return None
    document = le.mapping(le.parse(body))
    stated = [value for name, value in headers if name.lower() == HEADER]
    kind = stated[0] if stated else le.text(le.field(document, "__type", "code", "type"))
    message = le.text(le.field(document, "message", "Message"))
    return ModelError(plain(kind) if kind else str(status), message)


def plain(name: str) -> str:
    """Return the name of an error without the addresses that Amazon puts around it."""
    return name.partition(":")[0].rpartition("#")[2]


def error_in(frame: Frame) -> ModelError | None:
    """Read the error that a frame is; None if it is an event."""
    if frame.kind not in ("exception", "error"):
        return None
    told = le.mapping(le.parse(frame.payload))
    message = le.text(le.field(told, "message", "Message"))
    stated = frame.headers.get(":error-message")
    return ModelError(
        frame.name or "error", message or (stated if isinstance(stated, str) else None)
    )
