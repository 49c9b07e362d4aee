"""Each `OnImport` for a module is called once, when the module is loaded."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest

from tracefork_core.patching.on_import import OnImport

NAME = "expected_module"


@pytest.fixture
def told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """Put a module on the path; return the list of the arrivals that were called."""
    (tmp_path / f"{NAME}.py").write_text("value = 3\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    yield []
    sys.modules.pop(NAME, None)


def waiting(told: list[str], who: str) -> OnImport:
    """Wait for the module."""

    def arrived() -> None:
        assert sys.modules[NAME].value == 3
        told.append(who)

    on_import = OnImport(NAME, arrived)
    on_import.on()
    return on_import


def test_two_arrivals_for_one_module_are_both_called(told: list[str]) -> None:
    """Each is called once, even if the module is loaded again."""
    finders = list(sys.meta_path)
    both = [waiting(told, who) for who in ("one", "two")]
    import_module(NAME)
    del sys.modules[NAME]
    import_module(NAME)
    assert sorted(told) == ["one", "two"]
    for on_import in both:
        on_import.off()
    assert sys.meta_path == finders


def test_an_arrival_that_is_off_is_not_called(told: list[str]) -> None:
    """The control: it is switched off before the module is loaded."""
    waiting(told, "one").off()
    import_module(NAME)
    assert told == []


def test_the_module_keeps_its_own_loader(told: list[str]) -> None:
    """The wrapped loader acts like the real one, and is replaced by it afterwards."""
    plain = importlib.util.find_spec(NAME)
    on_import = waiting(told, "one")
    spec = importlib.util.find_spec(NAME)
    assert spec is not None
    assert plain is not None
    assert spec.loader.get_source(NAME) == "value = 3\n"  # type: ignore[union-attr]
    module = import_module(NAME)
    assert type(module.__loader__) is type(plain.loader)
    assert type(module.__spec__.loader) is type(plain.loader)  # type: ignore[union-attr]
    on_import.off()
