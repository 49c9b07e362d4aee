"""The terminal view of a stranger's tape, of a corrupt one, and of one that is being recorded."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tracefork_core import Tape
from tracefork_core.cli.tui.first_frame import painted
from tracefork_core.errors import TraceforkError
from tracefork_testkit import ModelRequest, ProviderServer, Reply

from ..conftest import Alter
from .conftest import Shell
from .terminal_view import Viewed, viewed
from .test_terminal import EVIL, hostile, is_plain
from .test_tui_terminal import terminal

AGENT = f"""\
import os
import openai

client = openai.OpenAI(base_url=os.environ["PROVIDER"] + "/v1", api_key="sk-none")
said = [{{"role": "user", "content": {EVIL!r}}}]
for n in range(3):
    answer = client.chat.completions.create(model="gpt-5-mini", messages=said)
    said.append({{"role": "assistant", "content": answer.choices[0].message.content}})
    said.append({{"role": "user", "content": {EVIL!r} + str(n)}})
"""
COLOUR = re.compile(rb"\x1b\[(?:\d+;)*(?:3[0-8]|4[0-8]|9\d|10\d)(?:;\d+)*m")
PAGES = "cdewbh?"


@pytest.fixture
def evil(shell: Shell, alter: Alter) -> Shell:
    """Record answers that hold escapes, and put escapes into every other text of the tape."""

    def change(line: bytes) -> bytes:
        event = json.loads(line)
        if event["kind"] == "blob":
            return line
        parts = {part: hostile(event[part]) for part in ("payload", "aside")}
        # Else the answer would not be read as one of a model.
        if (request := parts["payload"].get("request")) is not None:
            told = event["payload"]["request"]
            request |= {"method": told["method"], "headers": told["headers"], "url": told["url"]}
            parts["payload"]["response"]["headers"] = event["payload"]["response"]["headers"]
            parts["aside"].pop("url", None)
        return json.dumps({"kind": event["kind"], **parts}).encode() + b"\n"

    shell.write("evil.py", AGENT)
    with ProviderServer(lambda request: Reply(f"Yes {EVIL}")) as server:
        assert shell.tracefork("record", "evil.py", PROVIDER=server.url).exit == 0
    alter(shell.folder / "evil.tape", events=change)
    return shell


def is_safe(view: Viewed) -> bool:
    return all(is_plain(line) for line in view.lines)


async def test_no_page_shows_an_escape(evil: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    """They are spelled out, and what looks like markup is text."""
    monkeypatch.chdir(evil.folder)
    async with viewed(evil.folder / "evil.tape") as view:
        await view.press("j")
        text = await view.until(r"\x1b]0;owned")
        assert "[bold red]x[/]" in text
        for key in PAGES:
            await view.press(key)
            await view.rest()
            assert is_safe(view), f"{key}:\n{view.text}"
            if key == "c":
                assert r"+ user        \x1b]0;owned" in view.text
        await view.press(f"/{EVIL[-6:]}\n")
        await view.until("exchanges with")
        assert is_safe(view)


def test_no_escape_reaches_the_terminal(evil: Shell) -> None:
    """Neither in the first frame, which Textual does not draw, nor later. The tape holds them."""
    with Tape.open(evil.folder / "evil.tape") as tape:
        assert EVIL in tape.exchanges[0].reason
    with terminal(evil, "tui", "evil.tape") as shown:
        shown.until(lambda text: "q quit" in text)
        shown.type("jwbe")
        shown.until(lambda text: "in full" in text and "POST" in text)
        shown.type("q")
        assert shown.end() == 0
    for escape in ("\x1b]0;owned", "\x9b2J", "\u202e", "\u200b"):
        assert escape.encode() not in shown.written
    assert rb"\x1b]0;owned" in shown.written
    assert all(map(is_plain, painted(evil.folder / "evil.tape", "evil.tape", 80, 24)))


def test_without_colour_words_say_the_same(taped: Shell) -> None:
    """The selected row has its mark, an error its word. The control has colours."""
    written = []
    for environment in ({"NO_COLOR": "1"}, {}):
        with terminal(taped, "tui", "failing.tape", **environment) as shown:
            shown.until(lambda text: "ended with KeyError" in text and "q quit" in text)
            shown.type("jd")
            shown.until(lambda text: "[-one-]{+two+}" in text)
            written.append(shown.written)
    plain, coloured = written
    assert not COLOUR.search(plain)
    assert COLOUR.search(coloured)


async def test_a_corrupt_body_is_an_error_in_its_row(shell: Shell, alter: Alter) -> None:
    """The other rows are as usual."""
    shell.write("agent.py", AGENT)
    with ProviderServer(lambda request: Reply("a fine answer")) as server:
        assert shell.tracefork("record", "agent.py", PROVIDER=server.url).exit == 0
    tape = shell.folder / "agent.tape"
    alter(tape, bodies=lambda data: data.replace(b"a fine answer", b"another words"))
    async with viewed(tape) as view:
        text = await view.until("error")
        assert "corrupt" in text
        assert is_safe(view)
        await view.press("jde/words\n")
        await view.until("exchange")


async def test_a_run_that_is_being_recorded_is_read_again(shell: Shell) -> None:
    """`r` shows what came since, and the place stays."""
    code = AGENT.replace("range(3)", "range(4)")
    shell.write(
        "slow.py",
        code.replace("for n", "import sys\nfor n").replace(
            "    said.append", "    sys.stdin.readline()\n    said.append", 1
        ),
    )
    asked = 0

    def reply(request: ModelRequest) -> Reply:
        nonlocal asked
        asked += 1
        return Reply(f"answer {asked}")

    words = [sys.executable, "-m", "tracefork_core.cli.main", "record", "slow.py"]
    with ProviderServer(reply) as server:
        running = subprocess.Popen(
            words,
            cwd=shell.folder,
            env=shell.full_environment(PROVIDER=server.url),
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        try:
            await looked_at(running, shell.folder / "slow.tape")
        finally:
            running.kill()
            running.communicate()


async def looked_at(running: subprocess.Popen[bytes], tape: Path) -> None:
    """Open a tape while it is recorded, and read it again after each exchange."""
    assert running.stdin is not None
    wait_for(tape, "answer 1")
    async with viewed(tape) as view:
        await view.until("1 exchange · not closed: r reads on")
        for n in (2, 3):
            running.stdin.write(b"\n")
            running.stdin.flush()
            wait_for(tape, f"answer {n}")
            await view.press("r")
            await view.until(f" · {n} exchanges · not closed")
            await view.press("G")
        assert view.selected.split()[1] == "2"
        running.stdin.write(b"\n\n\n")
        running.stdin.flush()
        running.wait()
        await view.press("r")
        await view.until(" · 4 exchanges · ")
        assert view.selected.split()[1] == "2"


def wait_for(tape: Path, words: str) -> None:
    """Wait until an answer has landed on a tape."""
    while not tape.exists() or not has(tape, words):
        time.sleep(0.01)


def has(tape: Path, words: str) -> bool:
    """Return whether an answer has landed on a tape."""
    try:
        with Tape.open(tape) as opened:
            ended = [one for one in opened.exchanges if one.end == "eof"]
            return any(words.encode() in one.response_body for one in ended)
    except TraceforkError:  # Its file is being laid out.
        return False
