"""Concurrent programs replay with deliveries in the recorded order, so all prompts are equal."""

from __future__ import annotations

import json
import os
import random
import runpy
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tracefork_core import DivergenceError, Tape, record, replay
from tracefork_core.order import quiet, thread_rest
from tracefork_testkit import ModelRequest, ProviderServer, Reply

AGENTS = Path(__file__).with_name("programs.py")
PROGRAMS = runpy.run_path(str(AGENTS))["PROGRAMS"]
RECORDINGS = int(os.environ.get("TRACEFORK_REPEAT", "2"))
REPLAYS = 3
RACES = {"idle_workers"}
"""Programs whose threads race for their jobs: strict refuses that another one takes a job."""
REPLAY_ELSEWHERE = """
import json, runpy, sys
from tracefork_core import replay
folder, agents, url = sys.argv[1:]
answers = {}
for name, program in runpy.run_path(agents)["PROGRAMS"].items():
    with replay(f"{folder}/{name}.tape") as run:
        answers[name] = program(url)
    assert (run.digest, run.reordered) == (run.tape.digest, 0), name
print(json.dumps(answers))
"""


@pytest.fixture
def provider() -> Iterator[ProviderServer]:
    """Serve different answers with random delays, some of which end at the same moment."""
    chance = random.Random()

    def script(request: ModelRequest) -> Reply:
        delay = chance.choice([0, 0.001, 0.001, 0.004, 0.01])
        delay += 0.1 if request.last_user_text.startswith("slow") else 0
        return Reply(text=f"{chance.random():.6f}", delay=delay)

    with ProviderServer(script) as server:
        yield server


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_concurrent_program_replays_in_the_recorded_order(
    name: str, tape: Path, provider: ProviderServer
) -> None:
    """Several recordings, each replayed several times: one answer, one digest, the same lanes."""
    run = PROGRAMS[name]
    for _ in range(RECORDINGS):
        with record(tape, overwrite=True):
            first = run(provider.url)
        for _ in range(REPLAYS):
            with replay(tape, strict=name not in RACES) as replaying:
                assert run(provider.url) == first
            assert (replaying.digest, replaying.reordered) == (replaying.tape.digest, 0)


def test_concurrent_programs_replay_in_another_process(
    tmp_path: Path, provider: ProviderServer
) -> None:
    """A process with another hash seed delivers in the same order."""
    first = {}
    for name, program in PROGRAMS.items():
        with record(tmp_path / f"{name}.tape"):
            first[name] = program(provider.url)
    given = [str(tmp_path), str(AGENTS), provider.url]
    command = [sys.executable, "-c", REPLAY_ELSEWHERE, *given]
    environment = {**os.environ, "PYTHONHASHSEED": "1"}
    ran = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    assert json.loads(ran.stdout) == first


def test_lanes_have_the_same_names_in_three_recordings(
    tape: Path, provider: ProviderServer
) -> None:
    """Tasks, jobs and threads get their names when they start, not at their first request."""
    names = []
    for _ in range(3):
        with record(tape, overwrite=True):
            PROGRAMS["mixture"](provider.url)
        with Tape.open(tape) as recorded:
            names.append(sorted(exchange.lane for exchange in recorded.exchanges))
    assert names[0] == names[1] == names[2]
    assert "main/branch.2/leaves.1/ask.2" in names[0]


def test_without_waiting_for_quiet_a_replay_diverges(
    tape: Path, provider: ProviderServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The control: threads and tasks get ahead of one another."""

    async def at_once(*_: object, **__: object) -> None:
        return None

    monkeypatch.setattr(thread_rest.Rest, "wait", lambda *_: None)
    for module in (quiet, sys.modules["tracefork_core.order.turnstile"]):
        monkeypatch.setattr(module, "until_quiet", at_once)
    with pytest.raises(DivergenceError):  # noqa: PT012 - one of them will
        for _ in range(20):
            for name in ("gather", "pool", "mixture"):
                with record(tape, overwrite=True):
                    PROGRAMS[name](provider.url)
                with replay(tape):
                    PROGRAMS[name](provider.url)


@pytest.mark.parametrize("name", ["heartbeats", "limits", "a_sleep_cut_short", "limits_in_threads"])
def test_without_the_turns_of_sleeps_and_timeouts_a_replay_diverges(
    name: str, tape: Path, provider: ProviderServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The control: the answers of a replay come at once, so sleeps and timeouts end too late."""
    with record(tape):
        PROGRAMS[name](provider.url)
    monkeypatch.setattr("tracefork_core.session.session.recorded_waits", lambda _: [])
    with pytest.raises(DivergenceError), replay(tape):
        PROGRAMS[name](provider.url)
