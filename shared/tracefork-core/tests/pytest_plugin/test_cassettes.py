"""`--tape-import` replays tests with the mark `vcr` from their cassettes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from adapters.suites import Suite

TESTS = """
import pytest

@pytest.mark.vcr
def test_first():
    assert ask("Hello?") == "from the cassette"

class TestDesk:
    @pytest.mark.vcr
    def test_second(self):
        assert ask("Hello?") == "from the cassette"

@pytest.mark.vcr
def test_without_a_call():
    pass
"""
FOLDER = "cassettes/test_agent"


def cassette(*questions: str, host: str, cut: bool = False) -> str:
    """Return a cassette of vcrpy with these questions."""
    interactions: list[dict[str, Any]] = []
    for question in questions:
        messages = [{"role": "user", "content": question}]
        # The spelling of httpx2, which is what the agent sends.
        body = json.dumps({"model": "gpt-5-mini", "messages": messages}, separators=(",", ":"))
        answer = {"choices": [{"message": {"role": "assistant", "content": "from the cassette"}}]}
        size = str(len(body.encode()))
        interactions.append(
            {
                "request": {
                    "method": "POST",
                    "uri": f"{host}/v1/chat/completions",
                    "headers": {"content-length": [size], "content-type": ["application/json"]},
                    "body": body,
                },
                "response": {
                    "status": {"code": 200, "message": "OK"},
                    "headers": {"content-type": ["application/json"]},
                    "body": {"string": None if cut else json.dumps(answer)},
                },
            }
        )
    return json.dumps({"interactions": interactions, "version": 1})


@pytest.fixture
def taped(suite: Suite) -> Suite:
    """A suite of pytest-recording with a cassette for each test that asks."""
    suite.write(TESTS)
    for name in ("test_first", "TestDesk.test_second"):
        put(suite, f"{FOLDER}/{name}.yaml", cassette("Hello?", host=suite.server.url))
    return suite


def put(suite: Suite, name: str, text: str) -> Path:
    """Write a file into the suite."""
    path = suite.folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def test_marked_tests_are_answered_from_their_cassettes(taped: Suite) -> None:
    """Nothing is asked live, and the end says what was compared."""
    before = taped.asked
    result = taped.here("--tape-import", "--strict-markers")
    assert result.failed == set(), result.text
    assert set(result.outcomes) == {"test_first", "TestDesk::test_second", "test_without_a_call"}
    assert taped.asked == before
    assert result.section("cassettes imported")[:2] == [
        "2 of 2 replayable (bodies proven)",
        "vcrpy compares: method, scheme, host, port, path, query",
    ]


@pytest.mark.parametrize("mode", ["rewrite", "new", "rerun"])
def test_a_cassette_is_replayed_in_every_mode(taped: Suite, mode: str) -> None:
    """A cassette is never written to, so nothing is asked live for one."""
    before, kept = taped.asked, (taped.folder / FOLDER / "test_first.yaml").read_bytes()
    taped.edit('test_first():\n    assert ask("Hello?")', 'test_first():\n    assert ask("Bye?")')
    assert taped.here("--tape-import", f"--tape-mode={mode}").failed == {"test_first"}
    assert taped.asked == before
    assert (taped.folder / FOLDER / "test_first.yaml").read_bytes() == kept


def test_without_the_option_the_mark_is_not_read(taped: Suite) -> None:
    """Suites of pytest-recording are its own."""
    result = taped.here("-W", "ignore::pytest.PytestUnknownMarkWarning")
    assert result.failed == {"test_first", "TestDesk::test_second"}
    assert result.section("cassettes imported") == []


def test_another_body_fails_though_vcrpy_would_accept_it(taped: Suite) -> None:
    """The card says where it differs."""
    taped.edit('test_first():\n    assert ask("Hello?")', 'test_first():\n    assert ask("Bye?")')
    result = taped.here("--tape-import")
    assert result.failed == {"test_first"}
    assert "/messages/0/content" in result.text


def test_the_spaces_of_an_older_client_are_no_difference(taped: Suite) -> None:
    """The values are compared: the test before shows that."""
    spaced = json.loads(cassette("Hello?", host=taped.server.url))
    request = spaced["interactions"][0]["request"]
    request["body"] = json.dumps(json.loads(request["body"]))
    request["headers"]["content-length"] = [str(len(request["body"]))]
    put(taped, f"{FOLDER}/test_first.yaml", json.dumps(spaced))
    result = taped.here("--tape-import")
    assert result.failed == set(), result.text
    assert result.section("cassettes imported")[0] == "2 of 2 replayable (bodies proven)"


def test_a_recorded_call_that_is_not_made_fails(taped: Suite) -> None:
    """Vcrpy reports none by default."""
    both = cassette("Hello?", "Bye?", host=taped.server.url)
    put(taped, f"{FOLDER}/test_first.yaml", both)
    result = taped.here("--tape-import")
    assert result.failed == {"test_first"}
    assert "never asked for: #1" in result.text


def test_a_call_without_a_cassette_fails(taped: Suite) -> None:
    """It is not asked live."""
    before = taped.asked
    (taped.folder / FOLDER / "test_first.yaml").unlink()
    assert taped.here("--tape-import").failed == {"test_first"}
    assert taped.asked == before


def test_a_cassette_without_its_answer_is_refused(taped: Suite) -> None:
    """The error names the grade."""
    cut = cassette("Hello?", host=taped.server.url, cut=True)
    put(taped, f"{FOLDER}/test_first.yaml", cut)
    result = taped.here("--tape-import")
    assert result.failed == {"test_first"}
    assert "grade is `structure`" in result.text


def test_the_places_are_those_that_the_fixtures_and_marks_name(taped: Suite) -> None:
    """A folder, a name, a serializer, more cassettes, and hosts that are not recorded."""
    taped.write(
        """
