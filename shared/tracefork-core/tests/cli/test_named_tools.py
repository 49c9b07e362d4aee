"""Tools that the command line names, without an edit of the agent."""

from __future__ import annotations

import pytest

from tracefork_core import Tape

from .conftest import Shell

AGENT = """\
import os

import httpx2


def charge_card(amount):
    with open("charged.txt", "a") as file:
        file.write(f"{amount}\\n")
    return f"charged {amount}"


TOOLS = {"charge_card": charge_card}


def ask(text):
    return httpx2.post(os.environ["PROVIDER"] + "/echo", content=text.encode()).text


def main():
    result = TOOLS["charge_card"](len(ask("nine chars")) - 1)
    ask(result)
    print("It is paid.")


if __name__ == "__main__":
    main()
"""


def charges(shell: Shell) -> int:
    file = shell.folder / "charged.txt"
    return len(file.read_text().splitlines()) if file.exists() else 0


@pytest.mark.parametrize("option", ["--tool=agent:charge_card=write", "--tool-of=agent:TOOLS"])
def test_a_named_tool_runs_once(option: str, shell: Shell) -> None:
    """Recorded, replayed, verified, and forked behind it: the card is charged once."""
    shell.write("agent.py", AGENT)
    done = shell.tracefork("record", option, "-o", "paid.tape", "agent.py")
    assert (done.exit, done.out) == (0, "It is paid.\n")
    with Tape.open(shell.folder / "paid.tape") as tape:
        assert [exchange.aside.seam for exchange in tape.exchanges] == ["httpx2", "tool", "httpx2"]
    assert shell.tracefork("verify", "paid.tape", "--times", "2").exit == 0
    assert shell.tracefork("fork", "paid.tape", "--at", "2", "--stub-writes").exit == 0
    assert charges(shell) == 1


def test_a_tool_without_a_name_runs_again(shell: Shell) -> None:
    """The negative control."""
    shell.write("agent.py", AGENT)
    assert shell.tracefork("record", "-o", "paid.tape", "agent.py").exit == 0
    assert shell.tracefork("replay", "paid.tape").exit == 0
    assert charges(shell) == 2


@pytest.mark.parametrize(
    ("agent", "again"),
    [
        (["agent.py"], ["--agent", "agent:main"]),
        (["-m", "agent"], ["agent.py"]),
        (["--agent", "agent:main"], ["-m", "agent"]),
    ],
)
def test_a_name_is_found_however_the_agent_runs(
    agent: list[str], again: list[str], shell: Shell
) -> None:
    """As a script, as a module, and as a function: the names on the tape fit each."""
    shell.write("agent.py", AGENT)
    words = ["--tool", "agent:charge_card", "-o", "paid.tape"]
    done = shell.tracefork("record", *words, *agent)
    assert (done.exit, done.out) == (0, "It is paid.\n")
    assert "had no effect" not in done.err
    assert shell.tracefork("replay", "paid.tape", *again).exit == 0
    assert charges(shell) == 1


def test_try_and_bisect_run_no_named_tool(shell: Shell) -> None:
    """Behind it, in it and before it."""
    shell.write("agent.py", AGENT)
    shell.tracefork("record", "--tool=agent:charge_card=write", "-o", "paid.tape", "agent.py")
    tried = shell.tracefork("try", "paid.tape", "--at=2", "--prompt=x")
    bisected = shell.tracefork("bisect", "paid.tape", "--oracle=not-regex:paid", "--stub-writes")
    assert "tool:charge_card" not in tried.err + bisected.err
    assert bisected.exit != 4, bisected.err
    assert charges(shell) == 1


