"""A report whose every text is hostile: nothing runs, and no request leaves."""

from __future__ import annotations

import base64
import json
import re
import zlib
from itertools import cycle
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from .conftest import opened

PAYLOADS = (
    "</script><script>window.owned = 1</script>",
    "<img src=x onerror='window.owned = 1'>",
    "\"><svg onload='window.owned = 1'>",
    "'><iframe srcdoc='<script>parent.owned = 1</script>'>",
    "javascript:window.owned = 1",
    "<!--<script>window.owned = 1//",
    "} * { background: url(http://127.0.0.1:9/x) } {",
    "<base href=http://127.0.0.1:9/><link rel=stylesheet href=//127.0.0.1:9/x>",
    '{"type": "script", "props": {"dangerouslySetInnerHTML": {"__html": "window.owned = 1"}}}',
    "__proto__",
    "\x1b]8;;http://127.0.0.1:9\x07\u202e\u2066\U000e0041",
    "\ud83d and a very long text " + "long " * 2_000,
)
PART = re.compile(r'(octet-stream" id="p\d+">)([^<]*)<')
DATA = re.compile(r'(id="report">)(.*?)(</script>)', re.DOTALL)
IDS = {"index", "blocks", "place"}
"""Fields that hold no text: they name parts of the page."""


def poisoned(report: Path) -> str:
    """Return a report with a payload in each place of its data that holds a text."""
    payloads = cycle(PAYLOADS)

    def poison(value: object) -> object:
        match value:
            case str():
                return next(payloads)
            case list():
                return [poison(one) for one in value]
            case dict():
                return {key: one if key in IDS else poison(one) for key, one in value.items()}
        return value

    def part(found: re.Match[str]) -> str:
        plain = json.loads(zlib.decompress(base64.b64decode(found[2]), -zlib.MAX_WBITS))
        packing = zlib.compressobj(wbits=-zlib.MAX_WBITS)
        packed = packing.compress(json.dumps(poison(plain)).encode()) + packing.flush()
        return f"{found[1]}{base64.b64encode(packed).decode()}<"

    def data(found: re.Match[str]) -> str:
        text = json.dumps(poison(json.loads(found[2]))).replace("<", "\\u003c")
        return f"{found[1]}{text}{found[3]}"

    text = PART.sub(part, report.read_text())
    assert len(DATA.findall(text)) == 1
    return DATA.sub(data, text)


@pytest.fixture(scope="session")
def hostile(blamed: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return such a report, of a run with a blame and a branch."""
    path = tmp_path_factory.mktemp("hostile") / "hostile.html"
    path.write_text(poisoned(blamed))
    return path


@pytest.mark.parametrize("run", [0, 1])
@pytest.mark.parametrize(
    "view", ["timeline", "conversation", "lanes", "flame", "branches", "about"]
)
def test_no_field_of_a_report_runs(page: Page, hostile: Path, view: str, run: int) -> None:
    """In each view, each part of the exchange, and the palette. The page is not disturbed."""
    opened(page, hostile, f"#run={run}&step=2&view={view}")
    tabs = page.locator(".exchange").get_by_role("tab")
    for tab in (tabs.nth(1), tabs.nth(2), tabs.nth(0)):
        tab.click()
        expect(page.locator(".exchange .pane")).to_contain_text("window.owned")
    for details in page.locator("details").all():
        details.evaluate("one => one.open = true")
    page.keyboard.press(":")
    expect(page.get_by_role("dialog")).to_contain_text("run:")
    page.wait_for_timeout(100)
    assert page.evaluate("window.owned") is None
    assert page.locator("img, iframe, object, embed, base, link, [onerror], [onload]").count() == 0
    assert page.locator("script:not([type])").count() == 1
    assert "\u202e" not in page.locator("body").inner_text()


def test_a_payload_would_run_in_a_page_that_trusts_it(page: Page, tmp_path: Path) -> None:
    """The control: the payloads are what they are said to be."""
    path = tmp_path / "trusting.html"
    path.write_text(f"<!doctype html><p>{PAYLOADS[0]}</p>")
    page.goto(path.as_uri())
    assert page.evaluate("window.owned") == 1
