"""What each mode does with the tape of a test."""

from __future__ import annotations

import pytest
from adapters.suites import Suite

from tracefork_core import Tape

TESTS = """
import pytest

@pytest.mark.tape
def test_first():
    ask("Where is order 17?")

def test_second(tape):
    ask("Is it late?")
    ask("Why?")
    assert [one.n for one in tape.exchanges] == [0, 1]
    assert len(tape.calls) == 2 and tape.tokens.total > 0

def test_of_no_tape():
    pass
"""
PLACES = {"test_agent/test_first.tape", "test_agent/test_second.tape"}


@pytest.fixture
def recorded(suite: Suite) -> Suite:
    """A suite whose tests are recorded."""
    suite.write(TESTS)
    result = suite.here("--tape-mode=once")
    assert result.failed == set(), result.text
    assert suite.tapes == PLACES
    assert suite.asked == 3
    return suite


def first_question(suite: Suite) -> str:
    """Return what the first test asked, as its tape says."""
    with Tape.open(suite.folder / "tapes/test_agent/test_first.tape") as tape:
        return tape.exchanges[0].request_body.decode()


def test_without_an_option_a_test_is_replayed_and_a_missing_tape_fails(recorded: Suite) -> None:
    """Nothing is asked: that is how a build server runs it. `once` then records the new test."""
    recorded.edit("def test_of_no_tape", "@pytest.mark.tape\ndef test_of_no_tape")
    result = recorded.here()
    assert result.failed == {"test_of_no_tape"}
    assert "--tape-mode=once" in result.text
    (recorded.folder / "tapes/test_agent/test_first.tape").unlink()
    assert recorded.here().failed == {"test_first", "test_of_no_tape"}
    assert recorded.asked == 3
    assert recorded.here("--tape-mode=once").failed == set()
    assert recorded.asked == 4


def test_another_question_fails_with_the_card_alone(recorded: Suite) -> None:
    """No frame of an SDK, of pytest or of tracefork is in the way."""
    recorded.edit("order 17", "order 18")
    result = recorded.here()
    assert result.failed == {"test_first"}
    assert recorded.asked == 3
    failure = result.text.partition("test_first ___")[2].partition("\n====")[0].splitlines()[1:]
    assert failure[0].startswith("tracefork: ")
    assert len(failure) < 20
    assert not [line for line in failure if line.startswith((">", "E ")) or "site-packages" in line]


def test_a_swallowed_difference_and_an_unused_recording_fail(recorded: Suite) -> None:
    """An agent may catch every exception, or stop early: the run is another one all the same."""
    recorded.edit('    ask("Where is order 17?")', "    try: ask('x')\n    except Exception: pass")
    recorded.edit('    ask("Why?")\n', "")
    recorded.edit("== [0, 1]", "== [0]")
    recorded.edit("== 2 and", "== 1 and")
    result = recorded.here()
    assert result.outcomes["test_first"] == result.outcomes["test_second"] == "failed"
    assert "never asked for: #1" in result.text


def test_rewrite_records_again_and_a_failed_test_leaves_the_tape_before(recorded: Suite) -> None:
    """The tape of the failed run is kept elsewhere, and the end says where."""
    recorded.edit('"Where is order 17?")', '"Where is order 18?"); assert 0')
    result = recorded.here("--tape-mode=rewrite")
    assert result.failed == {"test_first"}
    assert "order 17" in first_question(recorded)
    artifact = recorded.folder / ".pytest_cache/tapes/tapes/test_agent/test_first.tape"
    with Tape.open(artifact) as tape:
        assert b"order 18" in tape.exchanges[0].request_body
    assert any(
        ".pytest_cache/tapes" in line for line in result.section("tapes of failed live tests")
    )
    recorded.edit("; assert 0", "")
    assert recorded.here("--tape-mode=rewrite").failed == set()
    assert "order 18" in first_question(recorded)
    assert recorded.tapes == PLACES
    assert recorded.asked == 9


def test_new_adds_what_is_asked_in_addition_and_keeps_every_recording(recorded: Suite) -> None:
    """What replaces a recorded question is no addition."""
    recorded.edit('17?")', '17?"); ask("And 18?")')
    assert recorded.here().failed == {"test_first"}
    assert recorded.here("--tape-mode=new").failed == set()
    assert recorded.asked == 4
    assert recorded.here().failed == set()
    recorded.edit("And 18?", "And 19?")
    result = recorded.here("--tape-mode=new")
    assert result.failed == {"test_first"}
    assert "never asked for: #1" in result.text
    recorded.edit("And 19?", "And 18?")
    assert recorded.here().failed == set()
    assert recorded.tapes == PLACES


def test_rerun_asks_for_what_differs_and_leaves_the_tape(recorded: Suite) -> None:
    """The end says what differs; `--tape-update` shows the same, and then replaces the tape."""
    recorded.edit("order 17", "order 18")
    result = recorded.here("--tape-mode=rerun")
    assert result.failed == set()
    assert any("{+18+}" in line for line in result.section("runs that differ from their tapes"))
    assert recorded.asked == 4
    assert "order 17" in first_question(recorded)
    result = recorded.here("--tape-update")
    assert result.failed == set()
    assert any("{+18+}" in line for line in result.section("tapes updated")), result.text
    assert recorded.asked == 5
    assert recorded.here().failed == set()
    assert recorded.tapes == PLACES


def test_the_command_line_is_above_the_mark_and_that_above_the_settings(suite: Suite) -> None:
    """Else a build server could not keep the network closed."""
    suite.write('import pytest\n@pytest.mark.tape(mode="once")\ndef test_it():\n    ask("Hello")\n')
    (suite.folder / "pytest.ini").write_text("[pytest]\ntape_mode = rewrite\n")
    assert suite.here("--tape-mode=none").failed == {"test_it"}
    assert suite.asked == 0
    assert suite.here().failed == set()
    assert suite.here().failed == set()
    assert suite.asked == 1
    suite.edit('(mode="once")', "")
    assert suite.here().failed == set()
    assert suite.asked == 2


def test_a_wrong_argument_of_the_mark_is_named_before_any_test_runs(suite: Suite) -> None:
    """The error lists the right ones."""
    suite.write("import pytest\n@pytest.mark.tape(modes='once')\ndef test_it():\n    pass\n")
    result = suite.here()
    assert result.status == pytest.ExitCode.USAGE_ERROR
    assert "no argument 'modes'" in result.text
