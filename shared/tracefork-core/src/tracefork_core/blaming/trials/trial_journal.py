"""The journal of a blame: every trial is on disk before it counts, so a blame can be gone on with.

Lines of JSON. The first says what the blame is of; each other is a trial, or where the blame
stands. A last line that is not whole was being written when the process died, and is cut off.
"""

from __future__ import annotations

import os
from io import FileIO
from pathlib import Path

import msgspec

from tracefork_core.blaming.engine.evidence import Standing
from tracefork_core.blaming.engine.probe import Settings, Trial
from tracefork_core.errors import TapeError, UnwritableError, UsageError

JOURNAL = "journal.jsonl"
_FIRST = b'{"header":'


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
    """Trials by their number, as far as they were made, written to by one process at a time."""

    def __init__(self, path: Path, header: Header, *, resume: bool) -> None:
        """Begin a journal, or go on with the one that is there.

        Raises:
            UsageError: one is there already, is that of another blame, or is being written.
            TapeError: it is damaged, or cannot be written.
        """
        self.path = path
        self.trials: dict[int, Trial] = {}
        self.prices: list[Prices] = []
        found = _begun(path)
        if found is not None and not resume:
            raise UsageError(
                f"tracefork: {path} is there: this blame was begun before. Go on with it "
                "(resume=True, --resume), or remove it."
            )
        try:
            self._file = path.open("ab", buffering=0)
        except OSError as error:
            raise self._unwritable(error) from error
        try:
            if not _locked(self._file):
                raise UsageError(
                    f"tracefork: {path} is in use: this blame is still running, or one that goes "
                    "on with it. Look on with --status, or end that first."
                )
            self._take_up(_begun(path), header)
        except BaseException:
            self._file.close()
            raise

    def _take_up(self, found: Found | None, header: Header) -> None:
        """Go on behind what is whole of the journal, or write its first line."""
        if found is not None and found.header != header:
            raise UsageError(
                f"tracefork: {self.path} is the journal of another blame: "
                f"{_difference(found.header, header)}. Blame into another folder (--to)."
            )
        self._file.truncate(found.size if found else 0)
        if found is None:
            self._write(_Line(header=header))
        else:
            self.trials = {trial.number: trial for trial in found.trials}
            self.prices = found.prices

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
        try:
            os.fsync(self._file.fileno())
        except OSError as error:
            raise self._unwritable(error) from error

    def stands(self, standing: Standing) -> None:
        """Put down where the blame stands, for who looks on."""
        self._write(_Line(standing=standing))

    def close(self) -> None:
        """Close the file; delete it if it holds no trial, since no money has been spent yet."""
        if not self.trials:
            self.path.unlink(missing_ok=True)
        self._file.close()

    def _write(self, line: _Line) -> None:
        left = memoryview(msgspec.json.encode(line) + b"\n")
        try:
            while left:  # A disk that is almost full takes a part, and says nothing.
                left = left[self._file.write(left) :]
        except OSError as error:
            raise self._unwritable(error) from error

    def _unwritable(self, error: OSError) -> UnwritableError:
        return UnwritableError(f"tracefork: cannot write {self.path}: {error.strerror}.")


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
    found = _begun(path)
    if found is None:
        raise UsageError(
            f"tracefork: no blame in {path.parent}: it was not begun, or elsewhere (folder=, --to)."
        )
    return found


def _begun(path: Path) -> Found | None:
    """Return what a journal holds; None where there is none, or nothing of it is whole.

    Raises:
        UsageError: it cannot be read.
        TapeError: it is damaged.
    """
    try:
        if path.exists() and not path.is_file():
            raise UsageError(f"tracefork: {path} is no file.")
        data = path.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise UsageError(f"tracefork: cannot read {path}: {error.strerror}.") from error
    if b"\n" not in data and data[: len(_FIRST)] == _FIRST[: len(data)]:
        return None  # The disk was full, or the process died, before its first line was whole.
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
    if len({trial.number for trial in trials}) < len(trials) or not all(map(_is_sane, trials)):
        raise TapeError(f"tracefork: {path} is damaged: its trials do not add up.")
    if not all(0 <= standing.chance <= 1 for standing in standings):
        raise TapeError(f"tracefork: {path} is corrupt: a probability is out of range.")
    return Found(header, prices, trials, standings[-1] if standings else None, size)


def _is_sane(trial: Trial) -> bool:
    """Return whether a trial counts what can be: who counts below zero would have more to spend."""
    return min(trial.number, trial.calls, trial.tokens, trial.usd or 0, trial.seconds) >= 0


def _locked(file: FileIO) -> bool:
    """Keep other processes off a file until it is closed; return False where one keeps us off.

    Where the system has no such locks, nobody is kept off.
    """
    try:
        import fcntl
    except ImportError:
        return True
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return True
    return True


def _difference(before: Header, now: Header) -> str:
    names = Header.__struct_fields__
    differ = next(name for name in names if getattr(before, name) != getattr(now, name))
    was, is_now = (_shown(getattr(header, differ)) for header in (before, now))
    return f"{differ} was {was} and is {is_now}"


def _shown(value: object) -> str:
    return str(value).removeprefix("tracefork_core.blaming.oracles.oracles:") if value else "none"
