"""A session whose tape is held in memory, and is written or dropped after its block has ended."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import msgspec

from tracefork_core.chance.chance import Chance
from tracefork_core.errors import TraceforkError
from tracefork_core.masking.masking import Masking
from tracefork_core.masking.masks import Masks
from tracefork_core.patching.real_clock import time_ns
from tracefork_core.run.scope import Switches
from tracefork_core.run.writing import Writing, environment_under, receipt_of
from tracefork_core.seams.tools.named_tools import NamedTools
from tracefork_core.session.session import Session
from tracefork_core.tape import Environment, Receipt, TapeWriter
from tracefork_core.tape.held import HeldFile
from tracefork_core.tape.schema import Mode
from tracefork_core.tape.sealing import Key
from tracefork_core.tape.served import SERVED, Served


@dataclass(frozen=True, slots=True)
class Settings:
    """How the tapes of a recorder are written; `key` makes that of a sealed tape."""

    mode: Mode
    masks: Masks
    key: Callable[[], Key] | None = None


class HeldSession(Writing[None]):
    """A recording of what runs inside. After the block, call `write` or `drop`."""

    def __init__(self, settings: Settings) -> None:
        entropy = settings.mode != "metadata"
        super().__init__(
            Switches(
                ambient=True,
                clock=True,
                entropy=entropy,
                subprocesses=True,
                boundary=None,
                scope="context",
            )
        )
        self._settings = settings

    def _begin(self, stack: ExitStack) -> None:
        settings = self._settings
        self.masking = _masking(settings.mode, settings.masks).another()
        self.masking.look_around()
        environment = _environment(settings.mode, settings.masks)
        environment = msgspec.structs.replace(environment, started=time_ns())
        self._file = HeldFile(Path("held.tape"), settings.mode, settings.key)
        self._writer = TapeWriter(self._file.path, environment, mode=settings.mode, held=self._file)
        self._session = Session(sink=self._writer, masking=self.masking, is_shared=True)
        self._chance = Chance(self._session)
        self._write(stack, environment, "count", self._chance)

    def _finish(self, error: BaseException | None) -> TraceforkError | None:
        assert self._watch is not None
        self._receipt = receipt_of(self._watch, self.masking, error, self._left_alone, self._chance)
        return None

    @property
    def left_alone(self) -> int:
        """How many requests other work of the process made meanwhile."""
        return self._left_alone

    def write(self, path: Path, served: Served, outcome: str) -> Receipt:
        """Write the tape; `outcome` is how the run ended. Safe to call from any thread.

        Raises:
            TapeError: it cannot be written, or the run was not recorded to its end.
            UsageError: the name is taken, or the folder is gone.
        """
        if (broken := self._session.sink.broken) is not None:
            raise broken
        self._file.move(path)
        self._writer.path = path
        self._writer.note(SERVED, aside=served)
        return self._writer.close(msgspec.structs.replace(self._receipt, outcome=outcome))

    def drop(self) -> None:
        """Free what is held."""
        self._writer.discard()
        self._session.release()
        self._chance.release()


@lru_cache(maxsize=8)
def _masking(mode: Mode, masks: Masks) -> Masking:
    """Read the secrets of this process, once: that takes longer than the rest of a session."""
    return Masking(mode, masks)


@lru_cache(maxsize=8)
def _environment(mode: Mode, masks: Masks) -> Environment:
    """Describe this process, once: listing the installed packages takes milliseconds."""
    return environment_under(_masking(mode, masks), NamedTools())
