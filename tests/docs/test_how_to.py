"""What the guides show works: their files are written and their commands run."""

from __future__ import annotations

import asyncio
import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tracefork_testkit import ModelRequest, ProviderServer, Reply

GUIDES = Path(__file__).parents[2] / "docs" / "how-to"
CALIBRATE, RACE = GUIDES / "find-what-does-not-repeat.md", GUIDES / "hunt-a-race.md"
TOOL = GUIDES / "record-a-tool.md"
FORK, BLAME = GUIDES / "fork-a-run.md", GUIDES / "blame-a-run.md"
_FENCE = re.compile(r"^```(\w+)(?: title=(\S+))?\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_OF_ONE_RUN = re.compile(r"·.*live.*|.*  then  .*|\s*─+$", re.MULTILINE)
"""Lines that hold figures and addresses of one run."""
_FIGURES = re.compile(
    r"\d+ of \d+ orders|\d+ orders?|\d+ runs|\d+\.\d+ s|exchange [0-2]|--order [0-2],[0-2]"
)
"""What depends on how many orders were tried, on the machine, and on who was quicker to ask."""
_COUNTS = re.compile(r"[█▓▒·]{3,}|[0-9a-f]{4}…[0-9a-f]{4}|(?<!exchange)\d[\d.]*k?")
"""Bars, digests and all figures but the numbers of exchanges."""
ANSWERS = {"price": ("9 euros", 0.02), "stock": ("plenty", 0.1), "delivery": ("tomorrow", 0.2)}


@pytest.fixture(autouse=True)
def _in_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRACEFORK_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    monkeypatch.chdir(tmp_path)


def test_calibration_finds_what_the_guide_says(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each command says what the page shows, word by word, and ends as the page says."""
    with ProviderServer() as server:
        monkeypatch.setenv("OPENAI_BASE_URL", f"{server.url}/v1")
        assert ends_of(CALIBRATE, words) == [1, 0, 0, 0, 0, 0]
        run_example(CALIBRATE)


def test_a_race_is_found_as_the_guide_says(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each command prints what the page shows, line by line; with fewer orders, to be quicker."""
    with ProviderServer(Shop().answer) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", f"{server.url}/v1")
        assert ends_of(RACE, lines) == [0, 1, 1, 0, 0, 0]


def test_a_tool_is_recorded_as_the_guide_says() -> None:
    """Each command prints what the page shows, word by word: the database is gone at replay."""
    assert ends_of(TOOL, words) == [0, 0, 0, 0, 0, 0, 1]


def test_a_run_is_forked_as_the_guide_says(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each command prints what the page shows but for figures, and the example in Python runs."""
    with ProviderServer(Desk()) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", f"{server.url}/v1")
        assert ends_of(FORK, flow) == [0] * 7
        run_example(FORK)


def test_a_run_is_blamed_as_the_guide_says(monkeypatch: pytest.MonkeyPatch) -> None:
    """The step that the page names is named, in its words, and the example in Python agrees."""
    with ProviderServer(Desk()) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", f"{server.url}/v1")
        assert ends_of(BLAME, flow) == [0] * 4
        assert json.loads(Path("report.json").read_text())["verdict"]["units"] == [1]
        run_example(BLAME)


class Desk:
    """A model that names the wrong rule at first, and then each twentieth time."""

    def __init__(self) -> None:
        self._ruled = 0

    def __call__(self, request: ModelRequest) -> Reply:
        asked = request.last_user_text
        if asked.startswith("What is this ticket about"):
            return Reply("damage")
        if asked.startswith("Which rule"):
            self._ruled += 1
            return Reply("Returns: 14 days." if self._ruled % 20 == 1 else "Damage: 30 days.")
        if asked.startswith("Refund or refuse?"):
            return Reply("refuse" if "14 days" in asked else "refund")
        too_late = "refuse" in asked
        return Reply("We are sorry, it is too late." if too_late else "We refund you in full.")


class Shop:
    """Answers three questions once all three are asked, however long that took."""

    def __init__(self) -> None:
        self._asked: list[asyncio.Event] = []

    async def answer(self, request: ModelRequest) -> Reply:
        if request.last_user_text not in ANSWERS:
            return Reply("9 euros, in stock.")
        text, delay = ANSWERS[request.last_user_text]
        self._asked.append(asyncio.Event())
        mine = self._asked[-1]
        if len(self._asked) == len(ANSWERS):
            for asked in self._asked:
                asked.set()
            self._asked = []
        await mine.wait()
        return Reply(text, delay=delay)


def ends_of(page: Path, parts: Callable[[str], list[object]]) -> list[int]:
    """Run the commands of a page, see that each prints what is shown, and return how they end."""
    blocks = _FENCE.findall(page.read_text())
    (agent,) = (text for _, title, text in blocks if title == "agent.py")
    Path("agent.py").write_text(agent)
    ends = []
    for step in "".join(text for kind, _, text in blocks if kind == "console").split("$ ")[1:]:
        command, _, expected = step.partition("\n")
        command = command.replace("tracefork ", f"{sys.executable} -m tracefork_core.cli.main ", 1)
        command = command.replace("race shop", "race --seeds 2 shop")
        done = subprocess.run(
            command,
            shell=True,
            env=os.environ,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
        told = parts(done.stderr + done.stdout)
        assert [part for part in parts(expected) if part not in told] == [], told
        ends.append(done.returncode)
    return ends


def run_example(page: Path) -> None:
    """Run the example in Python that has no file of its own."""
    (example,) = (
        text
        for kind, title, text in _FENCE.findall(page.read_text())
        if (kind, title) == ("python", "")
    )
    Path("example.py").write_text(example)
    subprocess.run([sys.executable, "example.py"], check=True)


class Flow(list[object]):
    """Lines that break where the screen ends: one is there if its words are, in their order."""

    def __contains__(self, line: object) -> bool:
        return _counted(str(line)) in _counted("".join(map(str, self)))


def flow(text: str) -> list[object]:
    """Return the lines, to be looked up without figures and wherever they break."""
    return Flow(text.splitlines())


def _counted(text: str) -> str:
    return _COUNTS.sub("N", "".join(text.split()))


def words(text: str) -> list[object]:
    """Return the words of each line that is the same in every run."""
    return [line.split() for line in _OF_ONE_RUN.sub("", text).splitlines() if line.strip()]


def lines(text: str) -> list[object]:
    """Return the lines without their figures."""
    return list(_FIGURES.sub("N", text).splitlines())
