"""Say what an adapter is, and find those that are installed."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points, requires, version
from pathlib import Path
from types import ModuleType
from typing import Protocol

from tracefork_core.checkpoints.contract import Checkpoints
from tracefork_core.patching.instrument import Instrument, Undo
from tracefork_core.patching.patch import Patches

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tracefork_core.errors import UsageError

GROUP = "tracefork.adapters"
IMPORTERS = "tracefork.importers"
"""The group of entry points whose values are an `Importer`."""
PROJECTS = "tracefork.projects"
"""The group of entry points whose values are a `FindProject`."""


@dataclass(frozen=True, slots=True)
class Adapter:
    """What `tracefork doctor` lists about an adapter.

    Args:
        name: the short name, as in the package name ("langgraph").
        distribution: the adapter's own distribution; its metadata says which versions of the
            framework it supports.
        framework: the framework's distribution name.
        seams: where the framework's exchanges are captured, as text for people.
    """

    name: str
    distribution: str
    framework: str
    seams: tuple[str, ...]

    def instrument(
        self,
        library: str,
        put_in: Callable[[Patches, ModuleType], object],
        prepare: Callable[[], Undo] | None = None,
    ) -> Instrument:
        """Return an instrument for a module of the framework.

        Args:
            library: the module's name.
            put_in: replaces parts of it, when it is imported. Whatever it misses there means that
                this version of the framework is not supported.
            prepare: does what must be in place before the import, and returns what undoes it.
        """

        def apply(module: ModuleType) -> Undo:
            patches = Patches(lambda owner, name: self.unsupported(f"{owner} has no {name}"))
            try:
                put_in(patches, module)
            except BaseException as error:
                patches.undo()
                if isinstance(error, (AttributeError, ImportError, KeyError)):
                    raise self.unsupported(str(error)) from error
                raise
            return patches.undo

        return Instrument(library, apply, prepare)

    def unsupported(self, what: str) -> UsageError:
        """Return an error that says how the installed framework differs from the supported ones."""
        from tracefork_core.errors import UsageError

        name = re.compile(rf"{re.escape(self.framework)}(?![\w.-])")
        wanted = next(need for need in requires(self.distribution) or () if name.match(need))
        return UsageError(
            f"tracefork: {self.distribution} does not support {self.framework} "
            f"{version(self.framework)}: {what}. It is made for {wanted}: pip install {wanted!r}, "
            f"or a newer {self.distribution}. Without the adapter (pip uninstall "
            f"{self.distribution}) tracefork records requests, not steps and tools."
        )


@dataclass(frozen=True, slots=True)
class Imported:
    """How many threads, checkpoints and writes an `Importer` brought over."""

    threads: int
    checkpoints: int
    writes: int


class Importer(Protocol):
    """Brings over the threads of another checkpointer."""

    def __call__(self, source: Path, target: Checkpoints) -> Imported:
        """Put everything that `source` holds into `target`, and return how much that was.

        Raises:
            UsageError: `source` is no file of that checkpointer, or reading it would run its code.
        """


@dataclass(frozen=True, slots=True)
class Project:
    """What a framework would run in a folder.

    Args:
        function: "package.module:function", called without arguments; a coroutine is awaited.
            Arguments behind the folder on the command line are in `sys.argv`.
        folder: the working directory.
        paths: the first entries of `sys.path`.
        environment: the variables to set before the session begins.
    """

    function: str
    folder: Path
    paths: tuple[Path, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)


class FindProject(Protocol):
    """Finds what a framework would run in a folder."""

    def __call__(self, folder: Path) -> Project | None:
        """Return the project without importing it; None for the folder of another framework.

        Raises:
            UsageError: the folder is a project, but it holds nothing to run.
        """


def lazy_names(package: str, **names: tuple[str, ...]) -> Callable[[str], object]:
    """Return the `__getattr__` of a package: each module's names are imported when they are used.

    So importing the package imports no framework.
    """
    homes = {name: f"{package}.{module}" for module, held in names.items() for name in held}

    def get(name: str) -> object:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return getattr(import_module(homes[name]), name)

    return get


def found_adapters() -> Iterator[tuple[EntryPoint, Adapter | BaseException]]:
    """Yield each installed adapter, or the error that importing it raised."""
    for point in entry_points(group=GROUP):
        try:
            yield point, point.load()
        except (Exception, SystemExit) as error:  # noqa: BLE001 - it must not hide the other adapters
            yield point, error
