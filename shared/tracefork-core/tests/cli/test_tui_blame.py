"""The terminal view of a run that failed, before and after a blame."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tracefork_testkit import ModelRequest, ProviderServer, Reply

from .conftest import Shell
from .terminal_view import viewed
from .test_blame import AGENT

pytestmark = pytest.mark.many_processes


class Denies:
    """Answers step 2 wrongly in the recording, and rightly in each fork of it."""

    def __init__(self) -> None:
        self.asked = 0

    def __call__(self, request: ModelRequest) -> Reply:
        step, before = request.last_user_text.split(": ")
        self.asked += 1
        return Reply("deny" if self.asked < 5 and step == "2" else before)


@pytest.fixture
def desk(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> Iterator[Shell]:
    """Return a shell with a run whose answer at exchange 2 made it fail."""
    shell.write("agent.py", AGENT)
    monkeypatch.chdir(shell.folder)
    monkeypatch.setenv("TRACEFORK_HOME", shell.environment["TRACEFORK_HOME"])
    with ProviderServer(Denies()) as server:
        shell.environment["PROVIDER"] = server.url
        done = shell.tracefork("record", "-o", "fn.tape", "--agent", "agent:main")
        assert done.exit == 0, done.err
        yield shell


async def test_blame_shows_its_ranking_and_marks_the_step(desk: Shell) -> None:
    """Without a blame it shows the command that makes one."""
    tape = desk.folder / "fn.tape"
    async with viewed(tape) as view:
        await view.press("w")
        await view.until("next: tracefork blame fn.tape --oracle …")
        assert "blamed" not in view.text
    words = ["blame", "fn.tape", "--agent", "agent:main", "--oracle=equals:refund", "--yes"]
    done = desk.tracefork(*words, "--workers=2", "--budget=400 calls", "--json")
    assert done.document["verdict"]["units"] == [2], done.out + done.err
    async with viewed(tape, size=(100, 40)) as view:
        await view.until("exchange 2: ")
        await view.press("J")
        assert view.selected.split()[1] in ("blamed", "likely")
        assert view.selected.split()[2] == "2"
        await view.press("w")
        text = await view.until("controls passed")
        assert "intervals: 95% for all steps together" in text
        assert "●       100%  +100 points" in text
        assert "2, named · agent.py:10 → 'deny'" in text
        assert "◀ keeps exchange 2" in text
