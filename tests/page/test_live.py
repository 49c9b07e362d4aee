"""`tracefork view` in Debian's Chromium: the list, a run that grows, and commands."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from tracefork_testkit import ProviderServer

from .conftest import HOSTILE, tracefork
from .test_accessibility import faults

PATIENCE = 30_000
"""Milliseconds that a command may take on a busy machine."""
WAITING = """\
import os, time
import httpx2

for n in range(4):
    while not os.path.exists(f"go-{n}"):
        time.sleep(0.01)
    httpx2.post(os.environ["PROVIDER"] + "/echo", content=f"word {n}".encode())
"""
WRITING = """\
import os
import httpx2
import tracefork_core as tracefork

@tracefork.tool(effect="write")
def refund(order: int) -> str:
    open("refunds.log", "a").write("refunded\\n")
    return "done"

httpx2.post(os.environ["PROVIDER"] + "/echo", content=b"first")
refund(17)
"""


class Viewed:
    """A folder with a server that shows it."""

    def __init__(self, folder: Path, provider: str, *words: str) -> None:
        self.folder = folder
        self.environment = {
            **os.environ,
            "PROVIDER": provider,
            "TRACEFORK_HOME": str(folder / "home"),
        }
        self.process = self.start("view", *words, "--json")
        assert self.process.stdout is not None
        told = ""
        while not told.endswith("}\n"):
            told += self.process.stdout.readline()
        self.address = json.loads(told)["address"]
        self.url = self.address.partition("/?")[0]

    def start(self, *words: str) -> subprocess.Popen[str]:
        """Start a command in the folder."""
        return subprocess.Popen(
            [sys.executable, "-m", "tracefork_core", *words],
            cwd=self.folder,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            text=True,
        )

    def stop(self) -> None:
        """End the server."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            self.process.communicate()


@pytest.fixture(scope="module")
def provider() -> Iterator[ProviderServer]:
    with ProviderServer() as server:
        yield server


@pytest.fixture
def viewed(
    tmp_path: Path, provider: ProviderServer, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Viewed]:
    """Return an empty folder that is shown, and in which agents may be run."""
    monkeypatch.setenv("PROVIDER", provider.url)
    (tmp_path / "waiting.py").write_text(WAITING)
    (tmp_path / "writing.py").write_text(WRITING)
    found = Viewed(tmp_path, provider.url, "--allow-run")
    yield found
    found.stop()


@pytest.fixture
def live(browser: Browser) -> Iterator[Page]:
    """Return a page that must log no error, and ask nobody but its own server."""
    context = browser.new_context(viewport={"width": 1280, "height": 800}, color_scheme="dark")
    page = context.new_page()
    said: list[str] = []
    asked: list[str] = []
    page.on("console", lambda message: said.append(f"{message.type}: {message.text}"))
    page.on("pageerror", lambda error: said.append(f"error: {error}"))
    page.on("request", lambda request: asked.append(request.url))
    yield page
    assert said == []
    assert asked
    assert all(url.startswith(("http://127.0.0.1:", "blob:http://127.0.0.1:")) for url in asked)
    context.close()


def test_rows_come_in_while_the_agent_runs(live: Page, viewed: Viewed) -> None:
    """From the list into the run: each request of the agent appears before it makes the next."""
    live.goto(viewed.address)
    assert "token" not in live.url
    expect(live.locator(".foot")).to_contain_text("There is no tape in this folder yet")
    recorder = viewed.start("record", "waiting.py")
    live.click("text=waiting.tape")
    for n in range(4):
        (viewed.folder / f"go-{n}").touch()
        expect(live.locator(".row")).to_have_count(n + 1)
        if n < 3:
            expect(live.locator(".live")).to_contain_text("recording")
    expect(live.locator(".top")).to_contain_text("The run ended well")
    recorder.communicate(timeout=30)
    assert recorder.returncode == 0
    live.keyboard.press("j")
    live.keyboard.press("j")
    expect(live.locator(".exchange h2")).to_have_text("exchange 2")
    live.click("text=request and response")
    expect(live.locator(".exchange pre").first).to_have_text("word 2")
    live.fill("input[type=search]", "word 3")
    expect(live.locator(".row")).to_have_count(1)
    assert "#step=2" in live.url
    live.reload()
    expect(live.locator(".exchange h2")).to_have_text("exchange 2")


