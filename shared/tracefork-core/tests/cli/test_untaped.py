"""The command line says which tools are not on a tape, and asks before they run again."""

from __future__ import annotations

import os
import pty
import subprocess
import sys

import pytest

from .conftest import Shell

pytestmark = pytest.mark.many_processes

AGENT = """\
import json
import os
from pathlib import Path

import httpx2

messages = [{"role": "user", "content": '@call send_mail {"to": "ann"}\\n@then\\n@say Sent.'}]


def send_mail(to):
    with Path("mails.txt").open("a") as mails:
        mails.write(f"{to}\\n")
    return "sent"


while True:
    asked = {"model": "gpt-5-mini", "messages": messages}
    answer = httpx2.post(os.environ["PROVIDER"] + "/v1/chat/completions", json=asked)
    said = answer.json()["choices"][0]["message"]
    if not said.get("tool_calls"):
        break
    messages.append(said)
    for call in said["tool_calls"]:
        result = send_mail(**json.loads(call["function"]["arguments"]))
        messages.append({"role": "tool", "tool_call_id": call["id"], "content": result})
print(said["content"])
"""
TAPED = AGENT.replace(
    "def send_mail", '@tracefork_core.tool(effect="write")\ndef send_mail'
).replace("import httpx2", "import httpx2\nimport tracefork_core")
UNTAPED = "1 tool call ran in your process and is not on the tape: send_mail ×1"
BLAME = ("blame", "agent.tape", "--oracle=not-regex:Sent", "--budget=3 calls", "--yes")
REFUSED = [
    ("fork", "agent.tape", "--at=1", "--text=No."),
    ("try", "agent.tape", "--at=0", "--model=other"),
    (*BLAME, "--stub-writes"),
    ("bisect", "agent.tape", "--oracle=not-regex:Sent"),
    ("race", "agent.tape"),
]


def mails(shell: Shell) -> int:
    """Return how many mails were sent."""
    return len((shell.folder / "mails.txt").read_text().splitlines())


@pytest.fixture
def mailer(shell: Shell) -> Shell:
    """Return a shell with a recorded agent that sent one mail."""
    shell.write("agent.py", AGENT)
    assert shell.tracefork("record", "agent.py").exit == 0
    return shell


def test_record_show_and_replay_say_which_tools_are_not_on_the_tape(shell: Shell) -> None:
    """Each names the tool and how often it was called, in words and as JSON."""
    shell.write("agent.py", AGENT)
    done = shell.tracefork("record", "agent.py")
    assert f"! {UNTAPED}. A replay runs it again." in done.err
    assert "next: tracefork replay" in done.err
    shown = shell.tracefork("show", "agent.tape", COLUMNS="120")
    assert UNTAPED in shown.out
    marked = [line for line in shown.out.splitlines() if line[:1].isdigit() and " ! " in line]
    assert len(marked) == 1
    assert marked[0].lstrip().startswith("0")
    assert "not taped    send_mail" in shell.tracefork("show", "agent.tape", "0").out
    assert "not taped" not in shell.tracefork("show", "agent.tape", "1").out
    replayed = shell.tracefork("replay", "agent.tape")
    assert replayed.exit == 0
    assert f"! {UNTAPED}. This replay ran it again." in replayed.err
    for words in (
        ("record", "agent.py", "--overwrite", "-o", "agent.tape"),
        ("show", "agent.tape"),
        ("replay", "agent.tape"),
    ):
        first, *rest = words
        assert shell.tracefork(first, "--json", *rest).document["untaped"] == {"send_mail": 1}


@pytest.mark.parametrize("words", REFUSED, ids=lambda words: words[0])
def test_a_tool_that_is_not_on_the_tape_is_not_run_again(
    mailer: Shell, words: tuple[str, ...]
) -> None:
    """Without a terminal the command ends with 2 and says what to type; with the option it runs."""
    done = mailer.tracefork(*words)
    assert done.exit == 2, done.err
    assert UNTAPED in done.err
    assert "--allow-writes" in done.err
    assert "tracefork record --tool MODULE:send_mail" in done.err
    assert mails(mailer) == 1
    allowed = [word for word in words if word != "--stub-writes"]
    done = mailer.tracefork(*allowed, "--allow-writes")
    assert done.exit != 2, done.err
    assert mails(mailer) > 1


def test_a_tool_on_the_tape_is_no_reason_to_refuse(shell: Shell) -> None:
    """The mail is an exchange: no replay, fork or blame sends it a second time."""
    shell.write("agent.py", TAPED)
    done = shell.tracefork("record", "agent.py")
    assert "ran in your process" not in done.err
    for _ in range(3):
        assert shell.tracefork("replay", "agent.tape").exit == 0
    for words in (
        ("fork", "agent.tape", "--at=2", "--text=No."),
        ("try", "agent.tape", "--at=0", "--model=other"),
        (*BLAME, "--stub-writes"),
        ("bisect", "agent.tape", "--oracle=not-regex:Sent", "--stub-writes"),
        ("race", "agent.tape"),
    ):
        done = shell.tracefork(*words)
        assert "ran in your process" not in done.err, words
        assert mails(shell) == 1, words


@pytest.mark.parametrize(
    ("answer", "sent", "exits"), [("y\n", 2, 0), ("n\n", 1, 2), ("\x04", 1, 2)]
)
def test_a_terminal_is_asked(mailer: Shell, answer: str, sent: int, exits: int) -> None:
    """The answer decides whether the fork runs. A no (Ctrl-D, too) is told what else to type."""
    controller, terminal = pty.openpty()
    command = [sys.executable, "-m", "tracefork_core.cli.main"]
    process = subprocess.Popen(
        [*command, "fork", "agent.tape", "--at=1", "--text=No."],
        cwd=mailer.folder,
        env=mailer.full_environment(),
        stdin=terminal,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    os.write(controller, answer.encode())
    _, err = process.communicate(timeout=60)
    os.close(controller)
    os.close(terminal)
    assert UNTAPED in err.decode()
    assert "Run it?" in err.decode()
    assert ("--allow-writes" in err.decode()) == (exits == 2)
    assert process.returncode == exits, err.decode()
    assert mails(mailer) == sent
