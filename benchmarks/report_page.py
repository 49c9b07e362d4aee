"""Open the report of a run in Chromium, and measure how soon it can be used."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

_ARGUMENTS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--disable-background-networking",
)
_PATIENCE = 120_000
_SHOWN = "performance.now()"


@contextmanager
def chromium() -> Iterator[Browser | None]:
    """Yield Debian's Chromium; None where it or playwright is not installed."""
    path = shutil.which("chromium")
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        path = None
    if path is None:
        yield None
        return
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=_ARGUMENTS)
        yield browser
        browser.close()


def open_ours(browser: Browser, report: Path, last: int, needle: str) -> dict[str, float]:
    """Open a report; return seconds from the start of the navigation, MB, and rows.

    Args:
        browser: where to open it.
        report: its file.
        last: the last exchange; the page opens there, so that the timeline has to be scrolled.
        needle: a text that one exchange of the run holds.
    """
    with _page(browser) as page:
        page.goto(f"{report.as_uri()}#step={last}", wait_until="commit")
        page.wait_for_selector(".row", timeout=_PATIENCE)
        first = page.evaluate(_SHOWN)
        page.keyboard.press("k")
        heading = page.get_by_role("heading", name=f"exchange {last - 1}", exact=True)
        heading.wait_for(timeout=_PATIENCE)
        page.locator(".exchange .message").first.wait_for(timeout=_PATIENCE)
        usable = page.evaluate(_SHOWN)
        rows = page.locator(".row").count()
        page.keyboard.press("/")
        page.keyboard.insert_text(needle)
        began = page.evaluate(_SHOWN)
        found = page.locator("[role=status]").filter(has_text=re.compile(r"^[1-9].* hit"))
        found.wait_for(timeout=_PATIENCE)
        hit = page.evaluate(_SHOWN) - began
        return {
            "first row": first / 1000,
            "interactive": usable / 1000,
            "first hit": hit / 1000,
            "rows": rows,
            "heap": _heap(page),
        }


def open_other(browser: Browser, report: Path) -> dict[str, float]:
    """Open the report of another tool; return the seconds until it is loaded, and MB."""
    with _page(browser) as page:
        page.goto(report.as_uri(), wait_until="load", timeout=_PATIENCE)
        return {"loaded": page.evaluate(_SHOWN) / 1000, "heap": _heap(page)}


@contextmanager
def _page(browser: Browser) -> Iterator[Page]:
    context = browser.new_context(viewport={"width": 1280, "height": 800})
    yield context.new_page()
    context.close()


def _heap(page: Page) -> float:
    """Return the heap of a page after a collection, in MB; its workers have their own."""
    session = page.context.new_cdp_session(page)
    session.send("HeapProfiler.collectGarbage")
    used: float = session.send("Runtime.getHeapUsage")["usedSize"]
    return used / 1e6
