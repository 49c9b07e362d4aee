"""Replace attributes of modules and classes for the length of a session, and put them back.

This is the one way in which core patches a library. `Patches` undoes its replacements in reverse
order. `Shared` serves several sessions at once: the first puts the patches in, the last takes them
out.

Undo restores an attribute only while it still holds our replacement. A tracer that wraps a client
during a session keeps its wrapper; the replacement below it calls the original, as it does for
every call outside a session.

Three things are patched in another way, and say why where they do it: the wall clock
(`chance.system_clock`: time-machine replaces it in C), the traps of a child process
(`chance.first_draw`), and audit hooks, which Python never removes.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from contextlib import ExitStack
from types import ModuleType
from typing import Any

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tracefork_core.errors import UsageError

_ABSENT = object()


class Patches:
    """Replacements that are undone together. Not locked: see `Shared`.

    Args:
        refuse: makes the error for an attribute that is not there, from the names of its module or
            class and of itself.
    """

    def __init__(self, refuse: Callable[[str, str], UsageError] | None = None) -> None:
        self._stack = ExitStack()
        self._refuse = refuse

    def replace(self, owner: Any, name: str, replacement: object) -> None:
        """Set an attribute of a module or a class until `undo`.

        Raises:
            UsageError: there is no such attribute; this version of the library is not supported.
        """
        # Not `getattr`: it would unpack a static method, and put an inherited one on the class.
        original = vars(owner).get(name, _ABSENT)
        if original is _ABSENT and not hasattr(owner, name):
            raise self._missing(owner, name)
        setattr(owner, name, replacement)
        self._stack.callback(_put_back, owner, name, original, replacement)

    def wrap(self, owner: Any, name: str, wrapper: Callable[[Any], object]) -> None:
        """Replace an attribute by what `wrapper` returns for it.

        Raises:
            UsageError: there is no such attribute; this version of the library is not supported.
        """
        if not hasattr(owner, name):
            raise self._missing(owner, name)
        self.replace(owner, name, wrapper(getattr(owner, name)))

    def change_class(self, instance: Any, kind: type) -> None:
        """Give an object another class until `undo`: for one that modules hold by many names."""
        original = type(instance)
        instance.__class__ = kind
        self._stack.callback(_change_back, instance, kind, original)

    def switch(self, on: Callable[[], object], off: Callable[[], object]) -> None:
        """Call `on` now and `off` at `undo`."""
        on()
        self.at_undo(off)

    def at_undo(self, undo: Callable[[], object]) -> None:
        """Call `undo` when these patches are undone."""
        self._stack.callback(undo)

    def _missing(self, owner: Any, name: str) -> UsageError:
        if self._refuse is None:
            return _unsupported(owner, name)
        return self._refuse(owner.__name__, name)

    def undo(self) -> None:
        """Put everything back, the last replacement first. The object can be used again."""
        self._stack.close()


class Shared:
    """Patches of the whole process that every open session needs.

    Args:
        put_in: patches, for the first session. If it fails, what it did is undone.
    """

    def __init__(self, put_in: Callable[[Patches], object]) -> None:
        self._put_in = put_in
        self._patches = Patches()
        self._users = 0
        self._lock = threading.Lock()

    def on(self) -> None:
        """Add a user; the first puts the patches in."""
        with self._lock:
            if not self._users:
                try:
                    self._put_in(self._patches)
                except BaseException:
                    self._patches.undo()
                    raise
            self._users += 1

    def off(self) -> None:
        """Remove a user; the last takes the patches out."""
        with self._lock:
            self._users -= 1
            if not self._users:
                self._patches.undo()


def _put_back(owner: Any, name: str, original: object, replacement: object) -> None:
    if vars(owner).get(name) is not replacement:
        return
    if original is _ABSENT:
        delattr(owner, name)
    else:
        setattr(owner, name, original)


def _change_back(instance: Any, kind: type, original: type) -> None:
    if type(instance) is kind:
        instance.__class__ = original


def _unsupported(owner: Any, name: str) -> UsageError:
    from tracefork_core.errors import UsageError

    is_module = isinstance(owner, ModuleType)
    package = (owner.__name__ if is_module else owner.__module__).partition(".")[0]
    attribute = f"{owner.__name__ if is_module else owner.__qualname__}.{name}"
    if package in sys.stdlib_module_names:
        package, version = "Python", sys.version.partition(" ")[0]
    else:
        version = getattr(sys.modules.get(package), "__version__", "(version unknown)")
    return UsageError(
        f"tracefork: {package} {version} has no {attribute}, which a session replaces. This "
        f"tracefork does not support that version of {package}. Update tracefork "
        f"(pip install -U tracefork-core), or install an older {package}."
    )
