"""`tracefork validate`: does blame find faults that were really planted in a real agent?"""

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
        typer.Option("--faults", metavar="NAME,…", help="Only faults of these classes."),
    ] = None,
    positions: Annotated[
        str | None,
        typer.Option("--positions", metavar="N,…", help="Only faults at these exchanges."),
    ] = None,
    budget: Annotated[
        str, typer.Option("--budget", metavar="CALLS", help="Of each blame, at most.")
    ] = BUDGET,
    seed: Annotated[
        int, typer.Option("--seed", min=0, metavar="S", help="Of everything that is drawn.")
    ] = 0,
    check: Annotated[
        Path | None,
        typer.Option("--check", metavar="REPORT.json", help="Say what is not as in this report."),
    ] = None,
    write: Annotated[
        Path | None,
        typer.Option("--write", metavar="REPORT.json", help="Write the report, to check with."),
    ] = None,
    as_json: options.AsJson = False,
) -> int:
    """Plant faults in a real agent, and see whether blame finds them.

    A support agent asks a scripted model over a real socket, with a real SDK, and works with tools.
    Faults of five classes are planted wherever each applies, one at a time; the run fails and is
    put on trial. Beside them stand runs in which nobody is to blame. The exit status is 0 where
    every fault is found and nobody else is accused (and, with --check, all is as in the report).
    """
    from tracefork_core.cli.validate.validate_report import document, print_report
    from tracefork_core.cli.validate.validate_result import Document, changed

    chosen, began = _load(), time.monotonic()
    before = None if check is None else _read(check, seed, budget)
    if write is not None and (write.is_dir() or not write.absolute().parent.is_dir()):
        raise UsageError(f"tracefork: {write} cannot be written: give a file in a folder there is.")
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
    """Yield every fault on its own, and every control that belongs to those.

    Raises:
        UsageError: none of the faults applies at these exchanges.
    """
    from tracefork_core.cli.validate.validate_result import Case

    every = list(chosen.plants())
    plants = [one for one in every if one.fault in faults and (not units or one.unit in units)]
    if not plants:
        raise UsageError(
            f"tracefork: none of these faults applies there: {', '.join(faults)}. The run is: "
            + ", ".join(f"{unit} {step}" for unit, step in enumerate(chosen.STEPS))
        )
    for one in plants:
        name, change = f"{one.fault}@{one.unit}", ((one.unit, one.change),)
        yield Case(name, "", one.fault, one.unit, one.step, change, fails=True)
    yield Case("clean", "clean")
    for one in plants:
        name, change = f"placebo {one.fault}@{one.unit}", ((one.unit, one.placebo),)
        yield Case(name, "placebo", one.fault, None, one.step, change)
    for fault in faults:
        mine = [one for one in every if one.fault == fault]
        first, last = mine[0], mine[-1]
        if first != last and first in plants and last in plants:
            yield _beside(first, last)
    for unit, stage in chosen.COINS.items():
        if not units or unit in units:
            step = chosen.STEPS[unit]
            yield Case(f"coin@{unit}", "coin", step=step, coin=stage, fails=True)
    yield Case("coin grade", "coin grade")


def _beside(placebo: Plant, one: Plant) -> Case:
    from tracefork_core.cli.validate.validate_result import Case

    name = f"{one.fault}@{one.unit} beside a placebo@{placebo.unit}"
    changes = ((placebo.unit, placebo.placebo), (one.unit, one.change))
    return Case(name, "beside", one.fault, one.unit, one.step, changes, fails=True)


def _names(words: str | None, known: Collection[str]) -> list[str]:
    """Return the classes that are asked for.

    Raises:
        UsageError: there is no such class.
    """
    if words is None:
        return list(known)
    wanted = list(dict.fromkeys(word.strip() for word in words.split(",") if word.strip()))
    for word in wanted:
        if word not in known:
            raise UsageError(
                f"tracefork: no class {word!r} of faults. There are: {', '.join(known)}."
            )
    if not wanted:
        raise UsageError(f"tracefork: --faults takes names. There are: {', '.join(known)}.")
    return wanted


def _positions(words: str | None, of: int) -> list[int]:
    """Return the exchanges that are asked for, none for all.

    Raises:
        UsageError: these are no numbers, or none of the run's.
    """
    if words is None:
        return []
    found = options.numbers(words, f"--positions takes exchanges (2,5), not {words!r}")
    for number in found:
        if number >= of:
            raise UsageError(
                f"tracefork: there is no exchange {number} to plant at: the run has 0 to {of - 1}."
            )
    return found


def _load() -> Validation:
    """Return the agent to validate with.

    Raises:
        UsageError: it, or what it needs, is not installed.
    """
    points = sorted(entry_points(group=GROUP), key=lambda point: point.name)
    if not points:
        raise UsageError(f"tracefork: there is no agent to validate with. {INSTALL}")
    try:
        found: Validation = points[0].load()
    except ImportError as error:
        raise UsageError(
            f"tracefork: the agent to validate with cannot be loaded: {error}. {INSTALL}"
        ) from error
    return found


def _read(path: Path, seed: int, budget: str) -> Document:
    """Read a report to compare with.

    Raises:
        UsageError: it is none, or one of other measures.
    """
    from tracefork_core.cli.validate.validate_result import Document

    try:
        report = msgspec.json.decode(path.read_bytes(), type=Document)
    except OSError as error:
        raise UsageError(f"tracefork: {path} cannot be read: {error.strerror}.") from error
    except msgspec.DecodeError as error:
        raise UsageError(
            f"tracefork: {path} is no report of `validate --write`: {error}"
        ) from error
    if (report.seed, report.budget) != (seed, budget):
        raise UsageError(
            f"tracefork: {path} was made with --seed {report.seed} --budget '{report.budget}', "
            f"this is --seed {seed} --budget '{budget}'. Give the same, or --write another report."
        )
    return report
