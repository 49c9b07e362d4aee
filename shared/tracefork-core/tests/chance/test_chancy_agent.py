"""The promise: an agent with randomness in every prompt, recorded once, always replays."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import uuid
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from tracefork_core import DivergenceError, record, replay
from tracefork_testkit import ProviderServer

from ..conftest import Alter

ELSEWHERE = """
import sys
import an_agent
from tracefork_core import replay
url, *tapes = sys.argv[1:]
for tape, way in zip(tapes, an_agent.WAYS, strict=True):
    with replay(tape) as run:
        an_agent.WAYS[way](url)
    print(run.digest, run.entropy_misses, run.clock_misses)
"""


def test_an_agent_full_of_randomness_replays_here_and_elsewhere(
    tmp_path: Path, provider: ProviderServer, agent: ModuleType
) -> None:
    """With one digest: twice in this process, and in two others with other hash seeds."""
    proven: dict[str, list[str]] = {}
    for way, run_it in agent.WAYS.items():
        tape = tmp_path / f"{way}.tape"
        with record(tape) as recording:
            run_it(provider.url)
        proven[str(tape)] = [str(recording.digest), "0", "0"]
        for _ in range(2):
            with replay(tape) as run:
                run_it(provider.url)
            assert (run.digest, run.entropy_misses, run.clock_misses) == (recording.digest, 0, 0)
    assert len(proven) == 3
    for seed in "1", "2":
        done = subprocess.run(
            [sys.executable, "-c", ELSEWHERE, provider.url, *proven],
            cwd=Path(__file__).parent,
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=False,
        )
        assert list(map(str.split, done.stdout.splitlines())) == list(proven.values()), done.stderr


def test_an_agent_full_of_randomness_replays_a_hundred_times(
    tape: Path, provider: ProviderServer, agent: ModuleType
) -> None:
    """With one digest."""
    with record(tape) as recording:
        agent.in_turn(provider.url)
    digests = set()
    for _ in range(100):
        with replay(tape) as run:
            agent.in_turn(provider.url)
        digests.add(run.digest)
    assert digests == {recording.digest}
    assert len(provider.requests) == 2


def test_two_recordings_differ(tape: Path, provider: ProviderServer, agent: ModuleType) -> None:
    """Negative control: the randomness is in the prompts, and new in each recording."""
    with record(tape) as one:
        agent.in_turn(provider.url)
    with record(tape, overwrite=True) as other:
        agent.in_turn(provider.url)
    assert one.digest != other.digest


@pytest.mark.parametrize("off", ["clock", "entropy"])
@pytest.mark.parametrize("at", ["record", "replay"])
def test_a_replay_without_clock_or_entropy_diverges(
    tape: Path, provider: ProviderServer, agent: ModuleType, off: str, at: str
) -> None:
    """Negative control: switched off in the recording or in the replay."""
    recording: dict[str, Any] = {off: at != "record"}
    replaying: dict[str, Any] = {off: at != "replay"}
    with record(tape, **recording):
        agent.in_turn(provider.url)
    with pytest.raises(DivergenceError), replay(tape, **replaying):
        agent.in_turn(provider.url)


def test_a_changed_seed_diverges(
    tape: Path, provider: ProviderServer, agent: ModuleType, alter: Alter
) -> None:
    """Negative control: the values come from the tape."""
    with record(tape):
        agent.in_turn(provider.url)
    alter(tape, events=lambda line: line.replace(b'"seed":"', b'"seed":"AAAA'))
    with pytest.raises(DivergenceError), replay(tape):
        agent.in_turn(provider.url)


def test_a_changed_read_of_the_clock_diverges(
    tape: Path, provider: ProviderServer, agent: ModuleType, alter: Alter
) -> None:
    """Negative control: one changed value of the clock is enough."""
    with record(tape):
        agent.in_turn(provider.url)
    alter(tape, events=lambda line: line.replace(b'"values":[1', b'"values":[2'))
    with pytest.raises(DivergenceError), replay(tape):
        agent.in_turn(provider.url)


def test_draws_of_a_background_thread_do_not_shift_those_of_the_agent(
    tape: Path, provider: ProviderServer, agent: ModuleType
) -> None:
    """However many it makes."""

    def run(ids: int) -> None:
        drawn = threading.Event()

        def draw() -> None:
            for _ in range(ids):
                uuid.uuid4()
                agent.luck()
                agent.prompt()
            drawn.set()

        thread = threading.Thread(target=draw)
        thread.start()
        agent.in_turn(provider.url)
        assert drawn.wait(20)
        thread.join()
        agent.in_turn(provider.url)

    with record(tape) as recording:
        run(ids=3)
    with replay(tape) as replaying:
        run(ids=300)
    assert replaying.digest == recording.digest
    assert replaying.entropy_misses > 0
