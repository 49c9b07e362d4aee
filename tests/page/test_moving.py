"""How one moves in a report: by history, by keys, by the palette and by links."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from .conftest import LONG, opened, tracefork


def at(page: Page, n: int) -> None:
    expect(page.locator(".exchange h2")).to_have_text(f"exchange {n}")


def test_back_returns_to_what_was_picked(page: Page, long: Path) -> None:
    """An exchange and a view are picked; back and forward pass both."""
    opened(page, long, "#step=5")
    page.locator("#row7").click()
    at(page, 7)
    page.locator("nav").get_by_role("tab", name="about").click()
    page.go_back()
    expect(page.locator(".row.current")).to_be_visible()
    at(page, 7)
    page.go_back()
    at(page, 5)
    page.go_forward()
    at(page, 7)


def test_a_walk_is_one_entry_of_the_history(page: Page, long: Path) -> None:
    """Back from forty steps is where the walk began, and so is forward its end."""
    opened(page, long, "#step=5")
    for _ in range(40):
        page.keyboard.press("j")
    at(page, 45)
    page.go_back()
    at(page, 5)
    page.go_forward()
    at(page, 45)


def test_tabs_and_lanes_are_walked_by_keyboard(page: Page, long: Path) -> None:
    """Arrows move between tabs, Enter picks an exchange."""
    opened(page, long, "#step=5")
    page.locator("nav").get_by_role("tab", name="timeline").focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    tab = page.locator("nav").get_by_role("tab", name="lanes")
    expect(tab).to_be_focused()
    expect(tab).to_have_attribute("aria-selected", "true")
    node = page.get_by_role("button", name="exchange 9,")
    node.focus()
    page.keyboard.press("Enter")
    at(page, 9)


def test_an_unknown_view_is_the_timeline(page: Page, long: Path) -> None:
    """A word on the screen says so."""
    opened(page, long, "#step=5&view=<b>maps")
    expect(page.locator(".row.current")).to_be_visible()
    expect(page.locator(".note")).to_contain_text('There is no view "<b>maps"')


def test_keys_act_where_the_last_key_went(page: Page, long: Path) -> None:
    """Two keys in one frame: the second one counts from where the first one went."""
    opened(page, long, "#step=5")
    at(page, 5)
    press = """keys => keys.forEach(key =>
        document.body.dispatchEvent(new KeyboardEvent('keydown', {key, bubbles: true})))"""
    page.evaluate(press, ["j", "d"])
    assert "step=6" in page.url
    assert "with=5" in page.url
    page.evaluate(press, ["J", "k"])
    at(page, LONG - 1)


def test_the_palette_goes_to_a_number(page: Page, long: Path) -> None:
    """It is a dialog of the page, not of the browser."""
    opened(page, long, "#step=5")
    page.keyboard.press(":")
    page.keyboard.type("123")
    choices = page.get_by_role("dialog").get_by_role("option")
    expect(choices.first).to_contain_text("go to exchange 123")
    page.keyboard.press("Enter")
    at(page, 123)
    expect(page.get_by_role("dialog")).to_have_count(0)
    page.keyboard.press("j")
    at(page, 124)


def test_the_palette_finds_views_and_commands_by_words(page: Page, long: Path) -> None:
    """Escape closes it; a number that the run does not have is no choice."""
    opened(page, long, "#step=5")
    page.keyboard.press(":")
    page.keyboard.type("view con")
    expect(page.get_by_role("dialog").get_by_role("option")).to_have_count(1)
    page.keyboard.press("Enter")
    tab = page.locator("nav").get_by_role("tab", name="conversation")
    expect(tab).to_have_attribute("aria-selected", "true")
    page.keyboard.press(":")
    page.keyboard.type("99999")
    expect(page.get_by_role("dialog")).to_contain_text(f"exchanges 0 to {LONG}")
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_have_count(0)
    at(page, 5)


def test_the_palette_goes_to_a_run(page: Page, blamed: Path) -> None:
    """Arrows choose among what was found."""
    opened(page, blamed, "#step=0")
    page.keyboard.press(":")
    page.keyboard.type("run:")
    runs = page.get_by_role("dialog").get_by_role("option")
    expect(runs).to_have_count(2)
    page.keyboard.press("ArrowDown")
    expect(runs.nth(1)).to_have_attribute("aria-selected", "true")
    page.keyboard.press("Enter")
    assert "run=1" in page.url


def test_d_on_a_branch_compares_with_its_parent(page: Page, blamed: Path) -> None:
    """At the same place; before the fork it compares with the exchange before."""
    opened(page, blamed, "#run=1&step=2")
    page.keyboard.press("d")
    expect(page.locator(".exchange .pane")).to_contain_text("beside exchange 2 of ticket.tape")
    expect(page.locator(".exchange .said ins").first).to_be_visible()
    page.goto(page.url)
    expect(page.locator(".exchange .pane")).to_contain_text("beside exchange 2 of ticket.tape")
    page.locator(".panels").get_by_role("tab", name="conversation").click()
    page.keyboard.press(":")
    page.keyboard.type("0")
    page.keyboard.press("Enter")
    at(page, 0)
    page.keyboard.press("d")
    expect(page.locator(".exchange .pane")).to_contain_text("beside exchange 0:")


@pytest.mark.parametrize(
    ("keys", "command", "code"),
    [
        ("y", "show ticket.1.tape 2", 0),
        ("f", "fork ticket.1.tape --at 2", None),
        ("dy", "show ticket.1.tape 2 --against ticket.tape 2", 1),
        ("kdy", "show ticket.1.tape 1 --against ticket.tape 1", 0),
    ],
)
def test_a_key_copies_the_command(
    page: Page, blamed: Path, keys: str, command: str, code: int | None
) -> None:
    """The clipboard has it. What shows works, and exits with 1 if two questions differ."""
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    opened(page, blamed, "#run=1&step=2")
    expect(page.locator(".row.current")).to_be_visible()
    for key in keys:
        page.keyboard.press(key)
    expect(page.locator(".note")).to_have_text(f"copied: tracefork {command}")
    copied = page.evaluate("navigator.clipboard.readText()")
    assert copied == f"tracefork {command}"
    if code is not None:
        assert tracefork(blamed.parent, *copied.split()[1:], code=code)


@pytest.mark.parametrize("by", ["key", "button"])
def test_a_refused_copy_leaves_the_command_selected(page: Page, long: Path, by: str) -> None:
    """The reader has only to press Ctrl+C."""
    page.add_init_script(
        "navigator.clipboard.writeText = () => Promise.reject(new Error('no'));"
        "document.execCommand = () => false"
    )
    opened(page, long, "#step=5")
    expect(page.locator(".exchange .command code")).to_be_visible()
    if by == "key":
        page.keyboard.press("y")
    else:
        page.locator(".exchange .command button").click()
    field = page.get_by_label("The browser refused to copy")
    expect(field).to_be_focused()
    expect(field).to_have_value("tracefork show long.tape 5")
    assert page.evaluate("getSelection().toString()") == "tracefork show long.tape 5"
