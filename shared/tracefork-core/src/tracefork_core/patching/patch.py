"""Replace attributes of modules and classes for the length of a session, and put them back.

This is the one way in which core patches a library. `Patches` undoes its replacements in reverse
order. `Shared` serves several sessions at once: the first puts the patches in, the last takes them
out.

Undo restores an attribute only while it still holds our replacement. A tracer that wraps a client
during a session keeps its wrapper; the replacement below it calls the original, as it does for
every call outside a session. A mock that ends after the session it began in puts our replacement
back. The next session that begins or ends takes it away again (`_heal`): else it would wrap it once
more.

Three things are patched in another way, and say why where they do it: the wall clock
(`chance.system_clock`: time-machine replaces it in C), the traps of a child process
(`chance.first_draw`), and audit hooks, which Python never removes.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from contextlib import ExitStack
from functools import update_wrapper
from types import FunctionType, ModuleType
from typing import Any

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tracefork_core.errors import UsageError

_ABSENT = object()
_Place = tuple[Any, str, object, object]
"""An owner, the name of its attribute, the original and our replacement."""
_in_place: list[_Place] = []
_covered: list[_Place] = []
"""Where something else covered our replacement when it was undone."""
_MOST_COVERED = 100
_healing = threading.RLock()


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
        _heal()
        if _is_mock(owner):
            return
        # Not `getattr`: it would unpack a static method, and put an inherited one on the class.
        original = vars(owner).get(name, _ABSENT)
        if original is _ABSENT and not hasattr(owner, name):
            raise self._missing(owner, name)
        place = owner, name, original, replacement
        with _healing:
            if any(_is_same(place, covered) for covered in _covered):
                # Another object, so that what a mock puts back is told from what is in place.
                replacement = _copied(replacement)
                place = owner, name, original, replacement
            setattr(owner, name, replacement)
            _in_place.append(place)
        self._stack.callback(_take_out, place)

    def wrap(self, owner: Any, name: str, wrapper: Callable[[Any], object]) -> None:
        """Replace an attribute by what `wrapper` returns for it.

        Raises:
            UsageError: there is no such attribute; this version of the library is not supported.
        """
        _heal()
        if _is_mock(owner):
            return
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
        _heal()


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


def _is_mock(owner: object) -> bool:
    """Return whether the program has put an object in place of a module or class: it stays so."""
    return not isinstance(owner, ModuleType | type)


def _take_out(place: _Place) -> None:
    with _healing:
        _remove(_in_place, place)
        if _holds(place):
            _put_back(place)
        else:
            _covered.append(place)
            del _covered[:-_MOST_COVERED]


def _put_back(place: _Place) -> None:
    owner, name, original, _ = place
    if original is _ABSENT:
        delattr(owner, name)
    else:
        setattr(owner, name, original)


def _heal() -> None:
    """Put originals in place of replacements that a mock has put back since they were undone."""
    with _healing:
        for place in [place for place in _covered if _holds(place)]:
            if not any(_is_same(place, used) for used in _in_place):
                _put_back(place)
                _remove(_covered, place)


def _holds(place: _Place) -> bool:
    owner, name, _, replacement = place
    return vars(owner).get(name) is replacement


def _is_same(place: _Place, other: _Place) -> bool:
    return place[0] is other[0] and place[1] == other[1] and place[3] is other[3]


def _copied(function: object) -> object:
    if not isinstance(function, FunctionType):
        return function
    copied = FunctionType(
        function.__code__,
        function.__globals__,
        function.__name__,
        function.__defaults__,
        function.__closure__,
    )
    copied.__kwdefaults__ = function.__kwdefaults__
    return update_wrapper(copied, function)


def _remove(places: list[_Place], place: _Place) -> None:
    places[:] = [one for one in places if one is not place]


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
