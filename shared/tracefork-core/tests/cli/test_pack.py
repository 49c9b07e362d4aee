"""`pack` writes a tape that needs no other file; `unpack` refuses a damaged one."""

from __future__ import annotations

from pathlib import Path

import pytest

from tracefork_core import Tape

from .conftest import Shell


def test_a_packed_run_replays_elsewhere(recorded: Shell, tmp_path: Path) -> None:
    """It has the digest of the run."""
    done = recorded.tracefork("pack", "support.tape", "-o", "sent.tape")
    assert done.exit == 0
    assert "● packed sent.tape · 1 exchange · " in done.out
    assert "tracefork unpack sent.tape" in done.out
    with Tape.open(recorded.folder / "support.tape") as tape:
        assert f"digest {tape.digest}" in done.out
    (recorded.folder / "inbox").mkdir()
    taken = recorded.tracefork("unpack", "sent.tape", "--into", "inbox")
    assert "✓ unpacked inbox/sent.tape · 1 exchange, undamaged" in taken.out
    assert recorded.tracefork("replay", "inbox/sent.tape", "support.py").exit == 0


def test_a_packed_run_is_named_after_its_tape(taped: Shell) -> None:
    """No file is overwritten, by either command."""
    assert (
        taped.tracefork("pack", "--json", "agent.tape")
        .document["packed"]
        .endswith("/agent-packed.tape")
    )
    again = taped.tracefork("pack", "agent.tape", "-o", "agent-packed.tape")
    assert (again.exit, "already exists" in again.err) == (2, True)
    here = taped.tracefork("unpack", "agent-packed.tape")
    assert (here.exit, "agent-packed.tape" in here.err) == (2, True)


@pytest.mark.parametrize("place", [0.4, 0.7, 0.9])
def test_unpack_refuses_a_damaged_tape(taped: Shell, place: float) -> None:
    """No file is written."""
    taped.tracefork("pack", "agent.tape", "-o", "sent.tape")
    data = bytearray((taped.folder / "sent.tape").read_bytes())
    data[int(place * len(data))] ^= 1
    (taped.folder / "sent.tape").write_bytes(data)
    (taped.folder / "inbox").mkdir()
    done = taped.tracefork("unpack", "sent.tape", "--into", "inbox")
    assert (done.exit, "sent.tape" in done.err) == (5, True), done.err
    assert list((taped.folder / "inbox").iterdir()) == []


def test_pack_includes_the_exchange_in_flight(taped: Shell) -> None:
    """The packed tape stays incomplete, and has no journal."""
    taped.write(
        "cut.py",
        "import os, httpx\n"
        "url = os.environ['PROVIDER']\n"
        "httpx.get(url + '/bytes/3')\n"
        "with httpx.stream('GET', url + '/chunked?n=4') as answer:\n"
        "    next(answer.iter_raw())\n"
        "    os.kill(os.getpid(), 9)\n",
    )
    assert taped.tracefork("record", "cut.py").exit != 0
    assert (taped.folder / "cut.tape-flight").is_file()
    done = taped.tracefork("pack", "cut.tape", "-o", "whole.tape")
    assert done.exit == 0
    assert "2 exchanges" in done.out
    assert "incomplete" in done.out
    with Tape.open(taped.folder / "whole.tape") as tape:
        assert not tape.complete
        assert [exchange.end for exchange in tape.exchanges] == ["eof", "open"]
        assert len(tape.exchanges[1].chunks) == 1
    assert list(taped.folder.glob("whole.tape-*")) == []
