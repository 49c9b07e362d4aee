"""State that outlives the run: reads go onto the tape, and a replay or fork is answered from it.

A run may read what an earlier run left in a database, a store or a cache, and may write there. An
adapter puts a stand-in of its own in front of each such object. In a recording the stand-in asks
the object and notes what the run read. In a replay or fork it never touches the object: it answers
with what the recording read and with what this run wrote since, which it keeps in memory.
"""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Callable, Hashable, Sequence
from typing import Any, TypeVar

from tracefork_core.exchange.contract import Noted, State
from tracefork_core.inputs.files import notes
from tracefork_core.session.run_state import RunState
from tracefork_core.session.tape_sink import Sink
from tracefork_core.tape import Tape
from tracefork_core.tape.checkpoint import Value
from tracefork_core.tape.digest import sha256, spelled_text
from tracefork_core.tape.file import Body
from tracefork_core.tape.state import STATE, StateRead

T = TypeVar("T")

_LONGEST = 200


class SessionState:
    """Implements `exchange.contract.State` for one session."""

    def __init__(self, name: str, state: RunState, sink: Sink, source: Tape | None) -> None:
        self.name = name
        self.is_answered = source is not None
        self._state = state
        self._sink = sink
        self._source = source
        self._asked: dict[str, int] = defaultdict(int)
        self._recorded: dict[str, list[StateRead]] = defaultdict(list)
        for read in source.states if source else ():
            if read.store == name:
                self._recorded[read.key].append(read)

    @property
    def is_noted(self) -> bool:
        """Whether the session writes a tape."""
        return self._sink.tape is not None

    def number(self, key: str) -> int:
        """Return the number of a read that begins now: 0 for the first one with this key."""
        key = self._short(key)
        with self._state.lock:
            self._asked[key] += 1
            return self._asked[key] - 1

    def recorded(self, key: str, n: int) -> list[Noted]:
        """Return what was noted of the reads with this key, up to number `n`, in order."""
        return [
            Noted(read.n, read.answer, [self._typed(value) for value in read.values])
            for read in self._recorded.get(self._short(key), ())
            if read.n <= n
        ]

    def note(
        self, key: str, n: int, answer: object, values: Sequence[tuple[str, bytes]] = ()
    ) -> None:
        """Put the answer to read number `n` on the tape, if the session writes one.

        `answer` is JSON. Secrets in it, and in values that are MessagePack, are masked.
        """
        if not self.is_noted:
            return
        masking = self._state.masking
        bodies: list[Body] = []
        kept: list[Value] = []
        for tag, data in values:
            masked = masking.packed(data)
            kept.append(Value(tag, sha256(masked)))
            bodies.append((masked, kept[-1].sha, (STATE, self.name)))
        masked_answer = masking.names({"answer": answer})["answer"]
        event = StateRead(self.name, self._short(key), n, masked_answer, kept)
        if bodies:
            self._sink.write(lambda tape: tape.keep(STATE, event, bodies))
        else:
            self._sink.write(lambda tape: tape.note(STATE, aside=event))

    def _typed(self, value: Value) -> tuple[str, bytes]:
        assert self._source is not None
        return value.tag, self._source.blob(value.sha)

    def _short(self, key: str) -> str:
        """Return a key as the tape has it: masked, and a long one as its beginning and a digest."""
        key = spelled_text(self._state.masking.text(key))
        if len(key) <= _LONGEST:
            return key
        return f"{key[: _LONGEST // 2]}… {hashlib.sha256(key.encode()).hexdigest()[:32]}"


class SessionStates:
    """The stand-ins of one session, by the object that each of them stands for."""

    def __init__(self, state: RunState, sink: Sink, source: Tape | None) -> None:
        self._state = state
        self._sink = sink
        self._source = source
        self._stand_ins: dict[tuple[str, Hashable], tuple[object, Any]] = {}

    def of(
        self, shared: object, kind: str, make: Callable[[State], T], same: Hashable | None = None
    ) -> T:
        """Return this session's stand-in for an object; `make` makes it once.

        The tape calls the objects of a kind by the order in which they are used first. Objects with
        an equal `same` share a stand-in: two connections to one database, for example. If it is the
        path of a file, that file is no input of the run: the stand-in answers what is read of it.
        """
        identity = (kind, id(shared) if same is None else same)
        with self._state.lock:
            if identity not in self._stand_ins:
                if isinstance(same, str) and (files := notes.here()) is not None:
                    files.answered(same)
                number = 1 + sum(other == kind for other, _ in self._stand_ins)
                name = kind if number == 1 else f"{kind} {number}"
                state = SessionState(name, self._state, self._sink, self._source)
                # Holding the object keeps its id from being reused.
                self._stand_ins[identity] = shared, make(state)
            stand_in: T = self._stand_ins[identity][1]
            return stand_in
