"""The journal of a blame: every trial is on disk before it counts, so a blame can be resumed.

The file holds lines of JSON. The first line is the header; each other line is a trial, the prices,
or the progress. An incomplete last line was being written when the process died, and is cut off.
"""

from __future__ import annotations

import itertools
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
    """Return the default folder for the journal and the branches of a tape's blame."""
    return tape.with_name(f"{tape.name}.blame")


def latest(tape: Path) -> Path:
    """Return the folder of a tape's last blame: `run.tape.blame`, then `run.tape.blame-2`."""
    found = beside(tape)
    for i in itertools.count(2):
        following = tape.with_name(f"{tape.name}.blame-{i}")
        if not (following / JOURNAL).exists():
            break
        found = following
    return found


def free(tape: Path) -> Path:
    """Return the folder for another blame of a tape: a new one, if the last blame is finished."""
    last = latest(tape)
    journal = _begun(last / JOURNAL)
    if journal is None or not journal.is_finished:
        return last
    number = last.name.rpartition("-")[2] if last != beside(tape) else "1"
    return tape.with_name(f"{tape.name}.blame-{int(number) + 1}")


def make_folder(place: Path) -> None:
    """Create the folder of a blame if it does not exist.

    Raises:
        UsageError: a file has that name.
        TapeError: the folder cannot be created.
    """
    try:
        place.mkdir(parents=True, exist_ok=True)
    except (FileExistsError, NotADirectoryError) as error:
        raise UsageError(
            f"tracefork: {place} cannot be the folder of a blame, because a file is in its place. "
            "Name another folder (folder=, --to)."
        ) from error
    except OSError as error:
        raise TapeError(
            f"tracefork: cannot create {place}: {error.strerror}. Name another folder (folder=, "
            "--to)."
        ) from error


