"""Load the price lists of genai-prices within 100 ms.

The package imports an HTTP client, to download newer lists, and pydantic, to check them: that takes
three times as long as all the rest, and nothing here downloads or checks. So its modules are loaded
under names of their own, with something that stands in for pydantic and without the part that
downloads. Where the agent has loaded the package itself, that is used.
"""

from __future__ import annotations

import builtins
import sys
from importlib import import_module
from importlib.machinery import PathFinder
from importlib.util import find_spec
from types import ModuleType, SimpleNamespace
from typing import Any

_PACKAGE = "genai_prices"


class _Unused:
    """Stands in for pydantic, whose schemas only the part that downloads uses."""

    def __getattr__(self, name: str) -> Any:
        return lambda *args, **options: None


class PriceLists:
    """What is used of the package: `types.Usage`, and the prices of `data_snapshot`.

    Raises:
        ImportError: the package is not installed.
    """

    def __init__(self) -> None:
        self._loaded: dict[str, ModuleType] = {}
        package = sys.modules.get(_PACKAGE)
        if package is None:
            spec = find_spec(_PACKAGE)
            if spec is None or spec.submodule_search_locations is None:
                raise ImportError(_PACKAGE)
            self._folders = list(spec.submodule_search_locations)
            try:
                self.types: Any = self._load("types")
                self.prices: Any = self._load("data_snapshot").get_snapshot()
                return
            except Exception:  # noqa: BLE001 - its modules are private, and may change
                self._loaded.clear()
        from genai_prices import data_snapshot, types

        self.types, self.prices = types, data_snapshot.get_snapshot()

    @classmethod
    def found(cls) -> PriceLists | None:
        """Return the price lists; None where they are not installed."""
        try:
            return cls()
        except ImportError:
            return None

    def units(self) -> dict[str, Any]:
        """Return what can be charged for, by its name in a price list.

        Raises:
            ImportError, LookupError, AttributeError: this version of the package has no such table.
        """
        if self._loaded:
            registry: Any = vars(self._load("units"))["_get_registry"]()
        else:
            registry = vars(import_module(f"{_PACKAGE}.units"))["_get_registry"]()
        return {unit.price_key: unit for unit in registry.units.values()}

    def _load(self, name: str) -> ModuleType:
        """Return a module of the package, loaded under a name of our own."""
        if name in self._loaded:
            return self._loaded[name]
        spec = PathFinder.find_spec(f"{_PACKAGE}.{name}", self._folders)
        loader: Any = spec and spec.loader
        code = loader.get_code(f"{_PACKAGE}.{name}")
        module = self._loaded[name] = ModuleType(f"{__name__}.{name}")
        sys.modules[module.__name__] = module  # Its dataclasses look themselves up.
        vars(module)["__builtins__"] = {**vars(builtins), "__import__": self._import}
        exec(code, vars(module))  # noqa: S102 - the code of an installed package
        return module

    def _import(
        self,
        name: str,
        globals: Any = None,  # noqa: A002 - the names of `__import__`
        locals: Any = None,  # noqa: A002
        fromlist: Any = (),
        level: int = 0,
    ) -> Any:
        if name == "pydantic":
            return _Unused()
        inside = name.removeprefix(_PACKAGE).lstrip(".") if level == 0 else name
        if level == 0 and name.partition(".")[0] != _PACKAGE:
            return builtins.__import__(name, globals, locals, fromlist, level)
        if inside:
            return self._load(inside)
        return SimpleNamespace(**{wanted: self._load(wanted) for wanted in fromlist})
