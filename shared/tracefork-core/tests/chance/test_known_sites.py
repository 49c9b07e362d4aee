from __future__ import annotations

import sys
from importlib.machinery import ModuleSpec
from types import ModuleType

import pytest

from tracefork_core.exchange.call_sites import KnownSites


def main(monkeypatch: pytest.MonkeyPatch, file: str, spec: str | None = None) -> None:
    """Make a module `__main__`."""
    module = ModuleType("__main__")
    module.__file__, module.__spec__ = file, ModuleSpec(spec, None) if spec else None
    monkeypatch.setitem(sys.modules, "__main__", module)


def test_an_imported_program_uses_the_call_sites_of_the_script() -> None:
    """Those of its functions; a module that drew under its own name keeps that."""
    sites = KnownSites("__main__:Agent.plan", "lib:draw")
    assert sites.named("agent:Agent.plan") == "__main__:Agent.plan"
    assert sites.named("pkg.agent:Agent.plan") == "__main__:Agent.plan"
    assert sites.named("agent:Agent.act") == "agent:Agent.act"
    assert sites.named("lib:Agent.plan") == "lib:Agent.plan"  # It drew for itself.


@pytest.mark.parametrize(
    ("file", "spec"), [("/a/agent.py", None), ("/a/x.py", "agent"), ("/a/x.py", "pkg.agent")]
)
def test_a_script_uses_the_call_sites_of_the_imported_program(
    monkeypatch: pytest.MonkeyPatch, file: str, spec: str | None
) -> None:
    """By the name of its file or module; those of another module are not used."""
    main(monkeypatch, file, spec)
    assert KnownSites("pkg.agent:plan").named("__main__:plan") == "pkg.agent:plan"
    assert KnownSites("agent:plan").named("__main__:plan") == "agent:plan"
    assert KnownSites("other:plan").named("__main__:plan") == "__main__:plan"
    both = KnownSites("agent:plan", "__main__:act")
    assert both.named("__main__:plan") == "__main__:plan"


def test_a_tape_without_call_sites_changes_no_name() -> None:
    """As while recording."""
    assert KnownSites().named("agent:plan") == "agent:plan"
