"""How a report looks: beside kept screenshots, in the dark, and on paper.

`TRACEFORK_SCREENSHOTS=write` writes the screenshots again; look at them before you commit.
"""

from __future__ import annotations

import base64
import os
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from .conftest import ROWS, opened

KEPT = Path(__file__).parent / "screenshots"
WRITES = os.environ.get("TRACEFORK_SCREENSHOTS") == "write"
TOLERANCE = 0.01
"""The share of the cells of a screenshot that may differ."""
BRANCHES = "#run=1&step=2&view=branches&part=diff"
SCREENS = {
    "timeline-light": ("", 1024),
    "timeline-dark": ("", 1024),
    "branches-light": (BRANCHES, 1024),
    "phone-dark": (BRANCHES, 420),
}
# Two pictures, drawn small: so the rendering of a letter does not matter, but a colour does, and a
# line of text that is elsewhere.
COMPARED = """async pictures => {
    const [one, other] = await Promise.all(pictures.map(async picture => {
        const image = new Image();
        image.src = `data:image/png;base64,${picture}`;
        await image.decode();
        const canvas = new OffscreenCanvas(image.width / 8, image.height / 8);
        const drawing = canvas.getContext("2d");
        drawing.imageSmoothingQuality = "high";
        drawing.drawImage(image, 0, 0, canvas.width, canvas.height);
        return drawing.getImageData(0, 0, canvas.width, canvas.height);
    }));
    if (one.width !== other.width || one.height !== other.height) return 1;
    let differ = 0;
    for (let at = 0; at < one.data.length; at += 4)
        if ([0, 1, 2].some(i => Math.abs(one.data[at + i] - other.data[at + i]) > 24)) differ++;
    return differ / (one.width * one.height);
}"""
# Times, ports, versions and digests differ from run to run.
CALM = """for (const one of document.querySelectorAll(
    ".figures, .top .quiet, .blame small, .blame .quiet, .facts dd, .pane pre, .pane code"))
    one.style.visibility = 'hidden'"""


def differing(browser: Browser, *pictures: bytes) -> float:
    """Return the share of cells that differ between two pictures."""
    page = browser.new_page()
    share = page.evaluate(COMPARED, [base64.b64encode(one).decode() for one in pictures])
    page.close()
    return float(share)


def screen(page: Page, report: Path, name: str) -> bytes:
    place, width = SCREENS[name]
    page.emulate_media(color_scheme="dark" if name.endswith("dark") else "light")
    page.set_viewport_size({"width": width, "height": 700})
    opened(page, report, place)
    expect(page.locator(".exchange .pane")).to_contain_text("days.")
    page.evaluate(CALM)
    picture: bytes = page.screenshot(animations="disabled")
    return picture


@pytest.mark.parametrize("name", SCREENS)
def test_a_screen_looks_as_it_did(page: Page, browser: Browser, blamed: Path, name: str) -> None:
    """Layout and colours, in both themes and on a phone."""
    picture = screen(page, blamed, name)
    kept = KEPT / f"{name}.png"
    if WRITES:
        kept.parent.mkdir(exist_ok=True)
        kept.write_bytes(picture)
    assert differing(browser, kept.read_bytes(), picture) <= TOLERANCE


def test_a_screen_that_looks_different_is_noticed(
    page: Page, browser: Browser, blamed: Path
) -> None:
    """The control: the other theme, and a panel that is not there."""
    picture = screen(page, blamed, "timeline-light")
    dark = (KEPT / "timeline-dark.png").read_bytes()
    assert differing(browser, dark, picture) > TOLERANCE
    page.evaluate("document.querySelector('.blame').remove()")
    light = (KEPT / "timeline-light.png").read_bytes()
    assert differing(browser, light, page.screenshot()) > TOLERANCE


def test_the_screenshots_are_small() -> None:
    """A clone has all of them, for ever."""
    assert sum(one.stat().st_size for one in KEPT.glob("*.png")) <= 400_000


def printed(page: Page) -> tuple[int, str]:
    """Print a page, and return how many rows and which text stood on it then."""
    page.evaluate(
        """addEventListener("beforeprint", () => {
            const left = document.querySelector(".left");
            window.printed = [left.querySelectorAll(".row, .entry").length, left.innerText];
        })"""
    )
    assert page.pdf().startswith(b"%PDF")
    count, text = page.evaluate("window.printed")
    return count, text


def test_a_timeline_is_printed_whole(page: Page, long: Path) -> None:
    """On the screen, the list is a window again."""
    opened(page, long, "#step=0")
    count, text = printed(page)
    assert count == 301
    assert "rows printed" not in text
    expect(page.locator(".row").nth(100)).to_have_count(0)


def test_a_conversation_is_printed_with_its_messages(page: Page, long: Path) -> None:
    """Those that no row has shown yet, too: 300 questions, and the answer once."""
    opened(page, long, "#step=0&view=conversation")
    expect(page.locator(".left .entry").first).to_contain_text("javascript:window.owned")
    texts = (printed(page)[1] for _ in range(20))
    text = next(text for text in texts if "not unpacked" not in text)
    assert "question 150" in text
    assert "question 299" in text


def test_what_is_not_printed_is_counted(page: Page, rows: Path) -> None:
    """Paper has an end."""
    opened(page, rows, "#step=0")
    count, text = printed(page)
    assert count == 2_000
    assert f"first 2,000 of {ROWS:,} rows printed" in text


def test_rows_on_paper_follow_each_other(page: Page, long: Path) -> None:
    """They lie in no scrolled box, and nothing but the run is printed."""
    opened(page, long, "#step=0")
    page.emulate_media(media="print")
    boxes = [page.locator(".row").nth(i).bounding_box() for i in range(3)]
    assert None not in boxes
    tops = [box["y"] for box in boxes if box]
    assert tops == sorted(set(tops))
    expect(page.locator("nav")).to_be_hidden()
    assert page.locator(".list").first.evaluate("list => getComputedStyle(list).overflow") == (
        "visible"
    )
