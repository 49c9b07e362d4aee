"""What a fixture of a module or a session asks is on a tape of its own."""

from __future__ import annotations

import pytest
from adapters.suites import Suite

TESTS = """
import pytest

@pytest.fixture(scope="module", params=["short", "long"])
def summary(request):
    return ask(f"Summarise, {request.param}.")

@pytest.fixture(scope="module")
def plain():
    return 17

@pytest.fixture
def own():
    yield ask("What is mine?")
    ask("Goodbye.")

def test_of_no_tape(summary):
    assert summary

@pytest.mark.tape
def test_one(summary, plain):
    ask(f"Is {plain} in {summary}?")

@pytest.mark.tape
def test_two(own, summary, tape):
    ask(f"Is {own} in {summary}?")
    assert len(tape.exchanges) == 2
"""


@pytest.fixture
def recorded(suite: Suite) -> Suite:
    """A suite that is recorded, whichever test sets the fixture up."""
    suite.write(TESTS)
    (suite.folder / "conftest.py").write_text(
        "import pytest\n"
        "@pytest.fixture(scope='session', autouse=True)\n"
        "def everywhere():\n"
        "    import test_agent_of_session as agent\n"
        "    return agent.ask('What is the date?')\n"
    )
    suite.write("", "test_agent_of_session.py")
    return suite


def test_it_is_recorded_once_and_replayed_whichever_test_comes_first(
    recorded: Suite, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On the tape of one test it would be missing for every other."""
    monkeypatch.syspath_prepend(recorded.folder)
    assert recorded.here("--tape-mode=once").failed == set()
    names = {"test_one[short]", "test_one[long]", "test_two[short]", "test_two[long]"}
    fixtures = {"summary[short].fixture", "summary[long].fixture"}
    assert recorded.tapes == {
        *(f"test_agent/{name}.tape" for name in names | fixtures),
        "conftest/everywhere.fixture.tape",
    }
    asked = recorded.asked
    assert asked == 3 + 2 + 2 * 3
    assert recorded.here().failed == set()
    assert recorded.here("-k", "test_two").failed == set()
    assert recorded.here("test_agent.py::test_one[long]").failed == set()
    recorded.edit("Is {plain} in", "Is it {plain} in")
    assert recorded.here().failed == {"test_one[short]", "test_one[long]"}
    assert recorded.asked == asked


def test_a_fixture_without_a_tape_may_not_ask_where_nothing_is_recorded(suite: Suite) -> None:
    """It is named: the tests that use it show the same error."""
    suite.write(TESTS)
    assert suite.here("--tape-mode=once").failed == set()
    (suite.folder / "tapes/test_agent/summary[long].fixture.tape").unlink()
    suite.edit("return 17", "return ask('What is the number?')")
    asked = suite.asked
    result = suite.here()
    assert result.failed == {
        *("test_of_no_tape[long]", "test_one[long]", "test_two[long]", "test_one[short]")
    }
    assert "the fixture plain asks for POST" in result.text
    assert suite.asked == asked


def test_a_fixture_that_a_test_sets_up_in_its_middle_is_refused(suite: Suite) -> None:
    """Its questions would be on the tape of that test, and of no other."""
    suite.write(
        TESTS
        + "@pytest.fixture(scope='session')\n"
        + "def late():\n    return ask('Late?')\n\n"
        + "@pytest.mark.tape\n"
        + "def test_late(request):\n    request.getfixturevalue('late')\n\n"
        + "@pytest.mark.tape\n"
        + "def test_named(late):\n    pass\n"
    )
    result = suite.here("--tape-mode=once", "-k", "late or named")
    assert "Name it as an argument of the test" in result.text


WORKER = """
import pytest, threading, queue
@pytest.fixture(scope="module")
def worker():
    jobs, answers = queue.SimpleQueue(), queue.SimpleQueue()
    def serve():
        for question in iter(jobs.get, None):
            answers.put(ask(question))
    thread = threading.Thread(target=serve); thread.start()
    def call(question):
        jobs.put(question); return answers.get(timeout=10)
    yield call
    jobs.put(None); thread.join()
@pytest.mark.tape
def test_one(worker, tape):
    worker("one"); worker("two")
    assert len(tape.exchanges) == 2
@pytest.mark.tape
def test_two(worker):
    worker("three"); ask("four")
"""


def test_a_worker_of_a_shared_fixture_asks_for_the_test_that_runs(suite: Suite) -> None:
    """A service that a module starts in a thread of its own is part of each test."""
    suite.write(WORKER)
    assert suite.here("--tape-mode=once", "-W", "error::RuntimeWarning").failed == set()
    assert suite.here("-W", "error::RuntimeWarning").failed == set()
    assert suite.asked == 4
