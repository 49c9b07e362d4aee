"""Generators whose steps belong to a session, whichever thread, task or context resumes them.

A generator has no context of its own: each step runs in that of the code that resumes it. Starlette
resumes the plain generator of a `StreamingResponse` in a fresh copy of the context, in another
thread each time. So context variables do not tell which session a step belongs to, and the stack
has to: the generator's frame is on it during each step.

Two kinds of frames are kept here. One has opened the session in its own body (`with record(…)` and
then `yield`): between its steps the code that iterates over it is not part of the run. The other
was seen on the stack when a session made a request. A generator that a `with` statement or a
fixture resumes is neither: its body ends before the block begins.
"""

from __future__ import annotations

import sys
from collections import OrderedDict
from types import FrameType
from typing import NamedTuple

TYPE_CHECKING = False  # Child processes load this at their start.
if TYPE_CHECKING:
    from tracefork_core.exchange.contract import Lane, Session

_SCOPES = ("contextlib", "_pytest.", "pluggy.", "pytest", "anyio.", "unittest.")
"""Modules that resume a generator to enter and leave a block."""
_GENERATOR = 0x20 | 0x200
"""`CO_GENERATOR` and `CO_ASYNC_GENERATOR`; the module `inspect` is expensive to import."""
_MOST = 256
"""How many frames are kept: each keeps its local variables alive until the session ends."""


class Place(NamedTuple):
    """Where the steps of a generator run."""

    session: Session
    lane: Lane | None


frames: OrderedDict[FrameType, list[Place]] = OrderedDict()
"""The known frames, each with the sessions that it belongs to; the innermost is the last."""


def opening_frame() -> FrameType | None:
    """Return the frame of the code that opens a session."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and _module(frame).startswith(("tracefork_core.", "contextlib")):
        frame = frame.f_back
    return frame


def is_iterated(frame: FrameType | None) -> bool:
    """Return whether a frame is of a generator that other code iterates over."""
    if frame is None or not _is_generator(frame):
        return False
    return frame.f_back is None or not _module(frame.f_back).startswith(_SCOPES)


def keep(frame: FrameType, place: Place) -> None:
    """Let the steps of a generator run in a place, until `forget`."""
    frames.setdefault(frame, []).append(place)
    while len(frames) > _MOST:
        frames.popitem(last=False)


def keep_running(place: Place, block: FrameType | None) -> None:
    """Keep the generators on the stack, up to the frame that opened the session."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and frame is not block:
        if _is_generator(frame) and frame not in frames and is_iterated(frame):
            keep(frame, place)
        frame = frame.f_back


def forget(session: Session) -> None:
    """Forget the generators of a session."""
    for frame, places in list(frames.items()):
        left = [place for place in places if place.session is not session]
        if not left:
            frames.pop(frame, None)
        elif len(left) < len(places):
            frames[frame] = left


def running_place() -> Place | None:
    """Return the place of the innermost known frame on the stack whose session is open."""
    if not frames:
        return None
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        for place in reversed(frames.get(frame, ())):
            if place.session.active:
                return place
        frame = frame.f_back
    return None


def _is_generator(frame: FrameType) -> bool:
    return bool(frame.f_code.co_flags & _GENERATOR)


def _module(frame: FrameType) -> str:
    return str(frame.f_globals.get("__name__", ""))
