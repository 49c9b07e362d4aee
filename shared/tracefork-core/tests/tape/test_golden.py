"""Tapes of every format so far can be opened, verified and replayed."""

from __future__ import annotations

import shutil
from pathlib import Path

import httpx2
import pytest

from tracefork_core import ReplayError, Tape, replay
from tracefork_core.tape import schema
from tracefork_core.tape.integrity import check_integrity

GOLDEN = Path(__file__).with_name("golden")
WHOLE = "135125eec0237220166ffccc1b0493fdcfa45cb233ae08966b12b3a1486c7379"
CUT_OFF = "3a27a44fc68be023a80b469c660483b9e15de535e320a9f00053373dd73f5bce"
DIGESTS = {
    "format-1.tape": WHOLE,
    "format-1-cut-off.tape": CUT_OFF,
}
PROVIDER = "http://127.0.0.1:40000"


def agent(http: httpx2.Client) -> list[int]:
    """Make the requests that were recorded on the golden tapes."""
    messages = [{"role": "user", "content": "question 0"}]
    for i in range(4):
        asked = {"model": "m", "messages": messages}
        answer = http.post(f"{PROVIDER}/v1/chat/completions", json=asked).json()
        messages += [
            answer["choices"][0]["message"],
            {"role": "user", "content": f"question {i + 1}"},
        ]
    with http.stream("GET", f"{PROVIDER}/chunked?n=5") as stream:
        return [len(chunk) for chunk in stream.iter_raw()]


@pytest.fixture(params=sorted(DIGESTS))
def golden(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """Copy a golden tape: reading must not change it."""
    return Path(shutil.copy(GOLDEN / request.param, tmp_path))


def test_every_golden_tape_has_its_digest(golden: Path) -> None:
    """Later versions compute the same digest, and do not touch the file."""
    before = golden.read_bytes()
    with Tape.open(golden) as tape:
        assert tape.digest == DIGESTS[golden.name]
        assert tape.receipt is None or tape.receipt.digest == tape.digest
        assert [exchange.status for exchange in tape.exchanges] == [200] * 5
        assert tape.steps[0].name == "golden"
    assert check_integrity(golden).damage == []
    assert golden.read_bytes() == before
    assert list(golden.parent.iterdir()) == [golden]


def test_a_golden_tape_replays(golden: Path, http: httpx2.Client) -> None:
    """A tape that was cut off replays up to there, and then raises an error."""
    if "cut-off" not in golden.name:
        with replay(golden) as run:
            assert agent(http) == [8] * 5
        assert run.digest == DIGESTS[golden.name]
        return
    with pytest.raises(ReplayError, match=golden.name), replay(golden):
        agent(http)


def test_every_format_has_a_golden_tape() -> None:
    """A new format needs a new golden tape."""
    formats = {name.removeprefix("format-")[0] for name in DIGESTS}
    assert formats == {str(version) for version in range(1, schema.VERSION + 1)}
    assert set(DIGESTS) == {file.name for file in GOLDEN.iterdir()}
