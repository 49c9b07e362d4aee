"""The journal of a blame: every trial is on disk before it counts, so a blame can be gone on with.

Lines of JSON. The first says what the blame is of; each other is a trial, or where the blame
stands. A last line that is not whole was being written when the process died, and is cut off.
"""

from __future__ import annotations

import os
from pathlib import Path

import msgspec

from tracefork_core.blaming.inquiry import Standing
from tracefork_core.blaming.probe import Trial
from tracefork_core.blaming.settings import Settings
from tracefork_core.errors import TapeError, UsageError

JOURNAL = "journal.jsonl"


def beside(tape: Path) -> Path:
    """Return the folder that the journal and the branches of a tape's blame go into."""
    return tape.with_name(f"{tape.name}.blame")


def make_folder(place: Path) -> None:
    """Make the folder that a blame goes into, if it is not there.

    Raises:
        UsageError: there is a file of that name.
        TapeError: it cannot be made.
    """
    try:
        place.mkdir(parents=True, exist_ok=True)
    except (FileExistsError, NotADirectoryError) as error:
        raise UsageError(
            f"tracefork: {place} is no folder that a blame could go into: a file is in its place. "
            "Name another (folder=, --to)."
        ) from error
    except OSError as error:
        raise TapeError(f"tracefork: cannot make {place}: {error.strerror}.") from error


class Header(msgspec.Struct, frozen=True):
    """What a blame is of: the same header, and the same trials, lead to the same result.

    Attributes:
        digest: of the run.
        units: how many there are.
        seed: of the engine's chance.
        settings: the measures.
        groups: the units by group, where there are groups.
        agent: what is run again, in words.
        oracle: what grades it, in words.
        version: of tracefork-core.
        tail: how models were asked that were live, where otherwise than they are.
        regrades: how often some ends are graded again.
    """

    digest: str
    units: int
    seed: int
    settings: Settings
    groups: tuple[tuple[int, ...], ...]
    agent: str
    oracle: str
    version: str
    tail: dict[str, object] = {}
    regrades: int = 0


class Prices(msgspec.Struct, frozen=True):
    """What was reckoned with when a blame was begun, or gone on with.

    Attributes:
        lists: the version of the price lists that were installed; None without any.
        units: what each unit cost in dollars; None where its price was not known.
    """

    lists: str | None
    units: tuple[float | None, ...]


class _Line(msgspec.Struct, omit_defaults=True):
    header: Header | None = None
    prices: Prices | None = None
    trial: Trial | None = None
    standing: Standing | None = None


_decode = msgspec.json.Decoder(_Line).decode


class Journal:
    """Trials by their number, as far as they were made. A context manager."""

    def __init__(self, path: Path, header: Header, *, resume: bool) -> None:
        """Begin a journal, or go on with the one that is there.

        Raises:
            UsageError: one is there already, or is that of another blame.
            TapeError: it is damaged.
        """
        self.path = path
        self.trials: dict[int, Trial] = {}
        self.prices: list[Prices] = []
        if path.exists() and not resume:
            raise UsageError(
                f"tracefork: {path} is there: this blame was begun before. Go on with it "
                "(resume=True, --resume), or remove it."
            )
        if path.exists():
            found = read(path)
            if found.header != header:
                raise UsageError(
                    f"tracefork: {path} is the journal of another blame: "
                    f"{_difference(found.header, header)}. Blame into another folder (--to)."
                )
            self.trials = {trial.number: trial for trial in found.trials}
            self.prices = found.prices
            with path.open("r+b") as whole:
                whole.truncate(found.size)
        self._file = path.open("ab", buffering=0)
        if not self.trials and self._file.tell() == 0:
            self._write(_Line(header=header))

    def price(self, now: Prices) -> Prices:
        """Return the prices that the blame was begun with; put down those of today, if others.

        Each trial is put down with what it cost. So all figures of a report are those of the
        journal, whatever lists are installed when it is read again.
        """
        if all(now.lists != one.lists for one in self.prices):
            self.prices.append(now)
            self._write(_Line(prices=now))
        return self.prices[0]

    def add(self, trial: Trial) -> None:
        """Put a trial down, durably."""
        self.trials[trial.number] = trial
        self._write(_Line(trial=trial))
        os.fsync(self._file.fileno())

    def stands(self, standing: Standing) -> None:
        """Put down where the blame stands, for who looks on."""
        self._write(_Line(standing=standing))

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def _write(self, line: _Line) -> None:
        self._file.write(msgspec.json.encode(line) + b"\n")


class Found(msgspec.Struct):
    """What a journal holds; `size` is how many bytes of it are whole."""

    header: Header
    prices: list[Prices]
    trials: list[Trial]
    standing: Standing | None
    size: int


def read(path: Path) -> Found:
    """Read a journal, one that is being written too.

    Raises:
        UsageError: there is none.
        TapeError: it is damaged.
    """
    try:
        data = path.read_bytes()
    except FileNotFoundError as error:
        raise UsageError(
            f"tracefork: no blame in {path.parent}: it was not begun, or elsewhere (folder=, --to)."
        ) from error
    except OSError as error:
        raise UsageError(f"tracefork: cannot read {path}: {error.strerror}.") from error
    size = data.rfind(b"\n") + 1
    try:
        lines = [_decode(line) for line in data[:size].splitlines()]
        header = lines[0].header if lines else None
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        raise TapeError(f"tracefork: {path} is damaged: {error}.") from error
    if header is None:
        raise TapeError(f"tracefork: {path} is no journal of a blame.")
    standings = [line.standing for line in lines if line.standing is not None]
    trials = [line.trial for line in lines if line.trial is not None]
    prices = [line.prices for line in lines if line.prices is not None]
    return Found(header, prices, trials, standings[-1] if standings else None, size)


def _difference(before: Header, now: Header) -> str:
    names = Header.__struct_fields__
    differ = next(name for name in names if getattr(before, name) != getattr(now, name))
    was, is_now = (_shown(getattr(header, differ)) for header in (before, now))
    return f"{differ} was {was} and is {is_now}"


def _shown(value: object) -> str:
    return str(value).removeprefix("tracefork_core.blaming.oracles:") if value else "none"
