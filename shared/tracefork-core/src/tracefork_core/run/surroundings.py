"""Note what the agent reads of its surroundings; at replay, say what of it is otherwise."""

from __future__ import annotations

import platform
import sys
import warnings
from collections.abc import Sequence
from contextlib import ExitStack

from tracefork_core.chance.surroundings import (
    TIMEZONE,
    Lookout,
    on_the_lookout,
    timezone_seen,
)
from tracefork_core.errors import SurroundingsWarning
from tracefork_core.session import Session
from tracefork_core.tape import Tape
from tracefork_core.tape.environment import packages, timezone
from tracefork_core.tape.event import Environment

_NS = 1e9
_OURS = ("tracefork_core.", "contextlib")
_TOLD = 12


def note_surroundings(
    stack: ExitStack, session: Session, environment: Environment, *, clock: bool
) -> None:
    """Put on the tape what the agent reads, until `stack` unwinds."""
    masking = session.masking

    def masked(text: str) -> str:
        masking.look_around()  # A value may have become a secret since it was read.
        return masking.text(text)

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
    if recorded:
        session.suspects.append(lambda: lookout.differences)
        stack.enter_context(on_the_lookout(lookout))
    if tape.environment and any(seen.kind == TIMEZONE for seen in recorded):
        stack.enter_context(timezone_seen(lookout, tape.environment.started / _NS))
    return lookout.differences


def tell_differences(differences: Sequence[str], error: BaseException | None) -> None:
    """Warn of differences, on the line that ends the block; or note them on its own error."""
    if isinstance(error, Exception):
        for difference in differences:
            error.add_note(f"tracefork: {difference}")
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
