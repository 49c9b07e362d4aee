"""axe-core finds nothing against WCAG 2.2 AA, in each view, with each dialog, light and dark."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from .conftest import opened

AXE = Path(__file__).parents[2] / "shared/tracefork-core/page/node_modules/axe-core/axe.min.js"
RULES = ["wcag2a", "wcag2aa", "wcag21aa", "wcag22aa"]
VIEWS = ("timeline", "conversation", "lanes", "flame", "branches", "about")


@pytest.fixture(params=["light", "dark"])
def themed(request: pytest.FixtureRequest, browser: Browser) -> Iterator[Page]:
    """Return a page in a theme, without the policy of a report: it would keep axe out."""
    context = browser.new_context(
        viewport={"width": 1280, "height": 800}, color_scheme=request.param, bypass_csp=True
    )
    yield context.new_page()
    context.close()


def faults(page: Page) -> list[str]:
    """Return what axe finds, as rule, element and reason."""
    if not page.evaluate("'axe' in window"):
        page.add_script_tag(path=AXE)
    result: Any = page.evaluate(
        "rules => axe.run(document, {runOnly: {type: 'tag', values: rules}})", RULES
    )
    assert len(result["passes"]) > 10
    return [
        f"{rule['id']}: {node['target']} {node['failureSummary']}"
        for rule in result["violations"]
        for node in rule["nodes"]
    ]


@pytest.mark.parametrize("view", VIEWS)
def test_axe_finds_nothing_in_a_view(themed: Page, blamed: Path, long: Path, view: str) -> None:
    """In a run that was blamed, and in a long one."""
    for report in (blamed, long):
        opened(themed, report, f"#step=2&view={view}")
        expect(themed.locator(".exchange .pane").first).not_to_be_empty()
        assert faults(themed) == []


@pytest.mark.parametrize("part", ["history", "raw", "diff"])
def test_axe_finds_nothing_in_a_part_of_an_exchange(themed: Page, long: Path, part: str) -> None:
    """The whole history, the bodies, and a difference."""
    opened(themed, long, f"#step=40&part={part}")
    expect(themed.locator(".exchange .pane")).to_contain_text("question 40")
    assert faults(themed) == []


@pytest.mark.parametrize("key", ["?", ":"])
def test_axe_finds_nothing_in_a_dialog(themed: Page, blamed: Path, key: str) -> None:
    """The keys, and the palette."""
    opened(themed, blamed)
    themed.keyboard.press(key)
    expect(themed.get_by_role("dialog")).to_be_visible()
    assert faults(themed) == []


def test_axe_finds_nothing_on_a_phone(themed: Page, blamed: Path) -> None:
    """The panels stand below each other."""
    themed.set_viewport_size({"width": 420, "height": 800})
    opened(themed, blamed, "#run=1&view=branches&step=2&part=diff")
    expect(themed.locator(".exchange ins").first).to_be_visible()
    assert faults(themed) == []


def test_axe_finds_a_fault_that_is_there(themed: Page, blamed: Path) -> None:
    """The control: a button without a name, too small to hit."""
    opened(themed, blamed)
    themed.evaluate("document.querySelector('nav').append(document.createElement('button'))")
    assert any("button-name" in fault for fault in faults(themed))
