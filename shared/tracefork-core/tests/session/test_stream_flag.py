"""A model asked for a stream where it was recorded whole, or the reverse: the card says so."""

from __future__ import annotations

from pathlib import Path

import httpx2
import pytest

from tracefork_core import DivergenceError, record, replay
from tracefork_testkit import ProviderServer

WHOLE_THEN_STREAM = "came whole when this was recorded and is asked for as a stream now"
STREAM_THEN_WHOLE = "was streamed when this was recorded and is asked for whole now"


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/echo", {"prompt": "a", "stream": True, "stream_options": {"include_usage": True}}),
        ("/echo/g:streamGenerateContent?alt=sse", {"prompt": "a"}),
    ],
)
@pytest.mark.parametrize("whole", [{}, {"stream": False}])
def test_the_stream_flag_is_named(
    tape: Path,
    provider: ProviderServer,
    http: httpx2.Client,
    path: str,
    body: dict[str, object],
    whole: dict[str, object],
) -> None:
    """In the body or in the address, on or off: the hint tells what was asked then and now."""

    def ask(*, stream: bool) -> None:
        asked = path if stream else path.replace(":streamG", ":g").removesuffix("?alt=sse")
        sent = body if stream else {"prompt": "a", **whole}
        http.post(f"{provider.url}{asked}", json=sent)

    for then, said in ((False, WHOLE_THEN_STREAM), (True, STREAM_THEN_WHOLE)):
        with record(tape, overwrite=True):
            ask(stream=then)
        with pytest.raises(DivergenceError, match=said) as raised, replay(tape):
            ask(stream=not then)
        (hint,) = raised.value.divergence.hints
        assert hint.startswith("the stream flag: ")


def test_a_stream_that_asks_something_else_has_no_such_hint(
    tape: Path, provider: ProviderServer, http: httpx2.Client
) -> None:
    """The control: with the flag as it was, an edit is an edit."""
    with record(tape):
        http.post(f"{provider.url}/echo", json={"prompt": "a", "stream": True})
    with pytest.raises(DivergenceError) as raised, replay(tape):
        http.post(f"{provider.url}/echo", json={"prompt": "b", "stream": True})
    assert raised.value.divergence.hints == ()
