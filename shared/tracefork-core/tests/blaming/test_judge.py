"""A judge grades outcomes with a model: its input, its cost, and its answers."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tracefork_core import Tape, UsageError
from tracefork_core.blaming.bisect import bisect
from tracefork_core.blaming.blame import blame
from tracefork_core.blaming.oracles.judge import Judge, UngradeableError
from tracefork_core.blaming.oracles.oracles import Ended, read_oracle
from tracefork_core.blaming.trials.trial_journal import JOURNAL, read

from . import drawing
from .drawn import ROOT, SHORT, Drawing
from .grading import Bench

RUBRIC = "The customer gets the refund."


@pytest.fixture
def judge(endpoint: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Judge:
    monkeypatch.setenv("JUDGE_KEY", "sk-judge-0123456789abcdef")
    judge = Judge(RUBRIC, "gpt-5-mini", base_url=endpoint, api_key_env="JUDGE_KEY")
    return judge.placed(tmp_path)


def test_a_judge_sees_only_the_rubric_and_the_outcome(
    judge: Judge, bench: Bench, tmp_path: Path
) -> None:
    """It asks at temperature 0; the call is on a tape, its key is not."""
    assert judge(Ended(0, "a refund"))
    assert not judge("nothing")
    first = bench.seen[0]
    assert (first.last_user_text, first.payload["temperature"]) == ("a refund", 0)
    assert first.system.endswith(RUBRIC)
    assert set(first.payload) == {"model", "messages", "temperature"}
    tapes = sorted((tmp_path / "judge").glob("*.tape"))
    assert len(tapes) == 2
    for path in tapes:
        with Tape.open(path) as tape:
            assert tape.complete
            (asked,) = tape.exchanges
            assert b"refund" in asked.request_body
        assert b"sk-judge" not in path.read_bytes()


def test_an_outcome_is_paid_for_once(judge: Judge, bench: Bench) -> None:
    """This holds for parallel threads; another grade of the same outcome is another call."""
    with ThreadPoolExecutor(4) as threads:
        assert all(threads.map(judge, ["a refund"] * 8))
    assert len(bench.seen) == 1
    assert judge.again("a refund", 1)
    assert judge.again("a refund", 1)
    assert (len(bench.seen), judge.spent({}).total.calls) == (2, 2)
    assert judge.spent({}).total.tokens > 0


@pytest.mark.parametrize(
    "says",
    ["PASS", '{"verdict": "pass"}', '{"verdict": "PASS", "sure": 1}', "[1]", "", '```{"verdict"'],
)
def test_a_malformed_answer_of_the_judge_is_no_verdict(
    judge: Judge, bench: Bench, says: str
) -> None:
    """It is not read as the verdict it resembles, and the call is not repeated."""
    bench.says = [says]
    for _ in range(2):
        with pytest.raises(UngradeableError, match="no verdict"):
            judge("a refund")
    assert len(bench.seen) == 1


def test_a_judge_retries_when_the_server_is_busy(judge: Judge, bench: Bench) -> None:
    """It makes up to three calls; after a failure the outcome can be graded later."""
    bench.faults = 1
    assert judge("a refund")
    bench.faults = 3
    with pytest.raises(UngradeableError, match="HTTP 503"):
        judge("another refund")
    assert judge("another refund")
    calls = 0
    for path in Path(judge.folder or "").glob("*.tape"):
        with Tape.open(path) as tape:
            calls += len(tape.exchanges)
    assert calls == len(bench.seen) == 2 + 3 + 1


def test_blame_with_a_judge_keeps_its_calls_off_the_branches(
    judge: Judge, bench: Bench, tape: Path, desk: Drawing
) -> None:
    """Forks run at the same time; no call of the judge is on a branch or in the ledger."""
    with ThreadPoolExecutor(3) as threads:
        report = blame(tape, drawing.agent, judge, executor=threads, regrades=3)
    assert report.result.verdict.units == (ROOT,)
    assert report.noise is not None
    assert (report.noise.false_fail, report.noise.miss) == (0, 0)
    assert {request.last_user_text for request in bench.seen} == {"deny", "refund"}
    assert len(bench.seen) == 2 * (1 + 3)
    assert report.grading is not None
    assert report.grading.calls == len(bench.seen)
    assert report.result.ledger.live_calls == desk.live
    bodies: list[bytes] = []
    for path in tape.with_name("run.tape.blame").glob("run~*.tape"):
        with Tape.open(path) as branch:
            bodies += [one.request_body for one in branch.exchanges]
    assert any(b"after: refund" in body for body in bodies)
    assert not any(b"verdict" in body for body in bodies)


def test_bisect_works_with_a_judge(endpoint: str, bench: Bench, tape: Path) -> None:
    """An outcome that occurs twice is paid for once; the tapes are removed with the forks."""
    found = bisect(tape, drawing.agent, Judge(RUBRIC, "m", endpoint))
    assert found.unit is not None
    assert found.skipped == ()
    assert sorted(request.last_user_text for request in bench.seen) == ["deny", "refund"]
    assert [one.name for one in tape.parent.iterdir()] == [tape.name]


def test_forks_without_a_verdict_have_no_outcome(tape: Path, judge: Judge, bench: Bench) -> None:
    """They are counted with their reason, and the verdict is undecided."""
    bench.says = ["no idea"] * 99
    report = blame(tape, drawing.agent, judge, settings=SHORT)
    assert report.result.verdict.kind == "undecided"
    assert report.result.undefined.forks > 0
    assert "no verdict" in next(iter(report.result.undefined.reasons))


def test_a_blame_with_another_rubric_cannot_be_resumed(tape: Path, endpoint: str) -> None:
    """The hash of the rubric is in the journal."""
    blame(tape, drawing.agent, Judge(RUBRIC, "m", endpoint), settings=SHORT)
    assert "sha256:" in read(tape.with_name("run.tape.blame") / JOURNAL).header.oracle
    other = Judge(RUBRIC + " And fast.", "m", endpoint)
    with pytest.raises(UsageError, match="journal of another blame: oracle was"):
        blame(tape, drawing.agent, other, settings=SHORT, resume=True)


def test_a_judge_from_the_command_line_needs_a_model_and_a_key(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The errors name the missing variables, and the rubric is read at once."""
    path = tmp_path / "rubric.md"
    path.write_text(RUBRIC)
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    monkeypatch.delenv("TRACEFORK_JUDGE_MODEL", raising=False)
    with pytest.raises(UsageError, match="TRACEFORK_JUDGE_MODEL"):
        read_oracle(f"judge:{path}")
    monkeypatch.setenv("TRACEFORK_JUDGE_MODEL", "gpt-5-mini")
    judge = read_oracle(f"judge:{path}")
    assert isinstance(judge, Judge)
    assert (judge.rubric, judge.model) == (RUBRIC, "gpt-5-mini")
    with pytest.raises(UsageError, match="OPENAI_API_KEY is not set"):
        judge.placed(tmp_path)
