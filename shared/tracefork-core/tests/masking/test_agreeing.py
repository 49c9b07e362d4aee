"""Lengths and digests in headers are those of the masked body."""

from __future__ import annotations

import base64
import hashlib
from pathlib import Path

import httpx2
import pytest

from tracefork_core import Tape, record
from tracefork_core.masking.agreeing import agreeing

from .conftest import KEY

BODY = b"say " + KEY.encode()


def digest(algorithm: str, data: bytes) -> str:
    return base64.b64encode(hashlib.new(algorithm, data).digest()).decode()


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("Content-MD5", lambda body: digest("md5", body)),
        ("Content-Digest", lambda body: f"sha-256=:{digest('sha256', body)}:"),
        ("Digest", lambda body: f"SHA-512={digest('sha512', body)}"),
        ("ETag", lambda body: f'"{hashlib.md5(body).hexdigest()}"'),
        ("x-amz-content-sha256", lambda body: hashlib.sha256(body).hexdigest()),
        ("Content-Length", lambda body: str(len(body))),
    ],
)
def test_a_header_about_a_body_is_about_the_masked_body(name: str, value: object) -> None:
    """Digests of anything else stay."""
    assert callable(value)
    headers = [(name, value(BODY)), (name, value(b"another")), ("x-other", value(BODY))]
    assert agreeing(headers, BODY, b"masked body") == [
        (name, value(b"masked body")),
        *headers[1:],
    ]


@pytest.mark.usefixtures("secrets")
def test_a_digest_on_a_tape_tells_nothing_of_the_secret(tape: Path, parrot: str) -> None:
    """A guess at the value could be checked against it."""
    with record(tape), httpx2.Client(verify=False) as client:
        client.post(f"{parrot}/echo", content=BODY, headers={"content-md5": digest("md5", BODY)})
    with Tape.open(tape) as recorded:
        (exchange,) = recorded.exchanges
        headers = dict(exchange.request_headers)
        assert headers["content-md5"] == digest("md5", exchange.request_body)
        assert headers["content-length"] == str(len(exchange.request_body))
