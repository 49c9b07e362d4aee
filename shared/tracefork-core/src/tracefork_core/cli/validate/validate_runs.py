"""The runs of `tracefork validate`: plant faults in a real agent, and blame each run."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Protocol

from tracefork_core.cli.validate.validate_result import Case, Outcome
from tracefork_core.errors import TraceforkError
from tracefork_core.run.fork import fork
from tracefork_core.run.record import record

if TYPE_CHECKING:
    from tracefork_core.blaming.report import Report
    from tracefork_core.session.interventions import Intervention

_ATTEMPTS = 40


class Plant(Protocol):
    """A fault to plant at one exchange of a good run, with a placebo that changes nothing."""

    @property
    def fault(self) -> str: ...
    @property
    def unit(self) -> int: ...
    @property
    def step(self) -> str: ...
    @property
    def change(self) -> Intervention: ...
    @property
    def placebo(self) -> Intervention: ...


class Subject(Protocol):
    """An agent and its model, which run one case after another."""

    @property
    def slips(self) -> int:
        """The number of unplanned errors of the model in this case so far."""

    def begin(self, name: str, coin: str | None = None) -> None:
        """Begin a case: its name seeds the model's draws; at the stage `coin` it tosses a coin."""

    def run(self) -> object:
        """Run the agent and return its answer."""

    def good(self, answer: object) -> bool:
        """Return whether an answer is correct."""


class Validation(Protocol):
    """The object, usually a module, that an entry point of the group `tracefork.validations` names.

    Attributes:
        CLASSES: the classes of faults, with their titles.
        COINS: the stages at which the model can toss a coin, by exchange.
        STEPS: the exchanges of a good run, by number.
    """

    CLASSES: Mapping[str, str]
    COINS: Mapping[int, str]
    STEPS: Sequence[str]

    def subject(self, seed: int) -> AbstractContextManager[Subject]:
        """Provide the agent and its model for the duration of a `with` block."""

    def plants(self) -> Iterable[Plant]:
        """Return each class of fault at each exchange that it applies to."""


class Blaming(Protocol):
    """Runs blame on a tape."""

    def __call__(
        self, path: Path, agent: Callable[[], object], oracle: Callable[[object], object]
    ) -> Report: ...


@dataclass(frozen=True, slots=True)
class Validator:
    """Runs the cases: plants a fault, runs the agent, and runs blame on the tape.

    Attributes:
        subject: the agent.
        blaming: runs blame.
        folder: the folder for tapes.
    """

    subject: Subject
    blaming: Blaming
    folder: Path

    def outcomes(self, cases: Sequence[Case]) -> Iterator[Outcome]:
        """Yield the outcome of each case, in order.

        Raises:
            TraceforkError: no run of the agent ended as its case requires.
        """
        clean = self.folder / "clean.tape"
        self._until(Case("clean", "clean"), clean, lambda: record(clean, overwrite=True))
        for case in cases:
            yield self._outcome(case, clean)

    def _outcome(self, case: Case, clean: Path) -> Outcome:
        path, tries = clean, 1
        if case.changes:
            path = self.folder / f"{case.file}.tape"
            first = min(unit for unit, _ in case.changes)
            tries = self._until(
                case,
                path,
                lambda: fork(
                    clean, first, change=dict(case.changes), writes="allow", to=path, overwrite=True
                ),
            )
        elif case.control != "clean":
            path = self.folder / f"{case.file}.tape"
            tries = self._until(case, path, lambda: record(path, overwrite=True))
        oracle = _tossing() if case.control == "coin grade" else self.subject.good
        report = self.blaming(path, self.subject.run, oracle)
        return Outcome.of(case, report.result, tries)

    def _until(
        self, case: Case, path: Path, scope: Callable[[], AbstractContextManager[object]]
    ) -> int:
        """Run until a run ends as the case requires, without a slip; return the number of runs."""
        for attempt in range(1, _ATTEMPTS + 1):
            self.subject.begin(f"{case.name}#{attempt}", case.coin)
            with scope():
                answer = self.subject.run()
            if self.subject.good(answer) is not case.fails and not self.subject.slips:
                return attempt
        wanted = "failed" if case.fails else "was good"
        raise TraceforkError(
            f"tracefork: {case.name}: none of {_ATTEMPTS} runs {wanted} without another fault. The "
            f"validation agent may have changed; the last run is {path}."
        )


def _tossing() -> Callable[[object], bool]:
    """Return an oracle that ignores the answer and tosses a coin."""
    chance = Random(0)  # noqa: S311 - seeded, so that a validation is reproducible

    def grade(answer: object) -> bool:
        return chance.random() < 0.5

    return grade