def test_a_tool_that_reads_is_allowed_by_name(shell: Shell) -> None:
    """Without the option the fork stops before it; with it, before the next call that may write."""
    shell.write("agent.py", AGENT)
    shell.tracefork("record", "--tool=agent:charge_card", "-o", "paid.tape", "agent.py")
    refused = shell.tracefork("fork", "paid.tape", "--at=1")
    assert refused.exit == 4
    assert "--reads charge_card" in refused.err
    assert charges(shell) == 1
    allowed = shell.tracefork("fork", "paid.tape", "--at=1", "--reads", "charge_card")
    assert allowed.exit == 4
    assert "before POST" in allowed.err
    assert charges(shell) == 2


RACING = """\
import asyncio
import os

import httpx2


def charge_card(amount):
    with open("charged.txt", "a") as file:
        file.write(f"{amount}\\n")
    return f"charged {amount}"


async def main():
    async with httpx2.AsyncClient(base_url=os.environ["PROVIDER"]) as http:

        async def pay(amount):
            await http.post("/echo", content=charge_card(amount).encode())

        await asyncio.gather(pay(1), pay(2))


asyncio.run(main())
"""


def test_race_runs_no_named_tool(shell: Shell) -> None:
    """Not in a single one of its orders."""
    shell.write("agent.py", RACING)
    shell.tracefork("record", "--tool=agent:charge_card=write", "-o", "paid.tape", "agent.py")
    done = shell.tracefork("race", "--seeds=3", "paid.tape")
    assert done.exit == 0, done.err
    assert charges(shell) == 2


def test_a_fork_stops_before_a_named_write(shell: Shell) -> None:
    """It is no other than a decorated one."""
    shell.write("agent.py", AGENT)
    shell.tracefork("record", "--tool=agent:charge_card=write", "-o", "paid.tape", "agent.py")
    stopped = shell.tracefork("fork", "paid.tape", "--at", "1")
    assert stopped.exit == 4
    assert "tool:charge_card" in stopped.err
    assert shell.tracefork("fork", "paid.tape", "--at", "1", "--stub-writes").exit == 0
    assert charges(shell) == 1
    assert shell.tracefork("fork", "paid.tape", "--at", "1", "--allow-writes").exit == 0
    assert charges(shell) == 2


def test_pyproject_names_the_tools(shell: Shell) -> None:
    """The nearest one upward from the agent's script."""
    folder = shell.folder / "src"
    shell.write("src/agent.py", AGENT)
    shell.write("pyproject.toml", '[tool.tracefork]\ntools = ["agent:charge_card=write"]\n')
    shell.tracefork("record", "-o", "paid.tape", "src/agent.py")
    assert shell.tracefork("replay", "paid.tape").exit == 0
    assert charges(shell) == 1
    shell.write("pyproject.toml", '[tool.tracefork]\ntools_of = ["agent:TOOLS"]\n')
    shell.at(folder).tracefork("record", "-o", "paid.tape", "agent.py")
    assert shell.at(folder).tracefork("replay", "paid.tape").exit == 0
    assert charges(shell.at(folder)) == 1


@pytest.mark.parametrize(
    ("text", "fact"),
    [
        ("[tool.tracefork", "cannot read"),
        ('[tool.tracefork]\ntools = "agent:charge_card"', "must be a list"),
        ('[tool.tracefork]\ntools = ["agent:chagre_card"]', "Did you mean"),
    ],
)
def test_a_wrong_pyproject_is_refused(text: str, fact: str, shell: Shell) -> None:
    """With exit code 2, and the agent does not run."""
    shell.write("agent.py", AGENT)
    shell.write("pyproject.toml", text)
    done = shell.tracefork("record", "-o", "paid.tape", "agent.py")
    assert (done.exit, done.out) == (2, "")
    assert fact in done.err
    assert not (shell.folder / "paid.tape").exists()


