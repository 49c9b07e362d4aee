"""Make the pictures of the docs from real output: `python docs/pictures.py`.

The support agent of examples/ is recorded against its scripted model. One word of it is changed and
the divergence card is drawn; then the run is forked and the terminal view of the branch is drawn;
then the run is blamed and that card is drawn. Needs tracefork-core with the extra `tui`,
tracefork-testkit and openai, as `tox -e e2e` has them. Where playwright and Debian's chromium are
installed, as `tox -e page` has them, the report of the run is photographed too.
"""

from __future__ import annotations

import asyncio
import contextlib
import io
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from rich.console import Console
from rich.text import Text

DOCS = Path(__file__).parent
SUPPORT = DOCS.parent / "examples" / "support"
PICTURES = DOCS / "pictures"
WIDTH = 86
_CURSOR = re.compile(r"\x1b\[[?\d;]*[A-HJKhl]|\r")
_FONTS = re.compile(r"@font-face \{.*?\}\s*", re.DOTALL)

RECORD = "record -o ticket.tape agent.py"
REPLAY = "replay ticket.tape agent.py"
FORK = 'fork ticket.tape --at 1 --text "Damage: 30 days." -o branch.tape agent.py'
VIEW = "branch.tape"
VIEW_SIZE = 80, 18
BLAME = (
    "blame ticket.tape --agent agent:support --oracle 'regex:refund you in full' "
    "--budget '200 calls' --yes"
)
REPORT = "report ticket.tape"
REPORT_SIZE = 1120, 620


def run(words: str, folder: Path, port: int) -> str:
    """Return what a command prints, with its colours."""
    done = subprocess.run(  # noqa: S602 - the commands are those above
        f"{sys.executable} -m tracefork_core.cli.main {words}",
        shell=True,
        cwd=folder,
        env={
            **{name: value for name, value in os.environ.items() if name != "NO_COLOR"},
            "OPENAI_BASE_URL": f"http://127.0.0.1:{port}/v1",
            "OPENAI_API_KEY": "none",
            "TRACEFORK_HOME": str(folder / "home"),
            "FORCE_COLOR": "1",
            "COLUMNS": str(WIDTH),
        },
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    return done.stdout


def card(printed: str, mark: str) -> str:
    """Return what was printed from the line with the verdict's mark on."""
    lines = _CURSOR.sub("", printed).splitlines()
    first = max(i for i, line in enumerate(lines) if Text.from_ansi(line).plain.startswith(mark))
    return "\n".join(lines[first:])


def draw(name: str, command: str, printed: str) -> None:
    """Write a picture of a terminal with a command and its output."""
    console = Console(record=True, width=WIDTH, file=io.StringIO(), force_terminal=True)
    console.print(Text(f"$ tracefork {command}", style="bold"), soft_wrap=False)
    console.print(Text.from_ansi(printed))
    svg = console.export_svg(title="", unique_id=name)
    (PICTURES / f"{name}.svg").write_text(_FONTS.sub("", svg))


async def view(name: str, tape: Path) -> None:
    """Write a picture of the terminal view: of a branch, where it first differs from its run."""
    from tracefork_core.cli.tui.app import TapeView
    from tracefork_core.cli.tui.open_run import OpenRun
    from tracefork_core.cli.tui.pane import Pane

    shown = TapeView(OpenRun(tape, VIEW_SIZE[0]), None)
    async with shown.run_test(size=VIEW_SIZE) as pilot:
        await pilot.press("j", "j", "d")
        pane = shown.query_one(Pane)
        while not (pane.lines and "against" in pane.lines[0].plain and shown.opened.marks.branch):
            await pilot.pause(0.05)
        await pilot.pause(0.5)
        svg = shown.export_screenshot(title="tracefork tui")
    shown.opened.close()
    (PICTURES / f"{name}.svg").write_text(_FONTS.sub("", svg))


def photograph(name: str, page: Path) -> None:
    """Write a picture of a page, if there is a browser."""
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        return
    chromium = shutil.which("chromium")
    if chromium is None:
        return
    width, height = REPORT_SIZE
    with sync_playwright() as playwright:
        arguments = ["--no-sandbox", "--disable-gpu", "--disable-quic"]
        browser = playwright.chromium.launch(executable_path=chromium, args=arguments)
        opened = browser.new_page(viewport={"width": width, "height": height})
        opened.goto(page.as_uri())
        opened.locator(".exchange .message").first.wait_for()
        opened.screenshot(path=PICTURES / f"{name}.png")
        browser.close()


def _free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


def _wait_for(port: int) -> None:
    until = time.monotonic() + 60
    while time.monotonic() < until:
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.05)
    raise SystemExit("the scripted model does not start")


def main() -> None:
    """Make all pictures."""
    port = _free_port()
    PICTURES.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(shutil.copytree(SUPPORT, Path(temporary) / "support"))
        model = subprocess.Popen(
            [sys.executable, "provider.py"], cwd=folder, env={**os.environ, "PORT": str(port)}
        )
        try:
            _wait_for(port)
            run(RECORD, folder, port)
            agent = folder / "agent.py"
            source = agent.read_text()
            agent.write_text(source.replace("about, in one word?", "about, in two words?"))
            draw("divergence", REPLAY, card(run(REPLAY, folder, port), "✗"))
            agent.write_text(source)
            run(FORK, folder, port)
            with contextlib.chdir(folder):
                asyncio.run(view("view", Path(VIEW)))
            draw("blame", BLAME, card(run(BLAME, folder, port), "●"))
            run(REPORT, folder, port)
            photograph("report", folder / "ticket.html")
        finally:
            model.kill()
            model.wait()


if __name__ == "__main__":
    main()
