"""One program runs as a script, as a module, as a function and imported by another program."""

from __future__ import annotations

import pytest

from .conftest import Shell

pytestmark = pytest.mark.many_processes

AGENT = """\
import os, random, secrets, time, uuid
import httpx2

def drawn():
    return f"{time.time()} {uuid.uuid4()} {secrets.token_hex(4)} {random.random()} {os.urandom(3)}"

class Agent:
    def ask(self):
        time.sleep(0.01)
        for word in ["one", "two"]:
            httpx2.post(os.environ["PROVIDER"] + "/echo", content=f"{word} {drawn()}".encode())

def main():
    Agent().ask()

if __name__ == "__main__":
    main()
"""
OTHER = "import agent\nagent.main()\n"
WAYS = {
    "script": ["agent.py"],
    "module": ["-m", "agent"],
    "function": ["--agent", "agent:main"],
    "imported": ["other.py"],
    "packaged": ["--agent", "pkg.agent:main"],
}


TWO_MODULES = [{"function", "packaged"}, {"imported", "packaged"}]
"""Neither of the two modules is `__main__`, so they are not the same program."""


@pytest.fixture
def there(shell: Shell) -> Shell:
    shell.write("agent.py", AGENT)
    shell.write("pkg/agent.py", AGENT)
    shell.write("other.py", OTHER)
    return shell


@pytest.mark.parametrize("recorded", WAYS)
def test_draws_are_found_however_the_program_is_called(there: Shell, recorded: str) -> None:
    """A tape recorded one way replays in each other way."""
    done = there.tracefork("record", "-o", "run.tape", *WAYS[recorded])
    assert done.exit == 0, done.err
    for replayed, words in WAYS.items():
        if replayed == recorded or {recorded, replayed} in TWO_MODULES:
            continue
        done = there.tracefork("replay", "run.tape", *words, "--json")
        assert done.exit == 0, done.err
        assert done.document["clock_misses"] == done.document["entropy_misses"] == 0


def test_a_fork_replays_however_the_program_is_called(there: Shell) -> None:
    """The branch continues the draws of the recorded program."""
    assert there.tracefork("record", "agent.py").exit == 0
    forked = there.tracefork(
        "fork", "agent.tape", "--at", "1", "--agent", "agent:main", "--allow-writes", "-o", "b.tape"
    )
    assert forked.exit == 0, forked.err
    for way in ("script", "function"):
        done = there.tracefork("replay", "b.tape", *WAYS[way])
        assert done.exit == 0, done.err
