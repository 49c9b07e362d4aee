"""A report in a browser: what it shows, how one moves in it, and that nothing in it runs."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from tracefork_core import Tape

from .conftest import LONG, opened, tracefork


def test_the_finding_stands_first(page: Page, blamed: Path) -> None:
    """The named step is selected, and has its badge in the timeline and its evidence beside it."""
    opened(page, blamed)
    expect(page.locator("h1")).to_contain_text("exchange 1: agent.py")
    expect(page.locator(".row.current .tag.blamed")).to_have_text("named")
    expect(page.locator(".exchange h2")).to_have_text("exchange 1")
    expect(page.locator(".ranking li").first).to_contain_text("named")
    page.locator(".ranking li button").nth(1).click()
    expect(page.locator(".exchange h2")).not_to_have_text("exchange 1")


def test_two_hundred_steps_are_walked_by_keyboard(page: Page, long: Path) -> None:
    """However long the run is, few rows exist; the place is in the address."""
    opened(page, long, "#step=0")
    for _ in range(200):
        page.keyboard.press("j")
    expect(page.locator(".row.current")).to_have_attribute("data-index", "200")
    expect(page.locator(".exchange h2")).to_have_text("exchange 200")
    assert "step=200" in page.url
    assert page.locator(".row").count() <= 60
    page.keyboard.press("k")
    expect(page.locator(".exchange h2")).to_have_text("exchange 199")


def test_a_search_finds_what_is_in_no_row(page: Page, long: Path) -> None:
    """The texts are searched, and what is filtered out is counted."""
    opened(page, long, "#step=0")
    page.keyboard.press("/")
    page.keyboard.type(f"needle {LONG - 7}")
    expect(page.locator("nav [role=status]")).to_contain_text("hit")
    expect(page.locator(".row").first).to_contain_text(str(LONG - 7))
    expect(page.locator(".left")).to_contain_text("not shown: filtered")


def test_only_errors_are_shown(page: Page, long: Path) -> None:
    """An answer of 404 is one."""
    opened(page, long, "#step=0")
    page.locator("nav select").select_option("errors")
    expect(page.locator(".row")).to_have_count(1)
    expect(page.locator(".row")).to_contain_text("404")


def test_what_was_said_before_is_folded_and_counted(page: Page, long: Path) -> None:
    """The request and the response stand behind a tab, whole."""
    opened(page, long, "#step=100")
    button = page.locator(".exchange .more").first
    expect(button).to_contain_text("show 20 earlier messages")
    shown = page.locator(".exchange .entry").first
    expect(shown).to_have_attribute("aria-setsize", "3")
    button.click()
    expect(page.locator(".exchange .entry").first).to_have_attribute("aria-setsize", "23")
    expect(page.locator(".exchange")).to_contain_text("question 100")
    page.get_by_role("tab", name="request and response").click()
    expect(page.locator(".exchange pre").first).to_contain_text('"messages"')
    expect(page.locator(".exchange pre").first).to_contain_text("question 100")


def test_a_link_opens_the_difference(page: Page, long: Path) -> None:
    """The address names the exchange, the tab and what it is compared with."""
    opened(page, long, "#step=40&view=timeline&part=diff&with=39")
    expect(page.locator(".exchange .said ins").first).to_contain_text("question 40")


def test_a_page_of_one_exchange_says_what_it_leaves_out(page: Page, blamed: Path) -> None:
    """The question is whole, and the command for the others is there."""
    tracefork(blamed.parent, "show", "ticket.tape", "2", "--html")
    opened(page, blamed.with_name("ticket-2.html"), "#step=0")
    expect(page.locator(".top")).to_contain_text("1 of 4 exchanges")
    expect(page.locator(".row")).to_have_count(1)
    expect(page.locator(".exchange h2")).to_have_text("exchange 2")
    expect(page.locator(".exchange .message").first).to_contain_text("Refund or refuse?")
    expect(page.locator(".left")).to_contain_text("tracefork report ticket.tape")
    page.get_by_role("tab", name="request and response").click()
    expect(page.locator(".exchange pre").first).to_contain_text("Refund or refuse?")


def test_a_page_of_a_difference_opens_at_it(page: Page, blamed: Path) -> None:
    """Without a place in its address; the words of both runs stand side by side."""
    branch = blamed.parent / "ticket.1.tape"
    tracefork(blamed.parent, "diff", branch.name, "--html", code=1)
    opened(page, branch.with_name("ticket.1-diff.html"))
    expect(page.locator("h1")).to_have_text("3 differences from ticket.tape")
    expect(page.locator(".exchange h2")).to_have_text("exchange 1")
    expect(page.locator(".exchange")).to_contain_text("beside exchange 1 of ticket.tape")
    expect(page.locator(".exchange .said ins").first).to_contain_text("Damage")


def test_a_page_of_a_blame_opens_at_its_result(page: Page, blamed: Path) -> None:
    """The panel has the focus, so that a phone scrolls to it."""
    page.set_viewport_size({"width": 420, "height": 800})
    opened(page, blamed, "#panel=blame")
    expect(page.locator("section.blame")).to_be_focused()
    expect(page.locator("section.blame h2")).to_be_in_viewport()


def test_a_branch_is_a_strip_of_words(page: Page, blamed: Path) -> None:
    """FREE, EDITED, DIVERGED and LIVE are words; its own exchanges follow those of its parent."""
    opened(page, blamed, "#run=1&view=branches&step=2")
    strip = page.locator(".film").last
    expect(strip).to_contain_text("0 FREE")
    expect(strip).to_contain_text("1 EDITED")
    expect(strip).to_contain_text("DIVERGED")
    page.locator(".film").last.get_by_text("0 FREE").click()
    expect(page.locator(".exchange h2")).to_have_text("exchange 0")
    expect(page.locator(".exchange .message").first).to_contain_text("What is this ticket about")


@pytest.mark.parametrize("view", ["conversation", "lanes", "flame", "branches", "about"])
def test_each_view_opens(page: Page, long: Path, view: str) -> None:
    """With a key, too."""
    opened(page, long, f"#step=5&view={view}")
    tab = page.locator("nav").get_by_role("tab", name=view)
    expect(tab).to_have_attribute("aria-selected", "true")
    page.keyboard.press("t")
    expect(page.locator(".row.current")).to_be_visible()


def test_what_a_notebook_shows_runs_nothing(page: Page, long: Path, tmp_path: Path) -> None:
    """A notebook has no policy of its own, so that each text must be escaped."""
    with Tape.open(long.with_suffix(".tape")) as tape:
        shown = [tape._repr_html_(), *(one._repr_html_() for one in tape.exchanges[:5])]
    notebook = tmp_path / "notebook.html"
    notebook.write_text("<!doctype html><meta charset=utf-8>" + "".join(shown), "utf-8")
    page.goto(notebook.as_uri())
    assert page.evaluate("window.owned") is None
    expect(page.locator("body")).to_contain_text(f"first 30 of {LONG + 1} exchanges")
    expect(page.locator("body")).to_contain_text("<script>window.owned = 1</script>")
    assert page.locator("script, img").count() == 0


def test_no_text_of_a_run_becomes_a_script(page: Page, long: Path) -> None:
    """Markup, terminal escapes and bidirectional controls are shown as what they are."""
    opened(page, long, "#step=3")
    for view in ("timeline", "conversation", "lanes", "flame", "about"):
        page.locator("nav").get_by_role("tab", name=view).click()
        page.wait_for_timeout(100)
    page.get_by_role("tab", name="request and response").click()
    assert page.evaluate("window.owned") is None
    page.goto(f"{long.as_uri()}#step=3")
    expect(page.locator("body")).to_contain_text("⟦U+202E⟧")
    assert "\u202e" not in page.locator("body").inner_text()


def test_the_policy_stops_a_script_in_the_file(
    browser: Browser, long: Path, tmp_path: Path
) -> None:
    """The control: a script that is put into the file does not run, because of its hash."""
    forged = tmp_path / "forged.html"
    text = long.read_text()
    forged.write_text(text.replace("<main", "<script>window.owned = 1</script><main", 1))
    page = browser.new_page()
    said: list[str] = []
    page.on("console", lambda message: said.append(message.text))
    page.goto(forged.as_uri())
    page.wait_for_selector(".row")
    assert page.evaluate("window.owned") is None
    assert "Content Security Policy" in said[0]
    page.close()


def test_invisible_characters_are_spelled(page: Page, long: Path) -> None:
    """Soft hyphens, vowel separators and tags could hide instructions. An emoji stays one."""
    opened(page, long, "#step=5")
    said = page.locator(".exchange .entry").first
    expect(said).to_contain_text("soft⟦U+00AD⟧hyphen vowel⟦U+180E⟧ tags⟦U+E0041⟧⟦U+E0042⟧ 😀")


def test_a_report_runs_nothing_but_its_own_script(browser: Browser, blamed: Path) -> None:
    """A script from a blob is refused; the worker, which is one, has unpacked the rows."""
    page = browser.new_page()
    opened(page, blamed)
    run = """() => new Promise(done => {
        const script = document.createElement("script");
        script.src = URL.createObjectURL(new Blob(["window.owned = 1"]));
        script.onerror = script.onload = () => done(window.owned);
        document.body.append(script);
    })"""
    assert page.evaluate(run) is None
    page.close()


@pytest.mark.parametrize("width", [420, 1000, 1600])
def test_it_fits_each_width(page: Page, blamed: Path, width: int) -> None:
    """Nothing is cut off at the side, on a phone either."""
    page.set_viewport_size({"width": width, "height": 800})
    opened(page, blamed)
    assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_without_content_no_text_of_the_run_is_in_the_file(blamed: Path) -> None:
    """The structure stays: models, lanes, steps and figures."""
    folder = blamed.parent
    words = ("report", "ticket.tape", "--no-content", "-o", "bare.html")
    subprocess.run([sys.executable, "-m", "tracefork_core", *words], cwd=folder, check=True)
    unpacked = everything(folder / "bare.html")
    assert "gpt-5-mini" in unpacked
    for word in ("turntable", "Returns", "too late", "Damage: 30", "Which rule"):
        assert word not in unpacked, word
        assert word in everything(blamed)


def everything(report: Path) -> str:
    """Return the text of a report with its packed parts."""
    import base64
    import zlib

    text = report.read_text()
    parts = re.findall(r'octet-stream" id="p\d+">([^<]*)<', text)
    plain = [zlib.decompress(base64.b64decode(part), -zlib.MAX_WBITS).decode() for part in parts]
    return "\n".join([re.sub(r'octet-stream" id="p\d+">[^<]*<', "", text), *plain])
