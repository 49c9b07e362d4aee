"""Cassettes of real projects are imported, each with a grade that its file bears out."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path
from typing import Any

import httpx2
import pytest
import yaml

from tracefork_core import Tape, replay
from tracefork_core.interop.importing.folder import Result, import_folder
from tracefork_core.interop.importing.recognise import import_file

SHARED = Path(__file__).parents[3] / "shared"
FOLDERS = {"traffic": SHARED / "traffic", "real": SHARED / "real" / "vcr"}
NOT_SENT = ("content-length", "host", "connection", "transfer-encoding")
_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

pytestmark = pytest.mark.skipif(
    not all(folder.is_dir() for folder in FOLDERS.values()),
    reason="recorded traffic of real providers is not ours to publish",
)


@pytest.fixture(scope="module", params=FOLDERS)
def imported(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> tuple[str, list[Result]]:
    """All the cassettes of a folder, imported."""
    target = tmp_path_factory.mktemp("imported")
    results = list(import_folder(FOLDERS[request.param], target))
    assert len(results) > 300, "the folder of cassettes is there but nearly empty"
    return request.param, results


def test_every_cassette_becomes_a_tape(imported: tuple[str, list[Result]]) -> None:
    """Prints how many have which grade."""
    name, results = imported
    for (format_name, grade), count in Counter(
        (result.format or "no known format", result.grade_words) for result in results
    ).items():
        print(f"{name}: {count} of {len(results)} {format_name}, {grade}")
    assert [result.problem for result in results if result.tape is None] == []


def test_a_proven_body_is_in_the_file(imported: tuple[str, list[Result]]) -> None:
    """Byte by byte, and of the length that its headers say.

    Where a secret was masked, or the boundary of a form replaced, the tape has other bytes.
    """
    name, results = imported
    proven = [result for result in results if result.grade == "proven"]
    compared = 0
    for result in proven:
        held = yaml.load((FOLDERS[name] / result.source).read_bytes(), Loader=_LOADER)
        bodies = {_as_bytes(each["request"].get("body")) for each in held["interactions"]}
        with Tape.open(str(result.tape)) as tape:
            if tape.receipt is None or tape.receipt.secrets:
                continue
            for exchange in tape.exchanges:
                body = exchange.request_body
                if not body or b"--tracefork-boundary" in body:
                    continue
                headers = {name.lower(): value for name, value in exchange.request_headers}
                assert (body in bodies, headers["content-length"]) == (True, str(len(body)))
                compared += 1
    assert compared > 100


def _as_bytes(body: Any) -> bytes:
    return body if isinstance(body, bytes) else str(body or "").encode()


def test_imported_tapes_answer_as_their_files(imported: tuple[str, list[Result]]) -> None:
    """A client sends what each file says was sent, and gets what it says was received."""
    _, results = imported
    sample = [result for result in results if result.grade in ("proven", "unproven")]
    for result in random.Random(7).sample(sample, 40):
        with Tape.open(str(result.tape)) as tape:
            exchanges = tape.exchanges
            recorded = [exchange.response_body for exchange in exchanges]
            with replay(str(result.tape)) as run, httpx2.Client(verify=False) as client:
                answered = [_sent(client, exchange) for exchange in exchanges]
        assert answered == recorded
        assert run.exchanges == len(recorded)
        assert run.sockets == 0


def _sent(client: httpx2.Client, exchange: Any) -> bytes:
    headers = [pair for pair in exchange.request_headers if pair[0].lower() not in NOT_SENT]
    body = exchange.request_body
    with client.stream(exchange.method, exchange.url, headers=headers, content=body) as response:
        assert response.status_code == exchange.status
        return b"".join(response.iter_raw())


def test_a_cassette_cut_in_the_middle_is_refused_or_holds_less(tmp_path: Path) -> None:
    """The control: what is not in the file is not on the tape."""
    path = next(path for path in sorted(FOLDERS["traffic"].rglob("*.yaml")) if path.stat().st_size)
    whole, cut = path.read_bytes(), tmp_path / "cut.yaml"
    held = yaml.load(whole, Loader=_LOADER)
    held["interactions"][0]["response"].pop("parsed_body", None)
    held["interactions"][0]["response"]["body"] = None
    cut.write_text(yaml.safe_dump(held))
    _, run = import_file(cut, tmp_path / "cut.tape")
    assert run.grade == "structure"
