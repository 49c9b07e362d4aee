"""A secret is found in any layers of encoding, wherever it stands.

`TRACEFORK_EXAMPLES=3000` tries that many cases. Case N is the same on every machine.
"""

from __future__ import annotations

import base64
import os
import random
from contextlib import nullcontext, suppress
from pathlib import Path
from typing import Any

import httpx2
import pytest

from tracefork_core import Tape, record
from tracefork_core.exchange.current import current_session
from tracefork_core.masking.body import MaskedBody
from tracefork_core.masking.masks import Masks
from tracefork_core.masking.redactor import Redactor, replace
from tracefork_core.redaction.redaction import Redaction, scan
from tracefork_core.tape.rewrite import rewrite

from .conftest import everything_kept
from .layers import VALUES, Case, make_case

EXAMPLES = int(os.environ.get("TRACEFORK_EXAMPLES", "100"))


@pytest.fixture
def redactor() -> Redactor:
    return Redactor({name: [value] for name, value in VALUES.items()})


@pytest.fixture
def variables(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in VALUES.items():
        monkeypatch.setenv(name, value)


def plain(text: str) -> str:
    """Return a text with the line breaks that quoted-printable keeps."""
    return text.replace("\r\n", "\n")


def draw_text(draw: random.Random) -> str:
    """Return ordinary text: identifiers and base64 before a secret must not confuse its reading."""
    words = ["call_" + draw.randbytes(draw.randint(9, 15)).hex(), '", "aligned": ["', "x" * 20]
    words += [base64.b64encode(draw.randbytes(draw.randint(15, 40))).decode(), " and "]
    return f"data: {draw.choice(words)} {draw.choice(words)}: "


def cases(count: int, first: int = 0) -> list[Case]:
    return [make_case(random.Random(number)) for number in range(first, first + count)]


@pytest.mark.parametrize("block", range(10))
def test_a_secret_in_three_layers_is_masked_and_the_rest_stays(
    redactor: Redactor, block: int
) -> None:
    """Without its layers, a masked text has a placeholder; masking it again changes nothing."""
    for case in cases(EXAMPLES, block * EXAMPLES):
        before = draw_text(random.Random(case.text))
        data = f"{before}{case.text}\n\n".encode()
        masked = replace(data, redactor.find(data))
        shown = masked.decode()[len(before) : -2]
        assert case.text not in shown, case
        with nullcontext() if case.is_exact else suppress(ValueError):
            opened = plain(case.opened(shown))
            assert plain(case.secret) not in opened, case
            assert opened == plain(case.expected) or not case.is_exact, case
        assert replace(masked, redactor.find(masked)) == masked, case


@pytest.mark.parametrize("block", range(4))
def test_a_stream_is_masked_like_the_whole_body_wherever_it_is_cut(
    redactor: Redactor, block: int
) -> None:
    """And what goes onto the tape before the end has no secret that a reader could decode."""
    for number, case in enumerate(cases(EXAMPLES // 4, 5000 + block * EXAMPLES)):
        draw = random.Random(number)
        data = f"data: {case.text}\n\n".encode()
        cuts = sorted(draw.sample(range(1, len(data)), draw.randint(1, 3)))
        pieces = [data[at:to] for at, to in zip([0, *cuts], [*cuts, len(data)], strict=True)]
        body = MaskedBody(redactor, None)
        so_far = [body.feed(piece) for piece in pieces]
        masked = body.finish(pieces, whole=True)
        assert masked is not None, case
        assert b"".join(masked.pieces) == replace(data, redactor.find(data)), case
        assert len(masked.pieces) == len(pieces)
        assert not redactor.find(b"".join(so_far)), case


def tour(url: str, found: list[Case]) -> None:
    """Put cases into all parts of a run."""
    session = current_session()
    assert session is not None
    with httpx2.Client(verify=False) as client:
        for number, case in enumerate(found):
            text = case.text
            match number % 6:
                case 0:
                    client.post(f"{url}/echo", content=text.encode())
                case 1:
                    client.post(f"{url}/split?at={len(text) // 2}", content=text.encode())
                case 2:
                    client.get(f"{url}/echo", params={"q": text, "hex": "2e"})
                case 3:
                    line = text.encode("unicode_escape").decode()
                    client.get(f"{url}/echo?hex=2e", headers={"x-note": line})
                case 4:
                    step = session.begin_step("tool", text, None, {"arguments": {"input": text}})
                    session.end_step(step, f"ValueError: {text}")
                case 5:
                    failing(text)


def failing(text: str) -> None:
    def refuse(request: httpx2.Request) -> httpx2.Response:
        raise httpx2.ConnectError(text)

    with httpx2.Client(transport=httpx2.MockTransport(refuse)) as client:
        with pytest.raises(httpx2.ConnectError):
            client.get("http://nowhere/")


@pytest.mark.parametrize("block", range(max(1, EXAMPLES // 100)))
@pytest.mark.usefixtures("variables")
def test_record_scan_and_redact_agree_on_every_place(
    tmp_path: Path, parrot: str, block: int
) -> None:
    """A scan finds all on a raw tape, and nothing on a masked one or a redacted one."""
    found = cases(36, 10_000 + 36 * block)
    tapes: dict[Any, Path] = {mode: tmp_path / f"{mode}.tape" for mode in ("safe", "raw")}
    for mode, path in tapes.items():
        with record(path, mode=mode):
            tour(parrot, found)
    redacted = tmp_path / "redacted.tape"
    with Tape.open(tapes["raw"]) as tape:
        search = scan(tape, Masks())
        assert sum(search.found.values()) >= len(found)
        rewrite(tape, redacted, Redaction(Masks()), mode="safe")
    for path in (tapes["safe"], redacted):
        with Tape.open(path) as tape:
            assert scan(tape, Masks()).found == {}
    with Tape.open(tapes["safe"]) as safe, Tape.open(redacted) as copy:
        assert [e.request_body for e in safe.exchanges] == [e.request_body for e in copy.exchanges]
        assert [e.chunks for e in safe.exchanges] == [e.chunks for e in copy.exchanges]
        assert safe.digest == copy.digest
    tapes["raw"].unlink()
    kept = everything_kept(tmp_path)
    assert not [case for case in found if case.secret.encode() in kept]


ORDINARY = [
    r'{"text": "C:\\new\\task-force\\risk-adjusted-returns-of-2024 and \nsk-learn-compatible"}',
    "https://example.com/%E2%9C%93?next=%2Fdocs%2Frisk-management-and-sk-estimator&id=3D4A",
    "git@github.com:org/repo.git ssh://git@github.com:22/x mailto:some.body@example.com",
    "postgres://user:password@localhost/db redis://:${REDIS_PASSWORD}@cache docker://a:3.18.4@sha256:9f",
    "https://docs.example.com:8080/@scope/package@1.2.3/file",
    "AccountKey=<your-key>;SharedAccessKey=***;EndpointSuffix=core.windows.net",
    "xapp-config and xoxo-gossip, &#115;k-learn, \x1b[31mtask-oriented-dialogue-system\x1b[0m",
    "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhg==",
    "call_4tKx0Jm2b9LrYv2QwEr 9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
    "VGhlIHF1aWNrIGJyb3duIGZveCBqdW1wcyBvdmVyIHRoZSBsYXp5IGRvZy4gQW5kIHNrLWxlYXJuLg==",
    "=E2=9C=93 quoted-printable text with risk=3Dlow and a soft=\nbreak, timeout=30&task-name=AB",
    "-----BEGIN CERTIFICATE-----\\nMIIBIjANBgkqhkiG9w0BAQEFAAOC\\n-----END CERTIFICATE-----",
]


@pytest.mark.parametrize("text", ORDINARY)
def test_ordinary_text_with_escapes_stays_byte_for_byte(redactor: Redactor, text: str) -> None:
    """Words that end like a token's beginning, addresses, images, examples without a password."""
    assert redactor.find(text.encode()) == []


def test_a_body_of_nothing_but_escapes_is_searched_in_linear_time(redactor: Redactor) -> None:
    """Deep escapes, and base64 that is text wherever it begins, take no power of their length."""
    for unit in (b"%25", b"\\\\", b"&#38;", b"VVVV", b"=3D", b"sk-ant-", b"://a:b@", b"\\u0025"):
        data = unit * (200_000 // len(unit))
        redactor.find(data)
