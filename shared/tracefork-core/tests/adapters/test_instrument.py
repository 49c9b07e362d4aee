"""An adapter replaces parts of its framework while a session is open, or refuses its version."""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType

import pytest

from tracefork_core import UsageError
from tracefork_core.adapters import Adapter, Patches

# The metadata of a real distribution, and a real requirement of it.
ADAPTER = Adapter("typer", "tracefork-core", "typer", ())


@pytest.fixture
def library(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """Return a module of a framework, which is imported."""
    module = ModuleType("some_framework")
    vars(module)["run"] = lambda: "plain"
    monkeypatch.setitem(sys.modules, "some_framework", module)
    return module


def test_a_function_is_replaced_until_the_last_session_ends(library: ModuleType) -> None:
    """Two sessions share the replacement."""

    def put_in(patches: Patches, module: ModuleType) -> None:
        patches.wrap(module, "run", lambda run: lambda: f"wrapped {run()}")

    instrument = ADAPTER.instrument("some_framework", put_in)
    instrument.on()
    instrument.on()
    assert library.run() == "wrapped plain"
    instrument.off()
    assert library.run() == "wrapped plain"
    instrument.off()
    assert library.run() == "plain"


@pytest.mark.parametrize("missing", ["function", "attribute", "module", "name"])
def test_a_version_that_lacks_something_is_refused(library: ModuleType, missing: str) -> None:
    """The error says what is missing and which versions are supported; nothing stays replaced."""

    def put_in(patches: Patches, module: ModuleType) -> None:
        patches.replace(module, "run", None)
        if missing == "function":
            patches.wrap(module, "gone", lambda gone: gone)
        elif missing == "attribute":
            raise AttributeError("some_framework.tools is gone")
        elif missing == "module":
            raise ImportError("no module named some_framework.gone")
        vars(module)["gone"]

    instrument = ADAPTER.instrument("some_framework", put_in)
    with pytest.raises(UsageError, match="gone") as raised:
        instrument.on()
    assert library.run() == "plain"
    assert "tracefork-core does not support typer 0." in str(raised.value)
    assert "pip install 'typer" in str(raised.value)


def test_an_error_of_the_adapter_itself_is_not_called_a_wrong_version(library: ModuleType) -> None:
    """It is raised as it is."""

    def put_in(patches: Patches, module: ModuleType) -> None:
        patches.replace(module, "run", None)
        raise ValueError("a bug")

    with pytest.raises(ValueError, match="a bug"):
        ADAPTER.instrument("some_framework", put_in).on()
    assert library.run() == "plain"


def test_a_session_replaces_and_puts_back(library: ModuleType, tape: Path) -> None:
    """The instrument is attached by hand here; an entry point does it for an adapter."""
    from tracefork_core import record

    def put_in(patches: Patches, module: ModuleType) -> None:
        patches.replace(module, "run", lambda: "replaced")

    instrument = ADAPTER.instrument("some_framework", put_in)
    with record(tape):
        instrument.on()
        assert library.run() == "replaced"
        instrument.off()
    assert library.run() == "plain"
