"""Mistakes with blame: no oracle, budget or key, a failing oracle, another blame's journal."""

from __future__ import annotations

import fcntl
from pathlib import Path

import pytest

from .conftest import Errs

ORACLES = """\
limit = 3

def good(output):
    return True

def each(output):
    yield True

def asserts(output):
    assert output
"""


@pytest.mark.parametrize(
    ("name", "words"),
    {
        "no-oracle": "blame support.tape",
        "no-such-oracle": "blame support.tape --oracle refunded",
        "no-pattern": "blame support.tape --oracle regex:[",
        "no-pointer": "blame support.tape --oracle json:refund",
        "no-module-of-an-oracle": "blame support.tape --oracle nosuch:good",
        "no-function-of-an-oracle": "blame support.tape --oracle oracles:bad",
        "a-value-for-an-oracle": "blame support.tape --oracle oracles:limit",
        "a-generator-for-an-oracle": "blame support.tape --oracle oracles:each --yes",
        "an-oracle-that-returns-nothing": "blame support.tape --oracle oracles:asserts --yes",
        "no-rubric": "blame support.tape --oracle judge:rubric.md",
        "no-judge": "blame support.tape --oracle judge:oracles.py",
        "nobody-to-ask": "blame support.tape --oracle exit",
        "no-budget": "blame support.tape --oracle exit --budget much --yes",
        "no-rate": "blame support.tape --oracle exit --rate 0 --yes",
        "too-few-regrades": "blame support.tape --oracle exit --regrades 1 --yes",
        "no-such-part": "blame support.tape --oracle exit --by task --yes",
        "a-run-that-writes": "blame agent.tape --oracle exit --yes",
        "a-file-for-a-blame": "blame support.tape --oracle exit --to agent.py --yes",
        "no-blame-to-look-at": "blame support.tape --status",
        "bisect-with-a-generator": "bisect support.tape --oracle oracles:each",
        "bisect-with-no-such-oracle": "bisect support.tape --oracle refunded",
    }.items(),
)
def test_an_invalid_blame_is_refused_before_any_run(
    errs: Errs, name: str, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is paid for, and no journal is written."""
    monkeypatch.delenv("TRACEFORK_JUDGE_MODEL", raising=False)
    errs.shell.write("oracles.py", ORACLES)
    agent = "agent.py" if "agent.tape" in words else "support.py"
    assert errs(name, *words.split(), agent).exit == 2
    assert not list(errs.folder.glob("*.blame/*.jsonl"))


def test_a_judge_without_a_key_names_the_missing_variable(
    errs: Errs, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`OPENAI_API_KEY` is not set."""
    errs.shell.write("rubric.md", "The customer is refunded.")
    monkeypatch.setenv("TRACEFORK_JUDGE_MODEL", "m")
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    words = ["blame", "support.tape", "support.py", "--oracle=judge:rubric.md", "--yes"]
    assert errs("no-key", *words).exit == 2


def test_blame_refuses_a_run_without_exchanges(errs: Errs) -> None:
    """It has no step that could have made the run fail."""
    errs.shell.write("quiet.py", "print('here')\n")
    errs.shell.tracefork("record", "quiet.py")
    words = ["--oracle=exit", "--yes", "quiet.tape", "quiet.py"]
    assert errs("nothing-to-blame", "blame", *words).exit == 2


AGENT = """\
import os
import resource
import sys

import httpx2

def run():
    if os.environ.get("FULL"):
        resource.setrlimit(resource.RLIMIT_FSIZE, (64, resource.RLIM_INFINITY))
    with httpx2.Client(verify=False) as client:
        return client.get(os.environ["PROVIDER"] + "/echo").status_code

def raises(output):
    raise ValueError("no such order")

def exits(output):
    return sys.exit(0)
"""


@pytest.fixture
def desk(errs: Errs) -> Errs:
    """Return an `Errs` with a tape of a function, whose forks need no process each."""
    errs.shell.write("desk.py", AGENT)
    assert errs.shell.tracefork("record", "--agent", "desk:run").exit == 0
    return errs


def test_blame_refuses_an_oracle_that_never_fails_or_always_raises(desk: Errs) -> None:
    """Without a failing run there is nothing to blame; if it raises, no run has an outcome."""
    words = ["blame", "desk.tape", "--agent=desk:run", "--workers=1", "--yes"]
    assert desk.runs("an-oracle-that-never-fails", *words, "--oracle=equals:200").exit == 2
    journal = desk.folder / "desk.tape.blame" / "journal.jsonl"
    *unfinished, _ = journal.read_bytes().splitlines(keepends=True)
    journal.write_bytes(b"".join(unfinished))  # A blame with a verdict does not block another.
    again = [*words, "--oracle=equals:404"]
    assert desk.runs("a-blame-begun-before", *again).exit == 2
    assert desk.runs("a-journal-of-another", *again, "--resume").exit == 2
    raising = [*words, "--oracle=desk:raises", "--to=other"]
    assert desk.runs("an-oracle-that-raises", *raising).exit == 1
    exiting = [*words, "--oracle=desk:exits", "--to=exits"]
    assert desk.runs("an-oracle-that-exits", *exiting).exit == 1
    assert Path(desk.folder / "other" / "journal.jsonl").exists()


def test_a_second_blame_in_the_same_folder_is_refused(desk: Errs) -> None:
    """Two would spend the budget twice."""
    words = ["blame", "desk.tape", "--agent=desk:run", "--oracle=equals:200", "--yes"]
    desk.shell.tracefork(*words)
    with Path(desk.folder / "desk.tape.blame" / "journal.jsonl").open("ab") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        assert desk.runs("a-blame-that-is-running", *words, "--resume").exit == 2


def test_a_blame_stopped_by_a_full_disk_can_be_resumed(desk: Errs) -> None:
    """No paid run is lost, and the message says how to resume."""
    words = ["blame", "desk.tape", "--agent=desk:run", "--oracle=equals:404"]
    words += ["--workers=1", "--yes"]
    assert desk.runs("a-full-disk-in-a-blame", *words, FULL="1").exit == 5
    done = desk.shell.tracefork(*words, "--resume")
    assert done.exit == 0
    assert "without an outcome" not in done.out


def test_bisect_refuses_a_run_that_did_not_fail(desk: Errs) -> None:
    """It makes no live call."""
    words = ["bisect", "desk.tape", "--agent=desk:run", "--oracle=equals:200"]
    assert desk.runs("a-good-run", *words).exit == 2
