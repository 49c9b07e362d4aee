"""Put on the tape what the agent reads of its surroundings, of files and of standard input.

At replay, standard input is given again, and the others are compared.
"""

from __future__ import annotations

import platform
import sys
import warnings
from collections.abc import Iterator, Sequence
from contextlib import ExitStack

from tracefork_core.chance.surroundings import (
    TIMEZONE,
    Lookout,
    on_the_lookout,
    timezone_seen,
)
from tracefork_core.errors import SurroundingsWarning
from tracefork_core.inputs.files import FileNotes, noting
from tracefork_core.inputs.standard_input import StandardInput, has_terminal
from tracefork_core.inputs.stdin_stream import reading
from tracefork_core.printable import printable
from tracefork_core.session.session import Session
from tracefork_core.tape import Tape
from tracefork_core.tape.environment import packages, timezone
from tracefork_core.tape.event import Environment
from tracefork_core.tape.surroundings import FileState

_NS = 1e9
_OURS = ("tracefork_core.", "contextlib")
_TOLD = 12


def note_surroundings(
    stack: ExitStack,
    session: Session,
    environment: Environment,
    *,
    clock: bool,
    parent: Tape | None = None,
) -> None:
    """Put on the tape what the agent reads, until `stack` unwinds.

    `parent` is the tape of a fork: it gives standard input up to the fork point.
    """
    masking, differences = session.masking, list[str]()
    if masking.mode != "metadata":
        _read_standard_input(stack, session, parent, differences)

    def masked(text: str) -> str:
        masking.look_around()  # A value may have become a secret since it was read.
        return masking.text(text)

    files = FileNotes(
        session,
        masked,
        own=_tapes_of(session),
        writes=True,
        recorded=None if parent is None else parent.files,
        left=() if parent is None else _left_by(parent),
        differences=differences,
    )
    session.suspects += [files.changed_sources, lambda: differences]
    session.sink.before_exchange.append(files.flush)
    stack.callback(files.put_back)
    stack.callback(session.sink.write, files.finish)
    stack.enter_context(noting(files))
    lookout = Lookout(
        session, masked, secret=masking.masks.names, keeps_values=masking.mode != "metadata"
    )
    if clock:
        lookout.look(TIMEZONE, "", timezone(environment.started / _NS), None)
    session.sink.before_exchange.append(lookout.flush)
    stack.enter_context(on_the_lookout(lookout))


def compare_surroundings(stack: ExitStack, session: Session, tape: Tape) -> list[str]:
    """Compare with the tape what the agent reads; return the list where differences will be."""
    recorded = tape.surroundings
    masking = session.masking
    lookout = Lookout(session, masking.text, secret=masking.masks.names, recorded=recorded)
    _read_standard_input(stack, session, tape, lookout.differences)
    files = FileNotes(
        session,
        masking.text,
        own=_tapes_of(session),
        recorded=tape.files,
        left=_left_by(tape),
        differences=lookout.differences,
    )
    session.suspects += [files.changed_sources, lambda: lookout.differences]
    if tape.files:
        stack.callback(files.put_back)
        stack.enter_context(noting(files))
    if recorded:
        stack.enter_context(on_the_lookout(lookout))
    if tape.environment and any(seen.kind == TIMEZONE for seen in recorded):
        stack.enter_context(timezone_seen(lookout, tape.environment.started / _NS))
    return lookout.differences


def _tapes_of(session: Session) -> list[str]:
    return [str(path.absolute()) for path in session.tapes]


def _left_by(tape: Tape | None) -> Iterator[FileState]:
    while tape is not None:
        yield from tape.files
        tape = tape.parent


def _read_standard_input(
    stack: ExitStack, session: Session, tape: Tape | None, differences: list[str]
) -> None:
    """Record standard input, or give it as on `tape`; a fork on a terminal asks past its point."""
    point = session.fork_point
    asks = point is not None and has_terminal()
    standard_input = StandardInput(
        session,
        session.masking,
        now=session.sink.wall_ns,
        writes=session.sink.tape is not None,
        recorded=None if tape is None else tape.standard_input,
        is_live=lambda: asks and point is not None and session.asked > point,
        differences=differences,
    )
    if session.sink.tape is not None:
        session.sink.before_exchange.append(standard_input.flush)
    if session.travel is not None:
        session.travel.moved.append(standard_input.go_to)
    stack.enter_context(reading(standard_input))


def tell_differences(differences: Sequence[str], error: BaseException | None) -> None:
    """Warn of differences, on the line that ends the block; or note them on its own error."""
    if isinstance(error, Exception):
        for difference in differences:
            error.add_note(printable(f"tracefork: {difference}"))
    elif error is None and differences:
        words = "; ".join(differences)
        warnings.warn(f"tracefork: {words}", SurroundingsWarning, stacklevel=_callers_level())


def _callers_level() -> int:
    """Return how far up the first frame is that is not ours, as `tell_differences` counts."""
    level, frame = 1, sys._getframe(1)
    while frame.f_back and frame.f_globals.get("__name__", "").startswith(_OURS):
        level, frame = level + 1, frame.f_back
    return level


def other_versions(tape: Tape) -> list[str]:
    """Return in a line what of this process has another version than it had; often nothing.

    Only what is imported: another version of what nobody uses makes no difference. What the agent
    imports comes before what that imports in turn.
    """
    if tape.environment is None:
        return []
    then, now = tape.environment.packages, packages()
    loaded = {name: place for place, name in enumerate(sys.modules)}
    found: dict[str, int] = {}
    for name, version in now.items():
        place = min((loaded[module] for module in _modules(name) if module in loaded), default=None)
        if place is not None and then.get(name, version) != version:
            found[name] = place
    names = sorted(found, key=found.__getitem__)
    told = [f"{name} {then[name]} → {now[name]}" for name in names[:_TOLD]]
    if len(names) > _TOLD:
        told.append(f"{len(names) - _TOLD} more")
    if _minor(tape.environment.python) != _minor(platform.python_version()):
        told.insert(0, f"python {tape.environment.python} → {platform.python_version()}")
    return [f"other versions than when this was recorded: {', '.join(told)}"] if told else []


def _modules(distribution: str) -> tuple[str, str]:
    """Return what the modules of a distribution are mostly called: google-genai is google.genai."""
    return distribution.replace("-", "_"), distribution.replace("-", ".")


def _minor(version: str) -> str:
    return ".".join(version.split(".")[:2])
