"""`tracefork tui`: what each key shows. test_tui_terminal.py starts it in a terminal."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tracefork_core.cli.tui import row_list, rows
from tracefork_core.cli.tui.keys import KEYS
from tracefork_testkit import ProviderServer

from .conftest import Shell
from .terminal_view import viewed

AGENT = """\
import os
import httpx2
import openai

client = openai.OpenAI(base_url=os.environ["PROVIDER"] + "/v1", api_key="sk-none", max_retries=0)
history = [{"role": "system", "content": "You are a desk."}]
for n in range(20):
    history.append({"role": "user", "content": f"question {n} about parcel {n * 7}"})
    answer = client.chat.completions.create(model="gpt-5-mini", messages=history)
    history.append({"role": "assistant", "content": answer.choices[0].message.content})
    if n in (4, 11):
        httpx2.get(os.environ["PROVIDER"] + "/status/500")
"""
ERRORS = 5, 13
"""The exchanges that end with an error."""
LAST = 21


@pytest.fixture(scope="session")
def talk(tmp_path_factory: pytest.TempPathFactory, provider: ProviderServer) -> Shell:
    """Return a shell with a recorded conversation and a branch of it; tests must not change it."""
    folder, home = tmp_path_factory.mktemp("talk"), tmp_path_factory.mktemp("home")
    found = Shell(folder, {"PROVIDER": provider.url, "TRACEFORK_HOME": str(home)})
    found.write("agent.py", AGENT)
    assert found.tracefork("record", "agent.py").exit == 0
    words = ("--at", "18", "--text", "no", "--allow-writes", "-o", "branch.tape", "agent.py")
    done = found.tracefork("fork", "agent.tape", *words)
    assert done.exit == 0, done.err
    return found


@pytest.fixture(autouse=True)
def _in_its_folder(talk: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    """Tapes are called by their names there."""
    monkeypatch.chdir(talk.folder)


async def test_keys_move_through_the_timeline(talk: Shell) -> None:
    """The selected row has a mark of its own, and what is below follows it."""
    async with viewed(talk.folder / "agent.tape") as view:
        assert view.selected.split()[1] == "0"
        await view.press("jj")
        assert view.selected.split()[1] == "2"
        await view.until("exchange 2 of 22")
        await view.press("k")
        assert view.selected.split()[1] == "1"
        await view.press("G")
        assert view.selected.split()[1] == str(LAST)
        await view.press("j")
        assert view.selected.split()[1] == str(LAST)
        await view.press("g")
        assert view.selected.split()[1] == "0"
        await view.pilot.press("pagedown")
        assert 0 < int(view.selected.split()[1]) < LAST


async def test_the_conversation_marks_what_is_new(talk: Shell) -> None:
    """What was said before is folded and counted, and `h` shows it."""
    async with viewed(talk.folder / "agent.tape") as view:
        await view.press("jjj")
        text = await view.until("question 3")
        assert "··· 7 messages from before, as in exchange 2" in text
        assert "+ user        question 3 about parcel 21" in text
        assert "→ assistant" in text
        assert "question 2" not in text.partition("── conversation")[2]
        await view.press("h")
        text = await view.until("= user        question 2")
        assert "= system      You are a desk." in text


async def test_marks_are_errors_by_their_word(talk: Shell) -> None:
    """`J` and `K` go to them, and say where there is none."""
    async with viewed(talk.folder / "agent.tape") as view:
        await view.until("The run ended well. 2 exchanges ended with an error.")
        await view.press("J")
        assert view.selected.split()[1:3] == ["error", str(ERRORS[0])]
        await view.press("J")
        assert view.selected.split()[1:3] == ["error", str(ERRORS[1])]
        await view.press("J")
        await view.until(f"no error and no blamed step after exchange {ERRORS[1]}")
        await view.press("K")
        assert view.selected.split()[1:3] == ["error", str(ERRORS[0])]
        await view.until("error: 500")


async def test_a_search_goes_to_each_hit(talk: Shell) -> None:
    """A message that later questions repeat is found where it was new."""
    async with viewed(talk.folder / "agent.tape") as view:
        await view.press("/PARCEL 7\n")
        await view.until("3 exchanges with 'PARCEL 7'")
        places = [view.selected.split()[1]]
        for key in "nnnN":
            await view.press(key)
            places.append(view.selected.split()[1])
        assert places == ["1", "11", "12", "1", "12"]
        await view.press("/no such words\n")
        await view.until("0 exchanges with 'no such words'")
        await view.press("n")
        await view.until("no hit: / searches")


async def test_a_number_goes_to_its_exchange(talk: Shell) -> None:
    """Another one is refused, and `escape` leaves the prompt."""
    async with viewed(talk.folder / "agent.tape") as view:
        await view.press(":17\n")
        assert view.selected.split()[1] == "17"
        await view.press(":99\n")
        await view.until("there is no exchange '99': this run has 0 to 21")
        await view.press(":5")
        await view.until(":5")
        await view.pilot.press("escape")
        await view.press("j")
        assert view.selected.split()[1] == "18"


async def test_a_difference_is_from_the_exchange_before(talk: Shell) -> None:
    """The same key again shows the conversation."""
    async with viewed(talk.folder / "agent.tape") as view:
        await view.press("jd")
        text = await view.until("exchange 1 against exchange 0")
        assert "{+question 1 about parcel 7+}" in text
        await view.press("d")
        await view.until("── conversation")


async def test_a_branch_is_compared_with_its_parent(talk: Shell) -> None:
    """Its rows say in words which exchanges cost nothing, which was changed, and which are live."""
    async with viewed(talk.folder / "branch.tape") as view:
        await view.until("FREE")
        await view.press(":18\nd")
        text = await view.until("exchange 18 against exchange 18 of agent.tape")
        assert "{+no+}" in text
        assert view.selected.split()[1:3] == ["EDITED", "18"]
        await view.press("j")
        assert view.selected.split()[1:3] == ["DIVERGED", "19"]


async def test_brackets_change_the_run(talk: Shell) -> None:
    """The tree of branches says which one is open."""
    async with viewed(talk.folder / "agent.tape") as view:
        await view.wait(lambda: len(view.view.paths) == 2)
        await view.press("b")
        text = await view.until("open: agent.tape")
        assert "branch.tape  at 18" in text
        await view.press("]")
        await view.until("open: branch.tape")
        assert view.lines[0].startswith("branch.tape · 22 exchanges")
        await view.press("[")
        await view.until("open: agent.tape")


async def test_a_folder_begins_with_its_tapes(talk: Shell) -> None:
    """The tree has all of them."""
    async with viewed(talk.folder / "branch.tape", folder=talk.folder) as view:
        text = await view.until("open: branch.tape")
        assert "── branches" in text
        assert "agent.tape  22 exchanges" in text


async def test_commands_are_shown_and_copied(talk: Shell) -> None:
    """`f` is the one that forks here, `y` the one that shows this."""
    async with viewed(talk.folder / "agent.tape") as view:
        await view.press("jjf")
        await view.until("copied: tracefork fork agent.tape --at 2")
        assert view.view.clipboard == "tracefork fork agent.tape --at 2"
        await view.press("y")
        assert view.view.clipboard == "tracefork show agent.tape 2"


async def test_a_long_command_is_shown_whole(
    talk: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is wrapped where the last line of the screen has no room for it."""
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / ("long-" * 20)
    shutil.copytree(talk.folder, folder)
    async with viewed(folder / "agent.tape") as view:
        await view.press("jf")
        text = await view.until("── command")
        shown = "".join(text.partition("── command ──")[2].split())
        assert shown.startswith(f"tracefork fork {folder.name}/agent.tape --at 1".replace(" ", ""))


