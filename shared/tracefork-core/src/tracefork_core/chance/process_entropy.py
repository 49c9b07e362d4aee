"""Entropy of the whole process, answered by sessions while any is open.

Only functions of Python are touched. TLS, and whatever else draws in C, keeps real entropy; so does
everything below a seam, outside a session and in a forked child.
"""

from __future__ import annotations

import threading

from tracefork_core.chance import global_random, os_entropy, temp_names, uuids
from tracefork_core.chance.entropy import RecordedEntropy, sessions
from tracefork_core.patching.bound_names import Swaps

_swaps = Swaps([*os_entropy.SWAPS, *global_random.SWAPS, *uuids.SWAPS])
_lock = threading.Lock()


def start(entropy: RecordedEntropy) -> None:
    """Let draws of this process be answered by `entropy` inside its session."""
    with _lock:
        sessions.all.append(entropy)  # First: whatever fails below, `stop` undoes.
        if len(sessions.all) == 1:
            temp_names.put_up()
            global_random.put_up()
            _swaps.put_in()
            uuids.PACKAGE.put_in()


def stop(entropy: RecordedEntropy) -> None:
    """Undo `start`. After a recording the global generator goes on where the run left it."""
    with _lock:
        sessions.all.remove(entropy)
        if not sessions.all:
            uuids.PACKAGE.take_out()
            _swaps.take_out()
            global_random.take_down()
            temp_names.take_down()
        state = entropy.generators.state
        if state is not None:
            global_random.go_on_from(state)
