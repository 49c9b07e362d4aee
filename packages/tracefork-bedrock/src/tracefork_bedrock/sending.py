"""The seam: each request that the HTTP session of botocore sends, retries included.

A body that botocore reads at once is one piece on the tape. A streamed one (`StreamingBody`, an
event stream) is recorded as the agent reads it: see `bodies`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

from botocore.awsrequest import AWSResponse
from urllib3._collections import HTTPHeaderDict

from tracefork_bedrock.attempts import Attempt, attempt_of, request_of
from tracefork_bedrock.bodies import GIVEN_UP, HeardBody, RecordedBody
from tracefork_bedrock.failures import exception_of, failure_of
from tracefork_core.adapters import (
    Failure,
    Head,
    Live,
    Recorded,
    crossing_seam,
    is_crossing_seam,
    session_here,
)

Send = Callable[[Any, Any], Any]


def crossing(send: Send) -> Send:
    """Return `URLLib3Session.send` with the seam in front."""

    @wraps(send)
    def sent(self: Any, request: Any) -> Any:
        attempt, session = attempt_of(request), session_here()
        if attempt is None or session is None or is_crossing_seam():
            return send(self, request)
        answer = session.open(request_of(request, attempt.operation))
        if answer is None:
            with crossing_seam():
                return send(self, attempt.to_send(request, None))
        if answer.is_live:
            return _record(answer, send, self, request, attempt)
        return _replay(answer, request)

    return sent


def _record(live: Live, send: Send, http: Any, request: Any, attempt: Attempt) -> Any:
    try:
        with crossing_seam():
            response = send(http, attempt.to_send(request, live.sends))
    except GIVEN_UP:
        live.cancel()
        raise
    except Exception as error:
        live.fail(failure_of(error))
        raise
    raw = response.raw
    live.head(Head(response.status_code, raw.reason or "", tuple(raw.headers.items())))
    if request.stream_output:
        response.raw = HeardBody(raw, live)
    else:
        if response.content:
            live.chunk(response.content)
        live.end()
    return response


def _replay(answer: Recorded, request: Any) -> Any:
    head = answer.receive_head()
    if isinstance(head, Failure):
        raise exception_of(head, request)
    headers = HTTPHeaderDict(head.headers)
    raw = RecordedBody(answer, head.status, headers, head.reason)
    response = AWSResponse(request.url, head.status, headers, raw)
    if not request.stream_output:
        _ = response.content  # As botocore does; then it is read, and its turns are over.
    return response
