"""A blame that is killed at any moment can be resumed, with the same result."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
from functools import partial
from importlib import import_module
from pathlib import Path

import pytest

from tracefork_core import record
from tracefork_core.blaming.blame import blame
from tracefork_core.blaming.trials.trial_journal import JOURNAL, read

from .drawn import SHORT, Drawing, outcome

pytestmark = pytest.mark.many_processes

KILLS = 5
MOST = 4
SCRIPT = """\
import sys
from pathlib import Path

import drawing
from tracefork_core.blaming.blame import blame
from tracefork_core.blaming.engine.probe import Settings

if __name__ == "__main__":
    settings = Settings(patience=1.0, samples=60, grades=1)
    blame(sys.argv[1], drawing.agent, drawing.good, settings=settings, resume=True,
          workers=int(sys.argv[2]))
"""


def test_a_killed_blame_resumes_with_the_same_result(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No journaled trial is lost or paid for again; the ledger has the calls of killed forks."""
    tape, journal = tmp_path / "run.tape", tmp_path / "run.tape.blame" / JOURNAL
    (tmp_path / "blaming.py").write_text(SCRIPT)
    chance = random.Random(5)
    monkeypatch.syspath_prepend(Path(__file__).parent)
    drawing = import_module("drawing")
    with Drawing() as provider:
        monkeypatch.setenv("PROVIDER", provider.url)
        with record(tape):
            drawing.agent()
        alone = blame(tape, drawing.agent, drawing.good, settings=SHORT, folder=tmp_path / "alone")
        provider.forget()
        known: dict[int, object] = {}
        for kill in range(KILLS):
            paid = dict(provider.asked)
            process = blaming(tmp_path, workers=1 + kill % 2)
            call = provider.live + chance.randint(1, MOST)
            provider.at_call(call, partial(os.kill, process.pid, signal.SIGKILL))
            assert process.wait() == -signal.SIGKILL
            assert all(provider.asked[str(n)] == paid.get(str(n), 0) for n in known)
            trials = {one.number: one for one in read(journal).trials} if journal.exists() else {}
            assert known.items() <= trials.items()
            known.update(trials)
        assert known
        report = blame(tape, drawing.agent, drawing.good, settings=SHORT, resume=True)
    assert outcome(report) == outcome(alone)
    assert known.items() <= {one.number: one for one in report.draws}.items()
    # A call is recorded before it is sent, so the last one of a killed fork may not have been.
    assert 0 <= report.result.ledger.live_calls - provider.live <= 2 * KILLS
    assert provider.live > alone.result.ledger.live_calls


def blaming(folder: Path, workers: int) -> subprocess.Popen[bytes]:
    """Start a process that resumes the blame."""
    path = os.pathsep.join([str(Path(__file__).parent), os.environ.get("PYTHONPATH", "")])
    return subprocess.Popen(
        [sys.executable, "blaming.py", "run.tape", str(workers)],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": path},
    )