async def test_an_exchange_is_shown_in_full(talk: Shell) -> None:
    """It is what `tracefork show TAPE N` prints; `z` gives it the whole screen."""
    async with viewed(talk.folder / "agent.tape") as view:
        await view.press("e")
        await view.until("POST http://127.0.0.1")
        await view.press("z")
        assert not any(line.startswith("▸") for line in view.lines)
        await view.pilot.press("escape")
        assert view.selected


@pytest.mark.parametrize("size", [(40, 10), (200, 60)])
async def test_any_screen_shows_both_parts(talk: Shell, size: tuple[int, int]) -> None:
    """No line is wider than the screen, and the selected row stays on it."""
    async with viewed(talk.folder / "agent.tape", size=size) as view:
        await view.press("G")
        await view.until("── conversation")
        assert view.selected.split()[1] == str(LAST)
        assert len(view.lines) == size[1]
        assert max(map(len, view.lines)) <= size[0]
        await view.pilot.resize_terminal(80, 24)
        await view.until("exchange 21 of 22")
        assert view.selected.split()[1] == str(LAST)


async def test_rows_that_take_long_are_filled_in(
    talk: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Here no frame has time for any: a thread makes them, and the screen is drawn again."""
    monkeypatch.setattr(row_list, "_AT_ONCE", -1.0)
    monkeypatch.setattr(rows, "_SAMPLE", 1)
    async with viewed(talk.folder / "agent.tape") as view:
        await view.press("G")
        await view.wait(lambda: len(view.selected.split()) > 4)
        assert view.selected.split()[1] == str(LAST)


async def test_a_tape_without_exchanges_answers_each_key(talk: Shell, shell: Shell) -> None:
    """There is no row to select, and the lower part says so."""
    shell.write("idle.py", "print('nothing is asked')\n")
    shell.tracefork("record", "idle.py")
    async with viewed(shell.folder / "idle.tape") as view:
        await view.until("This tape holds no exchange.")
        for key in "jkJKgGnNcdewbfyhz ?":
            await view.press(key)
        await view.press(":0\n")
        await view.until("there is no exchange")


async def test_the_help_has_every_key(talk: Shell) -> None:
    """It scrolls, and the last line names the most needed ones."""
    async with viewed(talk.folder / "agent.tape") as view:
        assert view.lines[-1].endswith("? all keys · q quit")
        await view.press("?")
        text = await view.until("── keys")
        await view.press("z")
        text += view.text
        await view.press(" ")
        text += view.text
        for key in KEYS:
            assert f"  {key.shown:<10} {key.words}" in text
        await view.press("q")
    assert view.view.return_code == 0
