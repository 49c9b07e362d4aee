"""Entropy of the whole process, answered by sessions while any is open.

Only functions of Python are touched. TLS, and whatever else draws in C, keeps real entropy; so does
everything below a seam, outside a session and in a forked child.

tempfile keeps one generator of names for the process, older than the session and shared by all
threads: here each lane has a generator for them. A name that exists already is passed over, so a
file that was left behind by the recorded run makes the replay take another.
"""

from __future__ import annotations

import random
import tempfile
from typing import Any

from tracefork_core.chance import global_random, uuids
from tracefork_core.chance.entropy import OS_SWAPS, RecordedEntropy, sessions
from tracefork_core.exchange.call_sites import call_site
from tracefork_core.patching.bound_names import Swaps
from tracefork_core.patching.patch import Patches, Shared

_swaps = Swaps([*OS_SWAPS, *global_random.SWAPS, *uuids.SWAPS])
_Names: Any = tempfile._RandomNameSequence  # type: ignore[attr-defined]  # noqa: SLF001
_real_rng = vars(_Names)["rng"]


def start(entropy: RecordedEntropy) -> None:
    """Let draws of this process be answered by `entropy` inside its session."""
    _patches.on()
    sessions.all.append(entropy)


def stop(entropy: RecordedEntropy) -> None:
    """Undo `start`. After a recording the global generator goes on where the run left it."""
    sessions.all.remove(entropy)
    _patches.off()
    state = entropy.generators.state
    if state is not None:
        global_random.go_on_from(state)


def _put_in(patches: Patches) -> None:
    tempfile.gettempdir()  # Asked first, it tries names: not on somebody's lane.
    patches.replace(_Names, "rng", property(_rng))
    global_random.put_in(patches)
    patches.switch(_swaps.put_in, _swaps.take_out)
    patches.switch(uuids.PACKAGE.on, uuids.PACKAGE.off)


def _rng(names: object) -> random.Random:
    entropy = sessions.here()
    if entropy is None or call_site(1, frozenset({"tempfile"}))[0] is None:
        own: random.Random = _real_rng.fget(names)
        return own
    return entropy.generator("tempfile")


_patches = Shared(_put_in)
