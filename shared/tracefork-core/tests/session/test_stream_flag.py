"""A model asked for a stream where it was recorded whole, or the reverse: the card says so."""

from __future__ import annotations

from pathlib import Path

import httpx2
import pytest

from tracefork_core import DivergenceError, record, replay
from tracefork_testkit import ProviderServer

WHOLE_THEN_STREAM = "recorded whole and is now requested as a stream"
STREAM_THEN_WHOLE = "recorded as a stream and is now requested whole"

Asked = tuple[str, dict[str, object]]


ADDRESSES = {
    "/v1beta/models/m:streamGenerateContent?alt=sse": "/v1beta/models/m:generateContent",
    "/v1/models/m:streamRawPredict": "/v1/models/m:rawPredict",
    "/model/m/converse-stream": "/model/m/converse",
    "/model/m/invoke-with-response-stream": "/model/m/invoke",
}


def check(tape: Path, http: httpx2.Client, whole: Asked, stream: Asked) -> None:
    """Record one of two requests and ask the other: the one hint says which was which."""
    for then, now, said in (
        (whole, stream, WHOLE_THEN_STREAM),
        (stream, whole, STREAM_THEN_WHOLE),
    ):
        with record(tape, overwrite=True):
            http.post(then[0], json=then[1])
        with pytest.raises(DivergenceError, match=said) as raised, replay(tape):
            http.post(now[0], json=now[1])
        (hint,) = raised.value.divergence.hints
        assert hint.startswith("the stream flag: ")


@pytest.mark.parametrize("off", [{}, {"stream": False}])
def test_a_flag_in_the_body_is_named(
    tape: Path, provider: ProviderServer, http: httpx2.Client, off: dict[str, object]
) -> None:
    """On, and off or not there: the hint tells what was asked then and now."""
    url = f"{provider.url}/echo"
    on = {"stream": True, "stream_options": {"include_usage": True}}
    check(tape, http, (url, {"prompt": "a", **off}), (url, {"prompt": "a", **on}))


@pytest.mark.parametrize("address", ADDRESSES)
def test_an_address_that_streams_is_named(
    tape: Path, provider: ProviderServer, http: httpx2.Client, address: str
) -> None:
    """Some providers have one for whole answers and one for streams, and no flag."""
    body: dict[str, object] = {"prompt": "a"}
    urls = [f"{provider.url}/echo{path}" for path in (ADDRESSES[address], address)]
    check(tape, http, (urls[0], body), (urls[1], body))


def test_a_stream_that_asks_something_else_has_no_such_hint(
    tape: Path, provider: ProviderServer, http: httpx2.Client
) -> None:
    """The control: with the flag as it was, an edit is an edit."""
    with record(tape):
        http.post(f"{provider.url}/echo", json={"prompt": "a", "stream": True})
    with pytest.raises(DivergenceError) as raised, replay(tape):
        http.post(f"{provider.url}/echo", json={"prompt": "b", "stream": True})
    assert raised.value.divergence.hints == ()