@pytest.mark.parametrize("agent", [["agent.py"], ["-m", "agent"], ["--agent", "agent:main"]])
def test_a_name_that_does_not_exist_leaves_an_earlier_tape(agent: list[str], shell: Shell) -> None:
    """The agent does not run, and the error says what comes close."""
    shell.write("agent.py", AGENT)
    tape = shell.folder / "paid.tape"
    shell.tracefork("record", "-o", "paid.tape", "agent.py")
    before = tape.read_bytes(), sorted(file.name for file in shell.folder.iterdir())
    words = ["record", "--overwrite", "-o", "paid.tape"]
    for name, close in [
        ("agent:charge_crad", "agent:charge_card"),
        ("agnet:charge_card", "agent:charge_card" if agent[0] != "--agent" else "no module agnet"),
    ]:
        done = shell.tracefork(*words, "--tool", name, *agent)
        assert (done.exit, done.out) == (2, "")
        assert close in done.err
        left = sorted(file.name for file in shell.folder.iterdir() if file.name != "__pycache__")
        assert (tape.read_bytes(), left) == before
    assert charges(shell) == 1


def test_a_function_inside_a_function_is_explained(shell: Shell) -> None:
    """No name of the module leads to it."""
    shell.write("agent.py", "def main():\n    def charge():\n        pass\n    charge()\nmain()\n")
    done = shell.tracefork("record", "--tool", "agent:charge", "agent.py")
    assert done.exit == 2
    assert "defined inside a function" in done.err


def test_a_tool_of_a_module_that_is_not_imported_is_reported(shell: Shell) -> None:
    """In words and in the document, with exit code 0."""
    shell.write("pay.py", "def charge():\n    pass\n")
    words = ["--tool", "pay:charge", "--overwrite", "-o", "a.tape", "agent.py"]
    assert "--tool pay:charge (pay was not imported)" in shell.tracefork("record", *words).err
    document = shell.tracefork("record", "--json", *words).document
    assert document["unused_tools"] == ["--tool pay:charge (pay was not imported)"]


SCRIPT = '''\
"""A script that uses its functions while it still defines others."""
from __future__ import annotations

import functools
import sys


def ran(name):
    with open("charged.txt", "a") as file:
        file.write(name + "\\n")


try:
    def early(): ran("early"); return 1
    print(early())
finally:
    pass

if len(sys.argv) == 1:
    class Bank:
        @functools.lru_cache
        def pay(self): ran("pay"); return 2

    bank = Bank()
    print(bank.pay())

TOOLS = {}


def register(function):
    TOOLS[function.__name__] = function


@register
def late(): ran("late"); return 3


print(TOOLS["late"](), __doc__ is not None, sorted(name for name in globals() if "fork" in name))
raise SystemExit(early() + 4)
'''


def test_a_script_may_call_a_tool_before_its_last_line(shell: Shell) -> None:
    """Functions defined in blocks, methods, and a table that is filled by a decorator."""
    shell.write("agent.py", SCRIPT)
    words = ["--tool=agent:early", "--tool=agent:bank.pay", "--tool-of=agent:TOOLS"]
    recorded = shell.tracefork("record", *words, "-o", "a.tape", "agent.py")
    assert recorded.out == "1\n2\n3 True []\n"
    assert recorded.exit == 5
    assert "had no effect" not in recorded.err
    assert charges(shell) == 4
    replayed = shell.tracefork("replay", "a.tape")
    assert (replayed.exit, replayed.out) == (0, recorded.out)
    assert charges(shell) == 4


def test_a_traceback_has_no_frame_of_a_named_tool(shell: Shell) -> None:
    """It is that of Python, with the function's own lines."""
    text = "def charge():\n    raise KeyError('x')\n\n\ncharge()\n"
    path = shell.write("agent.py", text)
    expected = shell.python("agent.py").err
    done = shell.tracefork("record", "--tool", "agent:charge", "-o", "a.tape", "agent.py")
    assert done.exit == 1
    assert done.err.startswith(expected)
    assert str(path) in expected


def test_calibrate_takes_the_names_too(shell: Shell) -> None:
    """Its second live run charges the card a second time, its replays do not."""
    shell.write("agent.py", AGENT)
    done = shell.tracefork("calibrate", "--tool", "agent:charge_card", "agent.py")
    assert done.exit == 0, done.err
    assert charges(shell) == 2
