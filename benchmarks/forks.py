"""Measure forks at the start, in the middle and at the end of a transcript that grows."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator

from bench import Bench, Rounds, Samples
from peers import IN_MEMORY
from recorders import CORE, PLAIN, Recorder
from scripted import body, client, converse, transport
from table import Measurement, Row, Spread
from words import words

TITLE = "A fork of a transcript that grows"
_STEPS = (10, 50, 200)
_PLACES = {"first": 0.0, "middle": 0.5, "last": 1.0}
CASES = tuple(f"{steps} steps, {place}" for steps in _STEPS for place in _PLACES)
_NEW_BYTES = 512


def measure(bench: Bench) -> Measurement:
    """Measure the forks of each tool, beside one run of the agent without a recorder."""
    rows: list[Row] = []
    for steps in _STEPS[: 2 if bench.quick else None]:
        names = bench.present(PLAIN, CORE, IN_MEMORY)

        def one(who: str, steps: int = steps) -> Samples:
            task = run if who == PLAIN else fork if who == CORE else fork_of_peer
            return bench.ask(who, task, steps=steps, path=bench.path())

        rounds = bench.rounds(1 if bench.quick else 3, names, one)
        for place in _PLACES:
            rows.extend(_rows(f"{steps} steps, {place}", place, rounds))
    return Measurement(
        TITLE,
        "Answers come from a transport in the process. Each step adds 1 KB and sends everything "
        "before it again. The answer at one step is replaced and the rest is live. Times are CPU "
        "time. Compared: the ratio to one run of the agent without a recorder, since a fork runs "
        "it from its start.",
        rows,
    )


def _rows(case: str, place: str, rounds: Rounds) -> Iterator[Row]:
    plain = statistics.median(one["run"][0] for one in rounds[PLAIN])
    for who, found in rounds.items():
        seconds = [one["run" if who == PLAIN else place][0] for one in found]
        ratio = statistics.median(seconds) / plain
        yield Row(case, who, Spread.of([s * 1e3 for s in seconds]), "ms", f"{ratio:.2f} x")


def run(recorder: Recorder, steps: int, path: str) -> Samples:
    """Run the agent without a recorder."""
    asked = client(_answer)
    began = time.process_time()
    converse(asked, _questions(steps))
    return {"run": [time.process_time() - began]}


def fork(recorder: Recorder, steps: int, path: str) -> Samples:
    """Record the agent, and fork it at each place."""
    import tracefork_core

    asked, questions = client(_answer), _questions(steps)
    with tracefork_core.record(path):
        converse(asked, questions)

    def forked(at: int) -> None:
        with tracefork_core.fork(path, at, "Something else.", to=f"{path}-{at}.tape"):
            converse(asked, questions)

    return _timed(steps, forked)


def fork_of_peer(recorder: Recorder, steps: int, path: str) -> Samples:
    """Do the same with the peer."""
    from tracefork import BranchSpec, ForkEngine  # type: ignore[import-not-found]
    from tracefork import Recorder as PeerRecorder

    questions = _questions(steps)
    with PeerRecorder(client(_answer)) as recording:
        converse(recording.client, questions)

    def forked(at: int) -> None:
        ForkEngine.fork(
            recording.tape,
            BranchSpec(divergence_step=at, mutated_response=body("Something else.")),
            lambda asked: converse(asked, questions),
            post_fork_transport=transport(_answer),
        )

    return _timed(steps, forked)


def _timed(steps: int, forked: Callable[[int], None]) -> Samples:
    found: Samples = {}
    for place, share in _PLACES.items():
        began = time.process_time()
        forked(min(steps - 1, int(steps * share)))
        found[place] = [time.process_time() - began]
    return found


def _questions(steps: int) -> list[str]:
    return [words(_NEW_BYTES, ("user", step)) for step in range(steps)]


def _answer(step: int) -> str:
    return words(_NEW_BYTES, ("model", step))
