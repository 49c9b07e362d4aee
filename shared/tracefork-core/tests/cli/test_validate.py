"""`tracefork validate` plants faults in a real agent, and notices a blame that is wrong."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tracefork_core import Tape
from tracefork_core.blaming import blame as blaming
from tracefork_core.blaming.engine.probe import Probe
from tracefork_core.blaming.engine.result import Verdict
from tracefork_core.blaming.report import Report
from tracefork_core.blaming.trials.trial import Job, carry_out
from tracefork_core.cli.commands import validate
from tracefork_core.cli.main import main
from tracefork_core.cli.validate.validate_result import Document, Outcome, changed

from .conftest import Done, Shell

Agent = Callable[[], object]
Oracle = Callable[[object], object]
pytestmark = pytest.mark.many_processes

SUBSET = ("validate", "--faults", "tool-output,retrieval", "--positions", "4")
_FORKS = 2


def flip_rates(path: Path, agent: Agent, oracle: Oracle) -> list[float]:
    """Ask again at each exchange of a run, and return how often that repairs it."""
    with Tape.open(path) as tape:
        size = len(tape.exchanges)
    rates = []
    for unit in range(size):
        job = Job(0, Probe(frozenset(range(unit))), str(path), "flip.tape", {}, writes="allow")
        trials = [carry_out(job, agent, oracle) for _ in range(_FORKS)]
        rates.append(sum(trial.failed is False for trial in trials) / _FORKS)
    return rates


def blame_by_flip_rate(path: Path, agent: Agent, oracle: Oracle, **options: Any) -> Report:
    """Name the exchange that repairs the run most often when asked again: mostly the first."""
    report = BLAME(path, agent, oracle, **{**options, "budget": "0 calls"})
    if report.result.verdict.kind == "passed":
        return report
    rates = flip_rates(path, agent, oracle)
    verdict = Verdict(kind="single", units=(rates.index(max(rates)),), certain=True)
    return msgspec.structs.replace(
        report, result=msgspec.structs.replace(report.result, verdict=verdict)
    )


BLAME = blaming.blame


@pytest.fixture(scope="module")
def validated(tmp_path_factory: pytest.TempPathFactory) -> tuple[Shell, Done]:
    """Plant two classes at one exchange; the report is in the folder."""
    shell = Shell(tmp_path_factory.mktemp("validated"))
    return shell, shell.tracefork(*SUBSET, "--json", "--write", "report.json")


def test_planted_faults_are_found_and_no_other_exchange_is_named(
    validated: tuple[Shell, Done],
) -> None:
    """The case covers two faults, their paraphrases and a coin."""
    shell, done = validated
    assert done.exit == 0, done.err
    outcomes = {one["name"]: one for one in done.document["report"]["outcomes"]}
    for fault in ("tool-output@4", "retrieval@4"):
        assert (outcomes[fault]["verdict"], outcomes[fault]["named"]) == ("single", [4])
    assert {"clean", "placebo tool-output@4", "placebo retrieval@4", "coin grade"} < set(outcomes)
    assert [one for one in outcomes.values() if one.get("control") and one.get("named")] == []
    assert json.loads((shell.folder / "report.json").read_text()) == done.document["report"]


def test_one_seed_gives_one_report_and_check_shows_differences(
    validated: tuple[Shell, Done],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A report that differs from the given one is 1, and its own report is 0.

    The document holds no times.
    """
    shell, done = validated
    kept = done.document["report"]
    found = next(one for one in kept["outcomes"] if one["name"] == "retrieval@4")
    other, again = tmp_path / "other.json", tmp_path / "again.json"
    other.write_text(json.dumps(kept).replace('"mediators": [5]', '"mediators": [6]'))
    words = ["validate", "--faults", "retrieval", "--positions", "4"]
    assert main([*words, "--check", str(other), "--write", str(again)]) == 1
    *_, head, line = capsys.readouterr().out.splitlines()
    assert head.startswith("1 change since")
    assert line.strip() == "retrieval@4: mediators was 6, is 5"
    assert found in json.loads(again.read_text())["outcomes"]
    assert main([*words, "--check", str(other), "--seed", "1"]) == 2
    assert set(done.document) == {"command", "exit", "result", "tracefork", "report"}
    capsys.readouterr()
    ran = list(msgspec.convert(kept, type=Document).outcomes)
    monkeypatch.setattr(validate, "_run", lambda *words: ran)
    assert main([*SUBSET, "--check", str(shell.folder / "report.json")]) == 0
    assert capsys.readouterr().out.splitlines()[-1].startswith("✓ same as ")
    assert main([*SUBSET, "--json"]) == 0
    assert capsys.readouterr().out == done.out


def test_a_missing_case_is_reported() -> None:
    """If only some cases were requested, the others are not missing."""
    one, other = (
        Outcome(name=name, holds=True, verdict="", forks=0, live_calls=0) for name in "ab"
    )
    before, after = (Document.of(ran, seed=0, budget="") for ran in ((one, other), (one,)))
    assert changed(before, after, whole=True) == ["b: gone"]
    assert changed(before, after, whole=False) == changed(before, before, whole=True) == []


def test_a_wrong_blame_is_reported(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The control: blame by flip rate names an earlier exchange."""
    monkeypatch.setattr(blaming, "blame", blame_by_flip_rate)
    words = ["validate", "--faults", "tool-output", "--positions", "6", "--json"]
    assert main(words) == 1
    outcomes = {
        one["name"]: one for one in json.loads(capsys.readouterr().out)["report"]["outcomes"]
    }
    assert not outcomes["tool-output@6"]["holds"]
    assert outcomes["tool-output@6"]["named"] < [6]
    assert outcomes["clean"]["holds"]


@pytest.mark.parametrize(
    ("words", "facts"),
    [
        (["--faults", "magic"], ["'magic'", "retrieval"]),
        (["--positions", "x"], ["--positions", "'x'"]),
        (["--positions", "4,99"], ["--positions", "99"]),
        (["--faults", "retrieval", "--positions", "1"], ["retrieval"]),
        (["--check", "missing.json"], ["missing.json"]),
        (["--write", "missing/report.json"], ["missing/report.json"]),
    ],
)
def test_an_impossible_validation_is_refused(
    words: list[str], facts: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    """The error names the class, exchange or file, and nothing is run."""
    assert main(["validate", *words]) == 2
    printed = " ".join(capsys.readouterr().err.split())
    assert [fact for fact in facts if fact not in printed] == [], printed
