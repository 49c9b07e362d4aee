"""numpy's generators: the global one, and those made without a seed."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from tracefork_core import Tape, record, replay

LAZY = """
import sys
from tracefork_core import record, replay
verb, tape = sys.argv[1:]
assert "numpy" not in sys.modules
with (record if verb == "record" else replay)(tape):
    import numpy as np
    print(np.random.rand(), np.random.normal())
assert "Announcing" not in repr(np.random.mtrand.__spec__)
print(np.random.rand())
"""


def draw() -> list[float]:
    return [np.random.rand(), np.random.normal(), np.random.default_rng().random()]


def elsewhere(verb: str, tape: Path) -> list[str]:
    """Return what a process draws that imports numpy inside a session, inside and after it."""
    words = [sys.executable, "-c", LAZY, verb, str(tape)]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def said(drawn: list[float]) -> str:
    return " ".join(map(str, drawn[:2]))


def test_draws_of_numpy_replay(tape: Path) -> None:
    """Of the global generator and of a new one; another recording gives others."""
    with record(tape):
        first = draw() + draw()
    for _ in range(2):
        with replay(tape):
            assert draw() + draw() == first
    with record(tape, overwrite=True):
        assert not set(draw()) & set(first)


def test_a_numpy_generator_seeded_before_the_recording_continues(tape: Path) -> None:
    """In the recording and after it, the values are those without tracefork."""
    np.random.seed(5)
    plain = [np.random.rand(), np.random.normal(), np.random.rand()]
    np.random.seed(5)
    with record(tape):
        inside = [np.random.rand(), np.random.normal()]
    assert [*inside, np.random.rand()] == plain


def test_a_replay_restores_the_generator_of_numpy(tape: Path) -> None:
    """The program's draws after a replay do not depend on the tape."""
    with record(tape):
        draw()
    np.random.seed(6)
    following = np.random.rand()
    np.random.seed(6)
    with replay(tape):
        draw()
    assert np.random.rand() == following


def test_an_unused_numpy_state_is_not_on_the_tape(tape: Path) -> None:
    """Many libraries import numpy, and few draw from it."""
    np.random.rand()
    with record(tape):
        np.zeros(3)
    with Tape.open(tape) as opened:
        assert opened.chance.generators == []


@pytest.mark.parametrize("recorded", ["with numpy loaded", "before it was loaded"])
def test_numpy_imported_inside_the_session_replays(tape: Path, recorded: str) -> None:
    """Recorded with numpy loaded or not, it replays both ways, and is random afterwards."""
    if recorded == "with numpy loaded":
        with record(tape):
            first = said(draw())
    else:
        first = elsewhere("record", tape)[0]
    with replay(tape):
        assert said(draw()) == first
    one, other = elsewhere("replay", tape), elsewhere("replay", tape)
    assert one[0] == other[0] == first
    assert one[1] != other[1]
