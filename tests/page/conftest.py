"""Reports of real runs, opened from disk in Debian's Chromium."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, sync_playwright

from tracefork_core import record
from tracefork_core.tape import Receipt, TapeWriter
from tracefork_core.tape.digest import sha256
from tracefork_core.tape.environment import describe
from tracefork_core.tape.event import EXCHANGE, ExchangeAside, ExchangePayload, RequestRecord
from tracefork_testkit import ProviderServer, Reply, ToolCall

CHROMIUM = os.environ.get("CHROMIUM", "chromium")
LONG = 300
"""Exchanges of a run that is longer than a screen."""
ROWS = 25_000
"""Exchanges of the longest run."""
HOSTILE = (
    "</script><script>window.owned = 1</script>",
    "<img src=x onerror='window.owned = 1'>",
    "javascript:window.owned = 1",
    "\x1b[31mred\x1b[0m \u202egnp.exe \u200bhidden",
    "${window.owned = 1} {{window.owned = 1}} <!-- ]]>",
    "soft\u00adhyphen vowel\u180e tags\U000e0041\U000e0042 \U0001f600",
)


def tracefork(folder: Path, *words: str, code: int = 0) -> str:
    """Run a command, which has to exit with `code`."""
    done = subprocess.run(
        [sys.executable, "-m", "tracefork_core", *words],
        cwd=folder,
        env={**os.environ, "TRACEFORK_HOME": str(folder / "home")},
        capture_output=True,
        text=True,
        check=False,
        stdin=subprocess.DEVNULL,
    )
    assert done.returncode == code, done.stderr
    return done.stdout


def opened(page: Page, report: Path, place: str = "") -> None:
    """Open a report at a place, and wait for its first rows."""
    page.goto(f"{report.as_uri()}{place}")
    page.wait_for_selector(".left :is(.row, .entry, .scroll)")


@pytest.fixture(scope="session")
def blamed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the report of a run that was blamed, with a branch."""
    folder = tmp_path_factory.mktemp("blamed")
    root = Path(__file__).parents[2]
    shutil.copytree(root / "examples/support", folder, dirs_exist_ok=True)
    provider = subprocess.Popen(
        [sys.executable, "provider.py"],
        cwd=folder,
        env={**os.environ, "PORT": "0"},
        stdout=subprocess.PIPE,
        text=True,
    )
    assert provider.stdout is not None
    try:
        url = provider.stdout.readline().split(";")[0].split()[-1]
        assert url.startswith("http://127.0.0.1:"), url
        os.environ |= {"OPENAI_BASE_URL": url, "OPENAI_API_KEY": "none"}
        tracefork(folder, "record", "-o", "ticket.tape", "agent.py")
        words = ("--agent", "agent:support", "--oracle", "regex:refund you", "--yes")
        tracefork(folder, "blame", "ticket.tape", *words, "--budget", "200 calls")
        tracefork(folder, "fork", "ticket.tape", "--at", "1", "--text", "Damage: 30 days.")
    finally:
        provider.kill()
        provider.communicate()
    tracefork(folder, "report", "ticket.tape")
    return folder / "ticket.html"


@pytest.fixture(scope="session")
def long(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the report of a long run in two lanes, with hostile texts in each field."""
    import httpx2

    folder = tmp_path_factory.mktemp("long")

    def model(request: object) -> Reply:
        del request
        return Reply(f"<b>{HOSTILE[0]}", tool_calls=[ToolCall("search", {"q": HOSTILE[1]})])

    tape = folder / "long.tape"
    with ProviderServer(model) as provider, httpx2.Client() as client, record(tape):
        messages: list[dict[str, object]] = [{"role": "system", "content": HOSTILE[2]}]
        for n in range(LONG):
            text = f"needle {n}" if n == LONG - 7 else f"question {n} {HOSTILE[n % len(HOSTILE)]}"
            messages = [*messages[-20:], {"role": "user", "content": text}]
            asked = {"model": HOSTILE[n % len(HOSTILE)], "messages": messages}
            headers = {"x-note": "<script>window.owned = 1</script>"}
            client.post(f"{provider.url}/v1/chat/completions", json=asked, headers=headers)
        client.get(f"{provider.url}/nowhere?<script>=1")
    tracefork(folder, "report", "long.tape")
    return folder / "long.html"


@pytest.fixture(scope="session")
def rows(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the report of a run of 25,000 exchanges."""
    folder = tmp_path_factory.mktemp("rows")
    writer = TapeWriter(folder / "rows.tape", describe())
    for n in range(ROWS):
        word = "needle" if n == ROWS - 3 else "orders"
        request = RequestRecord("GET", f"http://shop.example/{word}/{n}", [], sha256(b""))
        took = 10**9 if n == 12_000 else 10**6
        aside = ExchangeAside(
            lane="main", seam="test", started=n * 10**6, took=took, end="cancelled"
        )
        writer.note(EXCHANGE, payload=ExchangePayload(n, request), aside=aside)
    writer.close(Receipt(digest="", exchanges=0))
    tracefork(folder, "report", "rows.tape")
    return folder / "rows.html"


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        opened = playwright.chromium.launch(
            executable_path=shutil.which(CHROMIUM),
            args=["--no-sandbox", "--disable-gpu", "--disable-quic"],
        )
        yield opened
        opened.close()


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    """Return a page that must log no error and ask for nothing."""
    context = browser.new_context(viewport={"width": 1280, "height": 800})
    opened = context.new_page()
    said: list[str] = []
    opened.on("console", lambda message: said.append(f"{message.type}: {message.text}"))
    opened.on("pageerror", lambda error: said.append(f"error: {error}"))
    opened.on("dialog", lambda dialog: said.append(f"dialog: {dialog.message}"))
    opened.on(
        "request",
        lambda request: (
            said.append(f"request: {request.url}")
            if not request.url.startswith(("file:", "blob:"))
            else None
        ),
    )
    yield opened
    assert said == []
    context.close()
