"""Invalid arguments: unknown commands, options and values, and agents that do not exist."""

from __future__ import annotations

import pytest

from .conftest import Errs

FUNCTIONS = """\
limit = 3

def run(*words):
    print(words)

def words():
    yield 1
"""


@pytest.mark.parametrize(
    ("name", "words"),
    {
        "no-such-command": "recrod agent.py",
        "another-tools-command": "frobnicate",
        "no-such-option": "record --bounday raise agent.py",
        "an-option-of-the-agent": "record agent.py --verbose",
        "an-option-without-a-value": "sign agent.tape --key",
        "an-option-with-a-value-too-many": "ls --json=3",
        "an-option-left-away": "sign agent.tape",
        "a-word-too-many": "doctor now",
        "no-tape-named": "replay",
        "a-word-for-a-number": "verify --times often agent.tape",
        "a-number-too-small": "race --seeds 0 agent.tape",
        "no-such-mode": "record --mode secret agent.py",
        "no-such-boundary": "record --boundary loud agent.py",
        "no-such-pattern": "record --mask re:[ agent.py",
        "a-secret-for-a-mask": "record --mask sk-123! agent.py",
        "a-key-without-a-seal": "record --to age1x agent.py",
        "a-key-that-is-none": "record --mode sealed --to age1x agent.py",
        "a-mask-in-raw-mode": "record --mode raw --mask TOKEN agent.py",
        "no-such-matcher": "replay agent.tape agent.py --match fuzzy",
        "a-name-for-a-pointer": "replay agent.tape agent.py --ignore messages",
        "a-url-for-a-host": "replay agent.tape agent.py --allow http://localhost",
        "no-pace": "replay agent.tape agent.py --speed 0",
        "no-order": "replay agent.tape agent.py --order first",
        "an-order-of-what-is-not-there": "replay agent.tape agent.py --order 9,0",
        "writes-both-ways": "fork agent.tape agent.py --at 0 --allow-writes --stub-writes",
        "no-such-demo": "demo nosuch",
        "a-view-without-a-terminal": "tui agent.tape",
    }.items(),
)
def test_an_invalid_argument_is_refused_before_anything_runs(
    errs: Errs, name: str, words: str
) -> None:
    """Nothing is written. The message names the valid values, or the command that lists them."""
    before = sorted(errs.folder.iterdir())
    assert errs(name, *words.split()).exit == 2
    assert sorted(errs.folder.iterdir()) == before


@pytest.mark.parametrize(
    ("name", "words"),
    {
        "record-what": "record",
        "no-script": "record gone.py",
        "a-tape-for-a-script": "record agent.tape",
        "a-folder-of-no-framework": "record .",
        "no-module": "record -m nosuch",
        "no-module-in-a-package": "record -m json.nosuch",
        "a-file-for-a-module": "record -m functions.py",
        "a-file-for-a-function": "record --agent functions.py:run",
        "a-file-elsewhere-for-a-function": "record --agent ../agents/functions.py:run",
        "a-module-for-a-function": "record --agent functions",
        "no-function": "record --agent functions:ran",
        "a-value-for-a-function": "record --agent functions:limit",
        "a-generator-for-a-function": "record --agent functions:words",
        "no-module-of-a-function": "record --agent json.nosuch:run",
        "two-agents": "record -m functions --agent functions:run",
        "arguments-without-a-script": "record -- agent.py",
        "no-folder-for-a-tape": "record -o no/such/x.tape agent.py",
        "a-folder-for-a-tape": "record -o sub agent.py",
        "a-script-for-a-tape": "record -o agent.py --overwrite agent.py",
    }.items(),
)
def test_a_missing_agent_is_reported_without_leaving_a_tape(
    errs: Errs, name: str, words: str
) -> None:
    """The message comes before anything runs."""
    errs.shell.write("functions.py", FUNCTIONS)
    (errs.folder / "sub").mkdir()
    before = {path.name for path in errs.folder.iterdir()}
    agent = (errs.folder / "agent.py").read_text()
    done = errs(name, *words.split())
    assert done.exit == (5 if name == "a-script-for-a-tape" else 2)
    left = {path.name for path in errs.folder.iterdir()} - before
    assert left <= {"__pycache__"}
    assert (errs.folder / "agent.py").read_text() == agent


def test_last_without_a_recording_is_refused(errs: Errs) -> None:
    """`last` is the tape that was recorded last."""
    assert errs("no-last", "replay", "last").exit == 2


def test_json_puts_the_error_into_the_document_on_stdout(errs: Errs) -> None:
    """Nothing is on stderr."""
    done = errs("a-document", "replay", "gone.tape", "--json")
    assert (done.exit, done.err) == (2, "")
