"""`tracefork validate`: test blame on faults planted in a real agent."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Collection, Iterator, Sequence
from functools import partial
from importlib.metadata import entry_points
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import msgspec
import typer

from tracefork_core.cli import options
from tracefork_core.cli.display import screen
from tracefork_core.cli.display.progress import progress, tell_runs
from tracefork_core.errors import UsageError

if TYPE_CHECKING:
    from tracefork_core.cli.validate.validate_result import Case, Document, Outcome
    from tracefork_core.cli.validate.validate_runs import Plant, Validation

GROUP = "tracefork.validations"
INSTALL = "pip install 'tracefork-testkit[validation]'"
BUDGET = "2000 calls"
HOLDS, BROKEN = 0, 1

app = typer.Typer(add_completion=False, rich_markup_mode=None)


@app.command()
def validate(
    faults: Annotated[
        str | None,
        typer.Option("--faults", metavar="NAME,…", help="Plant only faults of these classes."),
    ] = None,
    positions: Annotated[
        str | None,
        typer.Option("--positions", metavar="N,…", help="Plant only at these exchanges."),
    ] = None,
    budget: Annotated[
        str, typer.Option("--budget", metavar="CALLS", help="Largest budget of each blame.")
    ] = BUDGET,
    seed: Annotated[int, typer.Option("--seed", min=0, metavar="S", help="Random seed.")] = 0,
    check: Annotated[
        Path | None,
        typer.Option(
            "--check", metavar="REPORT.json", help="Compare the results with this report."
        ),
    ] = None,
    write: Annotated[
        Path | None,
        typer.Option("--write", metavar="REPORT.json", help="Write a report for --check."),
    ] = None,
    as_json: options.AsJson = False,
) -> int:
    """Test blame on faults planted in a real agent.

    A support agent calls a scripted model over a real socket, with a real SDK, and uses tools.
    Faults of five classes are planted wherever each applies, one at a time, and blame is run on the
    failed run. Control runs have no step to blame. The exit code is 0 if every fault is found, no
    innocent step is named and, with --check, the results equal the report.
    """
    from tracefork_core.cli.validate.validate_report import document, print_report
    from tracefork_core.cli.validate.validate_result import Document, changed

    chosen, began = _load(), time.monotonic()
    before = None if check is None else _read(check, seed, budget)
    if write is not None and (write.is_dir() or not write.absolute().parent.is_dir()):
        raise UsageError(
            f"tracefork: --write cannot write {write}. Give a file in a folder that exists."
        )
    units = _positions(positions, len(chosen.STEPS))
    cases = list(_cases(chosen, _names(faults, chosen.CLASSES), units))
    outcomes = _run(chosen, cases, seed, budget)
    report = Document.of(outcomes, seed=seed, budget=budget)
    whole = faults is None and positions is None
    changes = [] if before is None else changed(before, report, whole=whole)
    code = HOLDS if report.holds and not changes else BROKEN
    if write is not None:
        write.write_bytes(msgspec.json.format(msgspec.json.encode(report), indent=1) + b"\n")
    if as_json:
        screen.say_json(document(report, code, None if check is None else changes))
    else:
        print_report(report, time.monotonic() - began, chosen.CLASSES, check, changes)
    return code


def _run(chosen: Validation, cases: Sequence[Case], seed: int, budget: str) -> list[Outcome]:
    from tracefork_core.blaming.blame import blame
    from tracefork_core.cli.validate.validate_runs import Validator

    outcomes: list[Outcome] = []
    asked = partial(blame, budget=budget, seed=seed, writes="allow")
    began = time.monotonic()
    with (
        progress() as show,
        tempfile.TemporaryDirectory(prefix="tracefork-validate-") as folder,
        chosen.subject(seed) as subject,
    ):
        validator = Validator(subject, asked, Path(folder))
        for outcome in validator.outcomes(cases):
            outcomes.append(outcome)
            tell_runs(show, began, outcome.name, len(outcomes), len(cases))
    return outcomes


def _cases(chosen: Validation, faults: Collection[str], units: Collection[int]) -> Iterator[Case]:
    """Yield a case for every fault by itself, and for every control of those faults.

    Raises:
        UsageError: none of the faults can be planted at these exchanges.
    """
    from tracefork_core.cli.validate.validate_result import Case

    every = list(chosen.plants())
    plants = [
        plant for plant in every if plant.fault in faults and (not units or plant.unit in units)
    ]
    if not plants:
        raise UsageError(
            f"tracefork: no exchange that was given can hold one of these faults: "
            f"{', '.join(faults)}. The exchanges: "
            + ", ".join(f"{unit} {step}" for unit, step in enumerate(chosen.STEPS))
        )
    for plant in plants:
        name, change = f"{plant.fault}@{plant.unit}", ((plant.unit, plant.change),)
        yield Case(name, "", plant.fault, plant.unit, plant.step, change, fails=True)
    yield Case("clean", "clean")
    for plant in plants:
        name, change = f"placebo {plant.fault}@{plant.unit}", ((plant.unit, plant.placebo),)
        yield Case(name, "placebo", plant.fault, None, plant.step, change)
    for fault in faults:
        of_class = [plant for plant in every if plant.fault == fault]
        first, last = of_class[0], of_class[-1]
        if first != last and first in plants and last in plants:
            yield _beside(first, last)
    for unit, stage in chosen.COINS.items():
        if not units or unit in units:
            step = chosen.STEPS[unit]
            yield Case(f"coin@{unit}", "coin", step=step, coin=stage, fails=True)
    yield Case("coin grade", "coin grade")


def _beside(placebo: Plant, plant: Plant) -> Case:
    from tracefork_core.cli.validate.validate_result import Case

    name = f"{plant.fault}@{plant.unit} beside a placebo@{placebo.unit}"
    changes = ((placebo.unit, placebo.placebo), (plant.unit, plant.change))
    return Case(name, "beside", plant.fault, plant.unit, plant.step, changes, fails=True)


def _names(words: str | None, known: Collection[str]) -> list[str]:
    """Return the classes of faults that --faults names.

    Raises:
        UsageError: there is no such class.
    """
    if words is None:
        return list(known)
    wanted = list(dict.fromkeys(word.strip() for word in words.split(",") if word.strip()))
    for word in wanted:
        if word not in known:
            raise UsageError(
                f"tracefork: there is no class of faults {word!r}. The classes: {', '.join(known)}."
            )
    if not wanted:
        raise UsageError(f"tracefork: --faults needs names. The classes: {', '.join(known)}.")
    return wanted


def _positions(words: str | None, of: int) -> list[int]:
    """Return the exchanges that --positions names; empty for all.

    Raises:
        UsageError: the text is not a list of exchanges of the run.
    """
    if words is None:
        return []
    positions = options.numbers(words, "--positions must be a list of exchanges (2,5)")
    for number in positions:
        if number >= of:
            raise UsageError(
                f"tracefork: --positions must be from 0 to {of - 1} in this run (got {number})."
            )
    return positions


def _load() -> Validation:
    """Return the agent to plant faults in.

    Raises:
        UsageError: the agent, or a library that it needs, is not installed.
    """
    points = sorted(entry_points(group=GROUP), key=lambda point: point.name)
    if not points:
        raise UsageError(
            f"tracefork: validate needs an agent that is not installed. Type: {INSTALL}"
        )
    try:
        validation: Validation = points[0].load()
    except ImportError as error:
        raise UsageError(
            f"tracefork: the agent of validate cannot be loaded: {error}. Type: {INSTALL}"
        ) from error
    return validation


def _read(path: Path, seed: int, budget: str) -> Document:
    """Read the report to compare with.

    Raises:
        UsageError: the file is not a report, or has another seed or budget.
    """
    from tracefork_core.cli.validate.validate_result import Document

    try:
        report = msgspec.json.decode(path.read_bytes(), type=Document)
    except OSError as error:
        raise UsageError(f"tracefork: {path} cannot be read: {error.strerror}.") from error
    except msgspec.DecodeError as error:
        raise UsageError(
            f"tracefork: {path} is not a report of `tracefork validate --write`: {error}."
        ) from error
    if (report.seed, report.budget) != (seed, budget):
        raise UsageError(
            f"tracefork: {path} was made with --seed {report.seed} --budget '{report.budget}', "
            f"this run has --seed {seed} --budget '{budget}'. Use the same, or --write a report."
        )
    return report
