"""Traces and logs of real projects are imported, and nothing that they say is lost."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tracefork_core import Tape
from tracefork_core.interop.importing.folder import Result, import_folder
from tracefork_core.providers import model_call

SHARED = Path(__file__).parents[3] / "shared" / "real"
FOLDERS = {"otel": SHARED / "otel", "logs": SHARED / "logs"}

pytestmark = pytest.mark.skipif(
    not all(folder.is_dir() for folder in FOLDERS.values()),
    reason="traces that real projects exported are not ours to publish",
)


@pytest.fixture(scope="module", params=FOLDERS)
def imported(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Path, list[Result]]:
    """All files of a folder, imported."""
    target = tmp_path_factory.mktemp("imported")
    return FOLDERS[request.param], list(import_folder(FOLDERS[request.param], target))


def test_every_file_becomes_a_tape(imported: tuple[Path, list[Result]]) -> None:
    """Prints how many have which grade; none claims to replay."""
    folder, results = imported
    assert len(results) > 20, "the folder of traces is there but nearly empty"
    assert [result.problem for result in results if result.tape is None] == []
    for (format_name, grade), count in sorted(
        Counter((str(result.format), result.grade_words) for result in results).items()
    ):
        print(f"{folder.name}: {count} of {len(results)} {format_name}, {grade}")
    assert {result.grade for result in results} <= {"content", "structure"}


def test_every_answer_in_a_file_is_on_its_tape(imported: tuple[Path, list[Result]]) -> None:
    """The texts that models wrote: each is looked for on the tape, in its words."""
    folder, results = imported
    looked_for = 0
    for result in results:
        texts = _answers(json.loads((folder / result.source).read_bytes()))
        with Tape.open(str(result.tape)) as tape:
            held = json.dumps(
                [json.loads(exchange.response_body or b"null") for exchange in tape.exchanges],
                ensure_ascii=False,
            )
        for text in texts:
            assert json.dumps(text, ensure_ascii=False)[1:-1] in held, (result.source, text)
            looked_for += 1
    assert looked_for > 10


def _answers(document: Any) -> list[str]:
    """Return the texts of answers: of the last messages of GENERATIONs, and of a log's entries."""
    if "history" in document:
        return [entry["content"] for entry in document["history"]]
    found = []
    for observation in document.get("observations", []):
        output = observation.get("output")
        if observation.get("type") == "GENERATION" and output:
            said = json.loads(output) if isinstance(output, str) and output[0] in "[{" else output
            messages = said if isinstance(said, list) else [said]
            found += [text for message in messages for text in _texts(message)]
    return found


def _texts(message: Any) -> list[str]:
    if isinstance(message, str):
        return [message]
    content = message.get("content")
    if isinstance(content, str):
        return [content] if content else []
    parts = content if isinstance(content, list) else message.get("parts", [])
    return [
        text
        for part in parts
        if isinstance(part, dict)
        and isinstance(text := part.get("text") or part.get("content"), str)
    ]


def test_a_step_that_people_blamed_is_an_exchange(imported: tuple[Path, list[Result]]) -> None:
    """Each log of a failed run names one, and it is an exchange of the tape."""
    folder, results = imported
    if folder.name != "logs":
        return
    for result in results:
        log = json.loads((folder / result.source).read_bytes())
        with Tape.open(str(result.tape)) as tape:
            assert tape.imported is not None
            blamed = tape.imported.blamed
            assert blamed is not None
            assert blamed.exchange == int(log["mistake_step"])
            exchange = tape.exchanges[blamed.exchange]
            said = log["history"][blamed.exchange]["content"]
            call = model_call(exchange)
            held = call.text if call else json.loads(exchange.response_body)
            assert held == said
