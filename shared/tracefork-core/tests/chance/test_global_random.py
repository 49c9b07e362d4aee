"""The functions of `random` give the values of plain Python, whoever seeds the generator."""

from __future__ import annotations

import importlib
import random
import sys
import threading
import uuid
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from pathlib import Path
from random import gauss, getstate, seed, setstate
from random import random as luck

import pytest

from tracefork_core import record, replay


@pytest.fixture(autouse=True)
def _put_back() -> Iterator[None]:
    state = random.getstate()
    yield
    random.setstate(state)


def of_everything() -> list[object]:
    return [
        random.random(),
        luck(),
        random.choice("abcdef"),
        random.gauss(0, 1),
        random.randbytes(5),
        gauss(0, 1),
        random.gauss(0, 1),
        random.getrandbits(70),
        random.sample(range(100), 7),
        random.uniform(1, 2),
        uuid.uuid1().version,
        random.random(),
    ]


def seeded_inside() -> list[object]:
    random.seed(42)
    return of_everything()


def seeded_early_bound() -> list[object]:
    seed("words")
    return of_everything()


def seeded_for_a_while() -> list[object]:
    random.seed(1)
    before = of_everything()
    state = getstate()
    random.seed(2)
    between = of_everything()
    setstate(state)
    return [*before, *between, *of_everything()]


def seeded_for_a_thread() -> list[object]:
    random.seed(42)
    drawn: list[object] = [random.random()]
    thread = threading.Thread(target=lambda: drawn.append(random.random()))
    thread.start()
    thread.join()
    return [*drawn, random.random()]


SEEDED = [seeded_inside, seeded_early_bound, seeded_for_a_while, seeded_for_a_thread]


@pytest.mark.parametrize("program", SEEDED, ids=lambda program: program.__name__)
def test_a_seeded_generator_gives_the_values_of_its_seed(
    tape: Path, program: Callable[[], list[object]]
) -> None:
    """Recorded and replayed."""
    plain = program()
    with record(tape):
        assert program() == plain
    with replay(tape):
        assert program() == plain
    assert program() == plain


def test_a_generator_seeded_before_the_recording_continues(tape: Path) -> None:
    """In the block and after it, the values are those of plain Python."""

    def program(under: object) -> list[object]:
        random.seed(7)
        before = random.gauss(0, 1)
        with under:  # type: ignore[attr-defined]
            inside = of_everything()
        return [before, *inside, *of_everything()]

    assert program(record(tape)) == program(nullcontext())


def test_a_replay_restores_the_generator(tape: Path) -> None:
    """The program's draws after a replay do not depend on the tape."""
    with record(tape):
        recorded = of_everything()
    random.seed(3)
    state = random.getstate()
    with replay(tape):
        assert of_everything() == recorded
        random.seed(4)
        of_everything()
    assert random.getstate() == state


def test_threads_that_draw_at_once_do_not_mix(tape: Path) -> None:
    """Each of four threads gets its own values again, in any order."""

    def program() -> dict[int, list[object]]:
        drawn: dict[int, list[object]] = {}
        start = threading.Barrier(4, timeout=20)

        def work(n: int) -> None:
            start.wait()
            drawn[n] = [value for _ in range(50) for value in of_everything()]

        threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return drawn

    with record(tape):
        first = program()
    with replay(tape):
        assert program() == first


def test_a_nested_recording_does_not_shift_the_outer_one(tape: Path) -> None:
    """Nor the second value of a pair that `gauss` made outside."""

    def program(inner: Path) -> list[object]:
        before = random.gauss(0, 1)
        with record(inner, overwrite=True):
            inside = random.gauss(0, 1)
        assert inside != before
        return [before, random.gauss(0, 1), random.random()]

    with record(tape):
        first = program(tape.with_name("inner.tape"))
    with replay(tape):
        assert program(tape.with_name("inner.tape")) == first


def test_a_random_object_with_a_seed_is_untouched(tape: Path) -> None:
    """`random.Random(5)` gives its values everywhere."""
    plain = random.Random(5).random()
    with record(tape):
        assert random.Random(5).random() == plain
    with replay(tape):
        assert random.Random(5).random() == plain


def test_loading_the_library_of_our_output_draws_nothing_of_the_agents(
    tape: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The command line has it before a replay begins, and the recorded agent imported it itself."""

    def run() -> float:
        importlib.import_module("rich.style")
        return random.random()

    module = importlib.import_module("rich.style")
    with monkeypatch.context() as without:
        without.setattr("rich.style", module)
        without.delitem(sys.modules, "rich.style")
        with record(tape):
            recorded = run()
        assert sys.modules["rich.style"] is not module
    with replay(tape):
        assert run() == recorded