class Header(msgspec.Struct, frozen=True):
    """The inputs of a blame: the same header and the same trials lead to the same result.

    Attributes:
        digest: digest of the run.
        units: number of units.
        seed: seed of the engine.
        settings: thresholds and sample sizes.
        groups: the units of each group, if there are groups.
        agent: name of the agent.
        oracle: name of the oracle.
        version: version of tracefork-core.
        tail: changes to live model requests, as a description; empty for none.
        regrades: how many times some outcomes are graded again.
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
    """The prices in use when a blame was started or resumed.

    Attributes:
        lists: version of the installed price lists; None if there were none.
        units: cost of each unit in dollars; None if its price was not known.
    """

    lists: str | None
    units: tuple[float | None, ...]


class _Line(msgspec.Struct, omit_defaults=True):
    header: Header | None = None
    prices: Prices | None = None
    trial: Trial | None = None
    standing: Standing | None = None
    finished: bool = False


_decode = msgspec.json.Decoder(_Line).decode


class Journal:
    """The trials made so far, by their number. Only one process at a time can write them."""

    def __init__(self, path: Path, header: Header, *, resume: bool) -> None:
        """Start a journal, or continue the existing one.

        Raises:
            UsageError: a journal exists and `resume` is False, or it belongs to another blame, or
                another process is writing it.
            TapeError: it is corrupt or cannot be written.
        """
        self.path = path
        self.trials: dict[int, Trial] = {}
        self.prices: list[Prices] = []
        existing = _begun(path)
        if existing is not None and not resume:
            raise UsageError(
                f"tracefork: {path} exists: this blame was started before. Resume it "
                "(resume=True, --resume), or remove the file."
            )
        try:
            # For the owner only: the outcomes of trials may hold what the agent answered.
            descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
            self._file = FileIO(descriptor, "ab")
        except OSError as error:
            raise self._unwritable(error) from error
        try:
            if not _locked(self._file):
                raise UsageError(
                    f"tracefork: {path} is in use: this blame is still running. Watch it with "
                    "--status, or stop it first."
                )
            self._take_up(_begun(path), header)
        except BaseException:
            self._file.close()
            raise

    def _take_up(self, found: Found | None, header: Header) -> None:
        """Continue after the last complete line, or write the first line."""
        if found is not None and found.header != header:
            raise UsageError(
                f"tracefork: {self.path} is the journal of another blame: "
                f"{_difference(found.header, header)}. Use another folder (folder=, --to)."
            )
        self._file.truncate(found.size if found else 0)
        if found is None:
            self._write(_Line(header=header))
        else:
            self.trials = {trial.number: trial for trial in found.trials}
            self.prices = found.prices

    def price(self, now: Prices) -> Prices:
        """Return the prices that the blame was started with; add the current ones if they differ.

        Each trial is journaled with its cost. So all figures of a report come from the journal,
        whichever price lists are installed when it is read again.
        """
        if all(now.lists != earlier.lists for earlier in self.prices):
            self.prices.append(now)
            self._write(_Line(prices=now))
        return self.prices[0]

    def add(self, trial: Trial) -> None:
        """Append a trial, and sync it to disk."""
        self.trials[trial.number] = trial
        self._write(_Line(trial=trial))
        try:
            os.fsync(self._file.fileno())
        except OSError as error:
            raise self._unwritable(error) from error

    def stands(self, standing: Standing) -> None:
        """Append the progress of the blame, for `--status`."""
        self._write(_Line(standing=standing))

    def finish(self) -> None:
        """Note that the blame has its verdict, so that another one begins in another folder."""
        self._write(_Line(finished=True))

    def close(self) -> None:
        """Close the file; delete it if it holds no trial, since no money has been spent yet."""
        if not self.trials:
            self.path.unlink(missing_ok=True)
        self._file.close()

    def _write(self, line: _Line) -> None:
        left = memoryview(msgspec.json.encode(line) + b"\n")
        try:
            while left:  # A disk that is almost full takes only a part, without an error.
                left = left[self._file.write(left) :]
        except OSError as error:
            raise self._unwritable(error) from error

    def _unwritable(self, error: OSError) -> UnwritableError:
        return UnwritableError(f"tracefork: cannot write {self.path}: {error.strerror}.")


class Found(msgspec.Struct):
    """The content of a journal; `size` is the length of its complete lines in bytes.

    `is_finished` tells whether the blame has its verdict.
    """

    header: Header
    prices: list[Prices]
    trials: list[Trial]
    standing: Standing | None
    size: int
    is_finished: bool


def read(path: Path) -> Found:
    """Read a journal, even while another process writes it.

    Raises:
        UsageError: there is no journal, or it cannot be read.
        TapeError: it is corrupt.
    """
    content = _begun(path)
    if content is None:
        raise UsageError(
            f"tracefork: no blame in {path.parent}. It was not started, or it is in another folder "
            "(folder=, --to)."
        )
    return content


def _begun(path: Path) -> Found | None:
    """Return the content of a journal; None if it does not exist or has no complete line.

    Raises:
        UsageError: it cannot be read.
        TapeError: it is corrupt.
    """
    try:
        if path.exists() and not path.is_file():
            raise UsageError(f"tracefork: {path} is not a file.")
        data = path.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise UsageError(f"tracefork: cannot read {path}: {error.strerror}.") from error
    if b"\n" not in data and data[: len(_FIRST)] == _FIRST[: len(data)]:
        return None  # The disk was full, or the process died, within the first line.
    size = data.rfind(b"\n") + 1
    try:
        lines = [_decode(line) for line in data[:size].splitlines()]
        header = lines[0].header if lines else None
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        raise TapeError(f"tracefork: {path} is corrupt: {error}.") from error
    if header is None:
        raise TapeError(f"tracefork: {path} is not the journal of a blame.")
    standings = [line.standing for line in lines if line.standing is not None]
    trials = [line.trial for line in lines if line.trial is not None]
    prices = [line.prices for line in lines if line.prices is not None]
    if len({trial.number for trial in trials}) < len(trials) or not all(map(_is_sane, trials)):
        raise TapeError(f"tracefork: {path} is corrupt: its trials do not add up.")
    if not all(0 <= standing.chance <= 1 for standing in standings):
        raise TapeError(f"tracefork: {path} is corrupt: a probability is out of range.")
    is_finished = bool(lines) and lines[-1].finished
    return Found(header, prices, trials, standings[-1] if standings else None, size, is_finished)


def _is_sane(trial: Trial) -> bool:
    """Return whether no number of a trial is negative, which would add to the budget."""
    return min(trial.number, trial.calls, trial.tokens, trial.usd or 0, trial.seconds) >= 0


def _locked(file: FileIO) -> bool:
    """Lock a file until it is closed; return False if another process holds the lock.

    Return True without a lock if the system has no such locks.
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