def test_a_command_is_shown_confirmed_and_run(live: Page, viewed: Viewed) -> None:
    """The tool that writes runs again if that was chosen, and not before. The branch appears."""
    tracefork(viewed.folder, "record", "writing.py")
    live.goto(viewed.address.replace("/?", "/run?tape=writing.tape&"))
    live.click("text=fork at 0")
    dialog = live.locator("dialog.confirm")
    expect(dialog).to_contain_text("tracefork fork writing.tape --at=0")
    expect(dialog).to_contain_text("the run stops before such a call")
    dialog.locator("select").last.select_option("allow")
    expect(dialog).to_contain_text("IS MADE AGAIN")
    refunds = viewed.folder / "refunds.log"
    assert len(refunds.read_text().splitlines()) == 1
    dialog.locator("text=run it").click()
    expect(live.locator(".job")).to_contain_text("ended with exit code 0", timeout=PATIENCE)
    assert len(refunds.read_text().splitlines()) == 2
    expect(live.locator(".top select option")).to_have_count(2)
    live.locator(".job >> text=close").click()
    expect(live.locator(".job")).to_have_count(0)


def test_two_runs_are_compared(live: Page, viewed: Viewed) -> None:
    """Chosen on the page of one of them."""
    tracefork(viewed.folder, "record", "-o", "one.tape", "writing.py")
    (viewed.folder / "writing.py").write_text(WRITING.replace("first", "other"))
    tracefork(viewed.folder, "record", "-o", "two.tape", "writing.py")
    live.goto(viewed.address.replace("/?", "/run?tape=one.tape&"))
    live.get_by_label("compare with").select_option("two.tape")
    expect(live.locator(".strip").last).to_contain_text("0 DIFFERS")
    expect(live.locator(".strip").last).to_contain_text("1 SAME")
    live.locator(".strip summary").first.click()
    expect(live.locator(".strip del, .strip ins").first).to_be_visible()


def test_hostile_names_and_tapes_run_nothing(live: Page, viewed: Viewed) -> None:
    """A name of a file is text, like all that a tape holds."""
    tracefork(viewed.folder, "record", "-o", "fine.tape", "writing.py")
    data = (viewed.folder / "fine.tape").read_bytes()
    names = [f"{text.replace('/', '-')}.tape" for text in HOSTILE[:5]]
    for name in names:
        (viewed.folder / name).write_bytes(data)
    (viewed.folder / "<b>broken.tape").write_bytes(data[:-700] + bytes(700))
    live.goto(viewed.address)
    expect(live.locator(".row")).to_have_count(len(names) + 2)
    expect(live.locator("main")).to_contain_text("⟦U+202E⟧")
    assert live.evaluate("window.owned") is None
    live.fill("#find", "</script".replace("/", "-"))
    expect(live.locator(".row")).to_have_count(1)
    live.click(".row .label")
    expect(live.locator(".row")).to_have_count(2)
    assert live.evaluate("window.owned") is None


def test_a_server_that_has_ended_is_said(browser: Browser, viewed: Viewed) -> None:
    """The page keeps what it has."""
    tracefork(viewed.folder, "record", "writing.py")
    page = browser.new_page()
    page.goto(viewed.address)
    page.click("text=writing.tape")
    expect(page.locator(".row")).to_have_count(2)
    viewed.stop()
    expect(page.locator(".live")).to_contain_text("the server does not answer; trying again")
    expect(page.locator(".row")).to_have_count(2)
    page.close()


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_axe_finds_nothing_in_the_live_pages(browser: Browser, viewed: Viewed, theme: str) -> None:
    """The list, a run, and what is asked before a command."""
    tracefork(viewed.folder, "record", "writing.py")
    context = browser.new_context(
        viewport={"width": 1280, "height": 800},
        color_scheme="dark" if theme == "dark" else "light",
        bypass_csp=True,
    )
    page = context.new_page()
    page.goto(viewed.address)
    expect(page.locator(".row")).to_have_count(1)
    assert faults(page) == []
    page.click("text=writing.tape")
    expect(page.locator(".row")).to_have_count(2)
    assert faults(page) == []
    page.click("text=fork at 0")
    expect(page.locator("dialog.confirm")).to_contain_text("no limit")
    assert faults(page) == []
    context.close()
