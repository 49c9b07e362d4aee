"""The first hour with an agent of one's own: each command that is printed is typed as printed.

By day an agent is recorded, replayed, edited and run again. At night it is forked and shared, all
the rest that is printed on the way is typed, and a blame finds the fault that the model plants.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tracefork_testkit import ModelRequest, Reply, ToolCall

IS_NIGHT = "TRACEFORK_EXAMPLES" in os.environ
QUESTION = "Where is order 17?"


class Clerk:
    """A model that looks up the wrong order in its first answer, and the right one after that."""

    def __init__(self) -> None:
        self._looked = 0

    def __call__(self, request: ModelRequest) -> Reply:
        if request.tool_results:
            return Reply(f"It is {request.tool_results[-1].text}.")
        self._looked += 1
        order = 71 if self._looked == 1 else 17
        return Reply(tool_calls=[ToolCall("lookup_order", {"number": order})])


@dataclass
class FirstHour:
    """A folder with an agent, `agent.py`, whose `main` returns what it answers, and a terminal.

    Attributes:
        folder: where the agent is, and nothing else.
        url: that of the scripted model.
        options: what a recording of this agent needs.
        writes: what its forks need, because they run tools again.
    """

    folder: Path
    url: str
    options: tuple[str, ...] = ()
    writes: tuple[str, ...] = ()
    typed: list[str] = field(default_factory=list)

    def type(self, *words: str, exits: int = 0) -> str:
        """Type a command, and return what it prints."""
        done = subprocess.run(
            [sys.executable, "-m", "tracefork_core", *words],
            cwd=self.folder,
            env={
                **os.environ,
                "OPENAI_BASE_URL": f"{self.url}/v1",
                "OPENAI_API_KEY": "none",
                "TRACEFORK_HOME": str(self.folder / ".tracefork"),
                "PYTHONHASHSEED": "0",
            },
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        self.typed.append(shlex.join(words))
        assert done.returncode == exits, f"$ tracefork {self.typed[-1]}\n{done.stdout}"
        return done.stdout

    def follow(self, printed: str, *more: str) -> str:
        """Type each command that is printed as the next one; return what the last one prints."""
        commands = list(_following(printed))
        assert commands, printed
        for words in commands:
            printed = self.type(*words, *more)
        return printed

    def walk(self, *, at: str, text: str, kept: Sequence[str] = ()) -> None:
        """Record, replay, edit and run again; at night, fork with `text` given `at` a place, too.

        What `kept` names is not changed by any of that: a database of the agent.
        """
        recorded = self.type("record", "-o", "hour.tape", *self.options, "agent.py")
        before = [(self.folder / name).read_bytes() for name in kept]
        replayed = self.follow(recorded)
        assert "bit-exact · 0 sockets · $0" in replayed
        assert "To replay, restore" not in replayed
        agent = self.folder / "agent.py"
        written = agent.read_text()
        assert QUESTION in written
        agent.write_text(written.replace(QUESTION, QUESTION.replace("Where", "Pray, where")))
        card = self.type("replay", "hour.tape", "agent.py", exits=1)
        assert "agent.py was changed since this was recorded" in card
        assert "Traceback" not in card
        (rerun,) = re.findall(r"^  rerun +tracefork (.*)$", card, re.MULTILINE)
        asked = self.type(*shlex.split(rerun), "--yes", *self.writes)
        assert re.search(r"· \d+ reused · [1-9]\d* asked", asked), asked
        if IS_NIGHT:
            agent.write_text(written)
            forked = self.type("fork", "hour.tape", "--at", at, "--text", text, *self.writes)
            assert text in forked
            self.follow(forked)
            self._walk_on(card)
        assert [(self.folder / name).read_bytes() for name in kept] == before
        if IS_NIGHT:
            (keep,) = re.findall(r"^  keep +tracefork (.*)$", card, re.MULTILINE)
            self.type(*shlex.split(keep))

    def _walk_on(self, card: str) -> None:
        for words in (("show",), ("show", "--transcript"), ("tree",), ("verify",), ("scan",)):
            printed = self.type(words[0], "hour.tape", *words[1:])
            for command in _following(printed):
                self.type(*("0" if word == "N" else word for word in command))
        (see,) = re.findall(r"^  see +tracefork (.*)$", card, re.MULTILINE)
        self.type(*shlex.split(see))
        self.type("try", "hour.tape", "--at", "0", "--model", "gpt-5")
        packed = self.type("pack", "hour.tape")
        self.type("show", re.findall(r"packed (\S+)", packed)[0])
        blame = ("blame", "hour.tape", "--agent", "agent:main", "--oracle", "contains:delayed")
        blamed = self.type(*blame, "--budget", "200 calls", "--yes", *self.writes)
        assert "made the run fail" in blamed, blamed
        self.follow(blamed)


def _following(printed: str) -> Iterator[list[str]]:
    """Yield the words of the commands that an output offers next, without `tracefork`."""
    for line in re.findall(r"^ *next: (.*)$", printed, re.MULTILINE):
        for command in line.split(" · "):
            yield shlex.split(command)[1:]