import pytest

@pytest.fixture(scope="module")
def vcr_cassette_dir():
    return "elsewhere"

@pytest.fixture
def vcr_config():
    return {"serializer": "json", "match_on": ["uri"]}

@pytest.mark.vcr("more.json")
@pytest.mark.default_cassette("named")
def test_both(tmp_path):
    assert ask("Hello?") == ask("Bye?") == "from the cassette"
"""
    )
    put(taped, "elsewhere/named.json", cassette("Hello?", host=taped.server.url))
    put(taped, "elsewhere/more.json", cassette("Bye?", host=taped.server.url))
    result = taped.here("--tape-import")
    assert result.failed == set(), result.text
    assert "vcrpy compares: uri" in result.text


REAL = """
import httpx, pytest

@pytest.fixture(scope="module")
def vcr_config():
    return {"filter_headers": ["accept", "user-agent"], "ignore_localhost": False}

@pytest.mark.vcr
@pytest.mark.parametrize("question", ["a/b", "c"])
def test_real(question, vcr):
    import os
    messages = [{"role": "user", "content": question}]
    url = os.environ["PROVIDER"] + "/v1/chat/completions"
    with httpx.Client(verify=False) as client:
        answer = client.post(url, json={"model": "gpt-5-mini", "messages": messages})
    assert answer.json()["choices"]
    assert (vcr is None) == IMPORTED
"""


def test_a_suite_that_pytest_recording_recorded_is_replayed_without_it(suite: Suite) -> None:
    """It stays installed, and its vcrpy stays out of the way."""
    recording = ("-p", "pytest_recording.plugin")
    suite.write("IMPORTED = False\n" + REAL)
    recorded = suite.apart(*recording, "--record-mode=once")
    assert recorded.failed == set(), recorded.text
    before = suite.asked
    assert before == 2
    suite.edit("IMPORTED = False", "IMPORTED = True")
    result = suite.apart(*recording, "--tape-import")
    assert result.failed == set(), result.text
    assert suite.asked == before
    assert result.section("cassettes imported")[0] == "2 of 2 replayable (bodies proven)"
