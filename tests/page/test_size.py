"""Long runs: few elements exist, and what is folded is counted."""

from __future__ import annotations

import base64
import re
import zlib
from pathlib import Path

import httpx2
import pytest
from playwright.sync_api import Page, expect

from tracefork_core import record
from tracefork_testkit import ProviderServer, Reply

from .conftest import ROWS, opened, tracefork

SAID = 3_000
"""Messages that the first request sends."""
FILLER = "the same words of two texts that only differ at their ends, again and again " * 20
HUGE = 40_000
"""Words of two texts that have none in common."""


@pytest.fixture(scope="session")
def talk(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the report of a few requests with a history of thousands of messages."""
    folder = tmp_path_factory.mktemp("talk")
    tape = folder / "talk.tape"
    whole = [
        {"role": ("user", "assistant")[n % 2], "content": f"turn {n} of a long talk"}
        for n in range(SAID)
    ]
    asked = [
        whole,
        [*whole, {"role": "user", "content": "and now?"}],
        [{"role": "user", "content": f"first {FILLER} one"}],
        [{"role": "user", "content": f"first {FILLER} two"}],
        [{"role": "user", "content": " ".join(f"a{n}" for n in range(HUGE))}],
        [{"role": "user", "content": " ".join(f"b{n}" for n in range(HUGE))}],
        [{"role": "user", "content": "\n".join(f"a{n}" for n in range(HUGE))}],
        [{"role": "user", "content": "\n".join(f"b{n}" for n in range(HUGE))}],
    ]
    with (
        ProviderServer(lambda _: Reply("yes")) as provider,
        httpx2.Client() as client,
        record(tape),
    ):
        for messages in asked:
            body = {"model": "m", "messages": messages}
            client.post(f"{provider.url}/v1/chat/completions", json=body)
    tracefork(folder, "report", "talk.tape")
    return folder / "talk.html"


def elements(page: Page) -> int:
    return int(page.evaluate("document.querySelectorAll('*').length"))


def test_twenty_five_thousand_rows_are_few_elements(page: Page, rows: Path) -> None:
    """From one end to the other; the hit of a search is a row."""
    opened(page, rows, "#step=0")
    assert page.locator(".row").count() <= 60
    page.keyboard.press(":")
    page.keyboard.type(str(ROWS - 1))
    page.keyboard.press("Enter")
    expect(page.locator(f"#row{ROWS - 1}")).to_be_visible()
    assert page.locator(".row").count() <= 60
    page.keyboard.press("/")
    page.keyboard.type("needle")
    expect(page.locator(".row")).to_have_count(1)
    expect(page.locator(".row")).to_contain_text(f"needle/{ROWS - 3}")
    expect(page.locator("nav [role=status]")).to_have_text("1 hit")
    expect(page.locator(".left")).to_contain_text("24,999 exchanges not shown: filtered")


@pytest.mark.parametrize("view", ["lanes", "flame", "branches"])
def test_a_view_of_a_long_run_is_few_elements(page: Page, rows: Path, view: str) -> None:
    """What is not drawn is counted."""
    opened(page, rows, f"#step=12000&view={view}")
    expect(page.locator(".left")).to_contain_text("12000")
    assert elements(page) <= 2_000


def test_a_conversation_of_thousands_of_messages_is_few_elements(page: Page, talk: Path) -> None:
    """One exchange has them all. The selected exchange is in sight."""
    opened(page, talk, "#step=0&view=conversation")
    expect(page.locator(".left .entry").first).to_contain_text(f"{SAID + 1:,} new messages")
    expect(page.locator(".left .entry").first).to_contain_text("turn 0 of a long talk")
    expect(page.locator(".exchange .entry").first).to_contain_text("turn 0 of a long talk")
    assert elements(page) <= 1_000
    opened(page, talk, "#step=1&view=conversation&part=history")
    expect(page.locator(".left")).to_contain_text("and now?")
    expect(page.locator(".exchange")).to_contain_text("and now?")
    expect(page.locator(".exchange .more")).to_have_text(f"hide {SAID:,} earlier messages")
    page.locator(".exchange .list").evaluate("list => list.scrollTo(0, 0)")
    expect(page.locator(".exchange")).to_contain_text("turn 0 of a long talk")
    assert elements(page) <= 1_000


def test_a_difference_counts_equal_messages(page: Page, talk: Path) -> None:
    """They are not compared."""
    opened(page, talk, "#step=1&part=diff&with=0")
    pane = page.locator(".exchange .pane")
    expect(pane).to_contain_text(f"{SAID:,} earlier messages equal in both")
    expect(pane.locator(".said ins")).to_have_text("user: and now?")


def test_a_difference_folds_equal_text(page: Page, talk: Path) -> None:
    """It says how much, and shows it when asked."""
    opened(page, talk, "#step=3&part=diff&with=2")
    pane = page.locator(".exchange .pane")
    expect(pane.locator(".said del")).to_have_text("one")
    expect(pane.locator(".said ins")).to_have_text("two")
    assert len(pane.locator(".said").first.inner_text()) < 500
    more = pane.get_by_role("button", name="equal characters")
    count = int(re.sub(r"\D", "", more.inner_text()))
    assert count == len(f"user: first {FILLER} ") - 320
    more.click()
    assert len(pane.locator(".said").first.inner_text()) > count


@pytest.mark.parametrize(
    ("step", "words"), [(5, "compared by lines"), (7, "too large to compare: both are shown")]
)
def test_a_difference_has_a_limit(page: Page, talk: Path, step: int, words: str) -> None:
    """What has many words is compared by lines, what has many lines not at all. It says so."""
    opened(page, talk, f"#step={step}&part=diff&with={step - 1}")
    pane = page.locator(".exchange .pane")
    expect(pane).to_contain_text(words, timeout=10_000)
    expect(pane.locator("del.said, .said del").first).to_contain_text(re.compile(r"a0\sa1"))
    expect(pane.locator("ins.said, .said ins").first).to_contain_text(re.compile(r"b0\sb1"))


def test_a_search_says_which_parts_it_could_not_read(
    page: Page, long: Path, tmp_path: Path
) -> None:
    """The other parts are searched."""
    torn = tmp_path / "torn.html"
    text = long.read_text()
    block = re.search(r'octet-stream" id="p0">([^<]*)<', text)
    assert block is not None
    assert b"exchanges" in zlib.decompress(base64.b64decode(block[1]), -zlib.MAX_WBITS)
    torn.write_text(text.replace(block[1], base64.b64encode(b"\xffnothing").decode()))
    opened(page, torn, "#step=290")
    page.keyboard.press("/")
    page.keyboard.type("question")
    problem = page.locator(".problem.foot")
    expect(problem).to_contain_text("1 of 3 parts could not be searched: the part from exchange 0")
    expect(page.locator("nav [role=status]")).to_contain_text("hits")
