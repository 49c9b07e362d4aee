"""The mode of a run decides what its tape stores, and readers of the tape respect it."""

from __future__ import annotations

from pathlib import Path
from typing import get_args

import httpx2
import pytest

from tracefork_core import DivergenceError, ReplayError, Tape, TapeError, UsageError, record, replay
from tracefork_core.tape.schema import Mode
from tracefork_testkit import ProviderServer

MODES = get_args(Mode)


def readers(mode: Mode, own_key: str) -> list[str]:
    """Return the readers for whom a tape is sealed."""
    return [own_key] if mode == "sealed" else []


def ask(http: httpx2.Client, provider: ProviderServer, text: bytes = b"the question") -> bytes:
    return http.post(f"{provider.url}/echo", content=text).content


@pytest.mark.parametrize("mode", MODES)
def test_a_tape_names_its_mode_and_has_one_digest(
    tape: Path, provider: ProviderServer, http: httpx2.Client, own_key: str, mode: Mode
) -> None:
    """Without secrets in it, a run has the same digest in every mode."""
    with record(tape.with_name("plain.tape"), mode="raw") as plain:
        ask(http, provider)
    with record(tape, mode=mode, seal_to=readers(mode, own_key)) as run:
        ask(http, provider)
    with Tape.open(tape) as opened:
        assert opened.mode == mode
        assert opened.digest == run.digest == plain.digest


@pytest.mark.parametrize("mode", [mode for mode in MODES if mode != "metadata"])
def test_a_tape_with_bodies_replays(
    tape: Path, provider: ProviderServer, http: httpx2.Client, own_key: str, mode: Mode
) -> None:
    """Sealed or not. Another request still diverges."""
    with record(tape, mode=mode, seal_to=readers(mode, own_key)):
        answer = ask(http, provider)
    with replay(tape):
        assert ask(http, provider) == answer
    with pytest.raises(DivergenceError), replay(tape):
        ask(http, provider, b"another question")


def test_a_metadata_tape_is_compared_but_not_replayed(
    tape: Path, provider: ProviderServer, http: httpx2.Client
) -> None:
    """It holds no requests or answers. A replay is refused before the agent runs."""
    with record(tape, mode="metadata"):
        ask(http, provider)
    with Tape.open(tape) as opened:
        (exchange,) = opened.exchanges
        assert exchange.status == 200
        assert not exchange.has_bodies
        with pytest.raises(TapeError):
            _ = exchange.response_body
    with pytest.raises(ReplayError), replay(tape):
        raise AssertionError("the agent ran")


def test_a_sealed_tape_needs_its_passphrase(
    tape: Path,
    provider: ProviderServer,
    http: httpx2.Client,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Without it one error says what to set, and another passphrase does not open the tape."""
    monkeypatch.setenv("TRACEFORK_PASSPHRASE", "correct horse battery staple")
    with record(tape, mode="sealed"):
        ask(http, provider)
    monkeypatch.delenv("TRACEFORK_PASSPHRASE")
    with Tape.open(tape) as opened, pytest.raises(TapeError, match="TRACEFORK_PASSPHRASE"):
        _ = opened.exchanges
    with pytest.raises(TapeError, match="is sealed"), replay(tape):
        raise AssertionError("the agent ran")
    with (
        pytest.raises(UsageError),
        record(tape, overwrite=True, mode="sealed"),
    ):
        raise AssertionError("the agent ran")
    monkeypatch.setenv("TRACEFORK_PASSPHRASE", "wrong")
    with pytest.raises(TapeError), replay(tape):
        raise AssertionError("the agent ran")


def test_an_unknown_mode_is_refused(tape: Path) -> None:
    """Nothing is written."""
    with pytest.raises(UsageError, match="no mode 'private'"):
        with record(tape, mode="private"):  # type: ignore[arg-type]
            raise AssertionError("the agent ran")
    assert not tape.exists()
    with pytest.raises(UsageError, match=r"`seal_to` .* is for"), record(tape, seal_to=["age1x"]):
        raise AssertionError("the agent ran")
