"""The runs of `tracefork validate`: plant faults in a real agent, and ask blame for each."""

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
    """What can be planted at one exchange of a good run: a fault, and what changes nothing."""

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
    """An agent and its model, for one case after the other."""

    @property
    def slips(self) -> int:
        """How often the model erred of its own in this case so far."""

    def begin(self, name: str, coin: str | None = None) -> None:
        """Begin a case, whose name seeds what the model draws; `coin` is a stage it tosses at."""

    def run(self) -> object:
        """Let the agent do its work."""

    def good(self, answer: object) -> bool:
        """Return whether what it returned is right."""


class Validation(Protocol):
    """What an entry point of the group `tracefork.validations` gives: usually a module.

    `CLASSES` says what each class of fault is called; `COINS` at which exchange each stage is that
    the model can toss a coin at; `STEPS` are the exchanges of a run in which nothing goes wrong.
    """

    CLASSES: Mapping[str, str]
    COINS: Mapping[int, str]
    STEPS: Sequence[str]

    def subject(self, seed: int) -> AbstractContextManager[Subject]:
        """Give the agent, at work."""

    def plants(self) -> Iterable[Plant]:
        """Return every class at every exchange that it applies to."""


class Blaming(Protocol):
    """Asks who is to blame for a tape."""

    def __call__(
        self, path: Path, agent: Callable[[], object], oracle: Callable[[object], object]
    ) -> Report: ...


@dataclass(frozen=True, slots=True)
class Validator:
    """Plants, runs and asks.

    Attributes:
        subject: the agent.
        blaming: who is asked.
        folder: where tapes go.
    """

    subject: Subject
    blaming: Blaming
    folder: Path

    def outcomes(self, cases: Sequence[Case]) -> Iterator[Outcome]:
        """Yield what came of each case, in order.

        Raises:
            TraceforkError: the agent never ran as a case wants it to.
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
        """Run until it ends as the case wants, and erred of its own nowhere; return how often."""
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
    """Return an oracle that does not look."""
    chance = Random(0)  # noqa: S311 - to be had again

    def grade(answer: object) -> bool:
        return chance.random() < 0.5

    return grade
