"""The spans of a run while it is recorded: each as soon as what it stands for has ended.

The process that follows only reads the tape, so the agent and its own telemetry are as they were.
The digest is known at the end, so the ids come from the beginning of the tape: this trace has other
ids than an export after the run.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import msgspec

from tracefork_core.interop.exporting.tape_spans import Choice, SpanMaker, trace_id
from tracefork_core.interop.span import Span
from tracefork_core.tape import Environment, Tape
from tracefork_core.tape.schema import beside

_PAUSE = 0.2
"""Seconds between two looks at the tape."""


class Following:
    """Follows one recording. `trace` is there once the tape has its beginning.

    With `is_awaited`, the recording has not begun: what is at its path now is another one.
    """

    def __init__(self, path: Path, name: str, choice: Choice, *, is_awaited: bool = False) -> None:
        self._path = path
        self._name = name
        self._choice = choice
        self._maker: SpanMaker | None = None
        self._told: set[str] = set()
        self._is_awaited = is_awaited
        self.trace = ""
        self._before = self._state() if is_awaited else None
        self._stopped = threading.Event()

    def stop(self) -> None:
        """Let `batches` end with what is there, also if the recording is not complete."""
        self._stopped.set()

    def batches(self) -> Iterator[list[Span]]:
        """Yield what has ended since the last batch, until the recording is complete."""
        read = self._before
        while True:
            is_over = self._stopped.is_set()
            if (state := self._state()) == read or not state:
                if is_over:
                    return
                self._stopped.wait(_PAUSE)
                continue
            read = state
            with Tape.open(self._path) as tape:
                is_last = tape.complete or is_over
                spans = self._new(tape, is_last=is_last)
            if spans:
                yield spans
            if is_last:
                return

    def _state(self) -> tuple[tuple[int, int], ...]:
        """Return what changes when the tape is written: the sizes and times of its files.

        An awaited recording first makes an empty file, which is nothing to read yet.
        """
        state: list[tuple[int, int]] = []
        for suffix in ("", "-wal", "-flight"):
            with suppress(FileNotFoundError):
                stat = beside(self._path, suffix).stat()
                if self._is_awaited and not (suffix or stat.st_size):
                    return ()
                state.append((stat.st_size, stat.st_mtime_ns))
        return tuple(state)

    def _new(self, tape: Tape, *, is_last: bool) -> list[Span]:
        environment = tape.environment
        if self._maker is None:
            if environment is None and not is_last:
                return []
            key = _key(environment)
            self.trace = trace_id(key)
            self._maker = SpanMaker(key, self._choice, {})
        maker = self._maker
        maker.meet(tape.steps)
        spans = [
            maker.exchange(exchange)
            for exchange in tape.exchanges
            if (is_last or exchange.end != "open") and self._is_new(f"exchange {exchange.n}")
        ]
        spans += [
            maker.step(step)
            for step in tape.steps
            if (is_last or step.ended is not None) and self._is_new(f"step {step.id}")
        ]
        return [*spans, maker.run(tape, self._name)] if is_last else spans

    def _is_new(self, place: str) -> bool:
        """Return whether a place was not told yet, and note that it is."""
        is_new = place not in self._told
        self._told.add(place)
        return is_new


def _key(environment: Environment | None) -> str:
    """Return what tells a recording from others before its digest is known: when it began."""
    return f"begun {msgspec.json.encode(environment).hex()}"
