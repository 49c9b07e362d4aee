"""Join the parent's session as a Python child process starts.

Most children make no request and draw nothing, so everything waits: HTTP libraries are
instrumented when they are imported, and the clock and randomness are switched on at the first draw
(`Waking`). A draw goes through a function of `time` or `os`, or through a module that is imported
for it; both are watched until one of them is used.
"""

from __future__ import annotations

import atexit
import importlib.util
import sys
from collections.abc import Callable
from importlib import import_module
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import cast

from tracefork_core.chance.first_draw import Traps
from tracefork_core.children import forks
from tracefork_core.children.child.joined_process import JoinedProcess, arrive
from tracefork_core.children.child.joined_session import Member
from tracefork_core.children.environment import hand_on
from tracefork_core.children.invitation import Descent, Invitation
from tracefork_core.children.multiprocess import PROCESSES
from tracefork_core.egress.guard import Watch
from tracefork_core.patching.instrument import Instrument, Undo
from tracefork_core.seams import AMBIENT

_NEEDED = ("msgspec", "time_machine")
_MODULES = "datetime random secrets tempfile uuid".split()
_OTHERS_NEEDED = {"backports", "dateutil", "msgspec", "time_machine", "tracefork_core"}


def join(given: dict[str, object], watch: Watch) -> None:
    """Make the requests and draws of this process part of its parent's run."""
    missing = [name for name in _NEEDED if importlib.util.find_spec(name) is None]
    if missing:
        version = ".".join(str(part) for part in sys.version_info[:2])
        watch.report.write(
            programs=[f"python{version} (guarded, not recorded: no {' and no '.join(missing)})"]
        )
        return
    invitation = Invitation.read(given)
    member = arrive(invitation)
    descent = Descent(member, invitation)
    forks.joined_processes.append(JoinedProcess(member, descent))
    hand_on(watch, descent)
    forks.watch(descent)
    arm(invitation)
    if invitation.tools or invitation.tools_of:
        _name_tools(member, invitation)
    atexit.register(forks.leave)


def _name_tools(member: Member, invitation: Invitation) -> None:
    """Make the functions tools that the session names, for the rest of this process's life."""
    from tracefork_core.seams.tools.named_tools import NamedTools
    from tracefork_core.seams.tools.tool_names import read_names

    names = read_names(invitation.tools, invitation.tools_of)
    # The import that lacks a name raises the error; nothing here could report it better.
    NamedTools(names).begin(member, lambda error: None)


def arm(invitation: Invitation) -> None:
    """Instrument this process for the rest of its life."""
    for instrument in (*PROCESSES, _TASKS):
        instrument.on()
    if invitation.ambient:
        for instrument in AMBIENT:
            instrument.on()
    Waking(_start_chance).begin()


def _start_chance() -> None:
    for joined in forks.joined_processes:
        joined.start_chance()
    forks.come_last()  # After the fork handlers of the clock and of entropy, which are loaded now.


def _spawning(_: ModuleType) -> Undo:
    spawning = import_module("tracefork_core.order.spawning")
    if hasattr(spawning, "start"):
        _start(spawning)
    else:  # This program records, and that module is importing asyncio right now.
        when_loaded(cast(ModuleSpec, spawning.__spec__), lambda: _start(spawning))
    return lambda: _stop(spawning)


def _start(spawning: ModuleType) -> None:
    spawning.start()


def _stop(spawning: ModuleType) -> None:
    spawning.stop()


_TASKS = Instrument("asyncio", _spawning)


class Waking:
    """Calls `start` once, before the first draw."""

    def __init__(self, start: Callable[[], None]) -> None:
        self._start = start
        self._over = False
        self._traps = Traps(self.wake)
        self._instruments = [Instrument(name, self._imported) for name in _MODULES]

    def begin(self) -> None:
        """Wait for the first draw."""
        self._traps.put_in()
        for instrument in self._instruments:
            instrument.on()

    def wake(self) -> None:
        """Start now, or after an import in progress that `start` may depend on."""
        if self._over:
            return
        if (loading := _half_loaded()) is not None:
            when_loaded(loading, self.wake)
            return
        self._over = True
        self._traps.take_out()
        self._start()

    def _imported(self, _: ModuleType) -> Undo:
        self.wake()
        return lambda: None


def _half_loaded() -> ModuleSpec | None:
    """Return the outermost import in progress that our imports could depend on."""
    for name, module in list(sys.modules.items()):
        root = name.partition(".")[0]
        if root not in sys.stdlib_module_names and root not in _OTHERS_NEEDED:
            continue
        spec = getattr(module, "__spec__", None)
        if spec is not None and getattr(spec, "_initializing", False):
            return spec  # type: ignore[no-any-return]
    return None


def when_loaded(spec: ModuleSpec, then: Callable[[], None]) -> None:
    """Call `then` as soon as the import of a module is complete.

    Its import is in progress, so a finder or a loader would come too late. The import system marks
    the end of an import in one place only: it sets `_initializing` of the spec to False. So the
    spec gets a class that sees this, and gets its own class back at once.
    """

    class Announced(ModuleSpec):
        @property
        def _initializing(self) -> bool:
            return bool(vars(self)["_initializing"])

        @_initializing.setter
        def _initializing(self, value: bool) -> None:
            vars(self)["_initializing"] = value
            if not value:
                self.__class__ = ModuleSpec  # type: ignore[assignment]
                then()

    if type(spec) is ModuleSpec:
        spec.__class__ = Announced
