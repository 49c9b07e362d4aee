"""Switch the patches of entropy on for the whole process, while any session is open.

Only Python functions are patched. TLS and other C code keeps real entropy, and so does everything
below a seam, outside a session and in a forked child.

tempfile has one generator of names per process, older than the session and shared by all threads.
Here each lane has its own. tempfile skips a name that exists: `inputs.leftovers` frees those of
files that the recorded run left behind.
"""

from __future__ import annotations

import os
import random
import tempfile
import uuid
from typing import Any

from tracefork_core.chance import global_random, native_uuids, uuids
from tracefork_core.chance.entropy import OS_SWAPS, RecordedEntropy, sessions
from tracefork_core.chance.generators import set_global_state
from tracefork_core.exchange.call_sites import call_site
from tracefork_core.patching.bound_names import Swaps
from tracefork_core.patching.patch import Patches, Shared

_SWAPS = [*OS_SWAPS, *global_random.SWAPS, *uuids.SWAPS]
_SOURCES = [
    (os, "urandom getrandom"),
    (random, "random getrandbits seed getstate setstate"),
    (uuid, "uuid1 uuid6 uuid7"),
]
_swaps = Swaps(_SWAPS)
_Names: Any = tempfile._RandomNameSequence  # type: ignore[attr-defined]  # noqa: SLF001
_real_rng = vars(_Names)["rng"]


def replaced() -> list[str]:
    """Return the sources that the program has put something else in place of: "os.urandom"."""
    known = {id(function) for pair in _SWAPS for function in pair}
    return [
        f"{module.__name__}.{name}"
        for module, names in _SOURCES
        for name in names.split()
        if name in vars(module) and id(vars(module)[name]) not in known
    ]


def start(entropy: RecordedEntropy) -> None:
    """Answer draws of this process from `entropy`, in the code of its session."""
    _patches.on()
    sessions.add(entropy)


def stop(entropy: RecordedEntropy) -> None:
    """Undo `start`. After a recording, the real generator continues where the run left it."""
    sessions.remove(entropy)
    _patches.off()
    state = entropy.generators.state
    if state is not None:
        set_global_state(state)


def _put_in(patches: Patches) -> None:
    tempfile.gettempdir()  # The first call tries names: they must not come from a lane.
    patches.replace(_Names, "rng", property(_rng))
    global_random.put_in(patches)
    patches.switch(_swaps.put_in, _swaps.take_out)
    for package in (*uuids.PACKAGES, *native_uuids.PACKAGES):
        patches.switch(package.on, package.off)


def _rng(names: object) -> random.Random:
    entropy = sessions.here()
    if entropy is None or call_site(1, frozenset({"tempfile"}))[0] is None:
        own: random.Random = _real_rng.fget(names)
        return own
    return entropy.generator("tempfile")


_patches = Shared(_put_in)
