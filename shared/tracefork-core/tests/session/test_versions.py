"""A divergence with other versions of imported packages says so on the card."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from pathlib import Path

import httpx2
import pytest

from tracefork_core import DivergenceError, fork, record, replay
from tracefork_core.run.fork import Forking
from tracefork_core.run.replay import Replaying
from tracefork_core.run.scope import Scope
from tracefork_testkit import ProviderServer

CARD = "other versions than when this was recorded: some-kit 1.0 → 2.0, wire-kit 1.0 → 2.0"


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Install two distributions that are imported, and one that is not, in a version."""
    site = tmp_path / "site-packages"
    (site / "wire").mkdir(parents=True)
    for module in ("some_kit", "wire/kit"):
        (site / f"{module}.py").touch()
    monkeypatch.syspath_prepend(site)

    def install(version: str) -> None:
        for found in site.glob("*.dist-info"):
            found.rmdir()
        for name in ("some_kit", "wire_kit", "unused_kit"):
            (site / f"{name}-{version}.dist-info").mkdir()
        for name in ("some_kit", "wire.kit"):
            importlib.import_module(name)

    return install


@pytest.mark.parametrize(
    "again", [replay, lambda tape: fork(tape, 1)], ids=["replayed", "forked after it"]
)
@pytest.mark.parametrize("version", ["2.0", "1.0"])
def test_the_card_names_changed_versions(
    tape: Path,
    provider: ProviderServer,
    http: httpx2.Client,
    install: Callable[[str], None],
    version: str,
    again: Callable[[Path], Scope[Replaying] | Scope[Forking]],
) -> None:
    """Both versions, of imported packages only; the control has equal ones and no hint."""

    def ask(*words: str) -> None:
        for word in words:
            http.post(f"{provider.url}/echo", json={"word": word})

    install("1.0")
    with record(tape):
        ask("one", "two")
    install(version)

    def other() -> None:
        with again(tape):
            ask("another", "two")

    with pytest.raises(DivergenceError) as raised:
        other()
    assert raised.value.divergence.hints == ((CARD,) if version == "2.0" else ())
