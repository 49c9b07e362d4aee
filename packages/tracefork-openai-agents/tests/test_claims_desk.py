"""The claims desk: one fault of four, forks around it, and a replay without its servers."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import tracefork_core as tracefork

from .claims import FAULTS, READS, Claims, claims

SECRET = "tk8Qm2Zr71Vx"
_REPLAY = """
import os, sys
from pathlib import Path
import desk
import tracefork_core as tracefork
from tracefork_testkit import closed_network
for tape in sys.argv[1:]:
    os.environ["FAULT"] = Path(tape).stem
    with closed_network() as network, tracefork.replay(tape, strict=True) as replayed:
        desk.run()
    assert replayed.digest == replayed.tape.digest
    assert network.attempts == []
"""


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Claims]:
    """The example, with its server in Node.js where npm can install it."""
    with pytest.MonkeyPatch.context() as patch:
        with claims(tmp_path_factory.mktemp("claims"), patch) as made:
            yield made


@pytest.fixture(scope="module")
def tapes(desk: Claims) -> dict[str, Path]:
    """A failed run of each fault."""
    return {fault: desk.record(fault) for fault in FAULTS}


def at(tape: Path, *path: str) -> int:
    """Return the number of the first exchange whose step path ends with these names."""
    with tracefork.Tape.open(tape) as opened:
        paths = [tuple(step.name for step in one.steps) for one in opened.exchanges]
    return next(n for n, names in enumerate(paths) if names[-len(path) :] == path)


def is_repaired(desk: Claims, tape: Path, exchange: int) -> bool:
    """Return whether a fork ends well that decides this exchange and all later ones again."""
    os.environ["FAULT"] = tape.stem
    to = tape.with_suffix(f".{exchange}.tape")
    with tracefork.fork(tape, exchange, reads=READS, writes="allow", to=to, overwrite=True):
        text = desk.desk.run()
    return bool(desk.desk.is_right(text))


@pytest.mark.many_processes
@pytest.mark.parametrize("fault", FAULTS)
def test_a_fork_repairs_a_run_at_the_planted_step_and_not_after_it(
    desk: Claims, tapes: dict[str, Path], fault: str
) -> None:
    """That step alone differs between the forks, so it is the cause. `truth` blames the runs."""
    planted = at(tapes[fault], *FAULTS[fault])
    assert is_repaired(desk, tapes[fault], planted)
    assert not is_repaired(desk, tapes[fault], planted + 1)


@pytest.mark.many_processes
def test_a_run_without_a_fault_has_nothing_to_blame(desk: Claims, tmp_path: Path) -> None:
    """The negative control of the faults: the same desk answers well when none is planted."""
    tape, work = desk.record(""), desk.desk
    report = tracefork.blame(
        tape, work.run, work.is_right, reads=READS, writes="stub", folder=tmp_path
    )
    assert report.result.verdict.kind == "passed"
    assert report.result.verdict.units == ()


@pytest.mark.many_processes
def test_records_replay_in_a_new_process_without_servers(
    desk: Claims, tapes: dict[str, Path], tmp_path: Path
) -> None:
    """Neither program exists there, no connection is made, and the hashes of strings differ."""
    for name in ("desk.py", "faults.py"):
        shutil.copy(desk.folder / name, tmp_path)
    subprocess.run(
        [sys.executable, "-c", _REPLAY, *map(str, tapes.values())],
        cwd=tmp_path,
        env={**os.environ, "PYTHONHASHSEED": "1"},
        check=True,
        timeout=120,
    )


@pytest.mark.many_processes
@pytest.mark.parametrize("mode", ["safe", "raw"])
def test_the_key_of_a_server_is_not_on_the_tape(
    desk: Claims, mode: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is in the server's environment and in a tool's argument; a raw tape has the latter."""
    monkeypatch.setenv("ORDERS_KEY", SECRET)
    monkeypatch.setattr(desk.desk, "TICKET", f"{desk.desk.TICKET} Use account {SECRET}.")
    monkeypatch.setattr(desk.desk.run, "__defaults__", (desk.desk.TICKET,))
    tape = desk.record(mode, mode=mode)
    with tracefork.Tape.open(tape) as opened:
        bodies = [one.request_body + one.response_body for one in opened.exchanges]
    assert any(b"close_ticket" in body for body in bodies)
    assert any(SECRET.encode() in body for body in bodies) == (mode == "raw")
