"""No file that any command writes holds the key of the agent, in any spelling."""

from __future__ import annotations

import sys
from itertools import chain

import pytest

from tracefork_core.cli.command_table import SUMMARIES

from ..masking.conftest import everything_kept, forms
from .conftest import Shell

KEY = "tk-7Jq0xWmB4c9LrYv2"
AGENT = """\
import os, sys
import httpx2

key = os.environ["SERVICE_API_KEY"]

def main():
    messages = [{"role": "user", "content": f"@say {key} is my key"}]
    body = {"model": "gpt-5-mini", "messages": messages}
    url = os.environ["PROVIDER"] + "/v1/chat/completions?key=" + key
    for _ in range(2):
        answer = httpx2.post(url, json=body, headers={"authorization": f"Bearer {key}"}, timeout=60)
    return answer.json()["choices"][0]["message"]["content"]

if __name__ == "__main__":
    print(main())
"""
PROXIED = "import os; os.environ['PROVIDER'] = os.environ['OPENAI_BASE_URL'].removesuffix('/v1')\n"
RECORDING = "record -o run.tape agent.py"
LINES = {
    "looking": {
        "replay": ["replay run.tape --bundle bundle"],
        "show": ["show run.tape 0 --html"],
        "report": ["report run.tape"],
        "pack": ["pack run.tape -o packed.tape"],
        "unpack": ["unpack packed.tape --into out"],
        "redact": ["redact run.tape"],
        "export": [
            "export run.tape --content -o trace.json",
            "export run.tape --atif --content -o atif.json",
            "export run.tape --har --content -o run.har",
        ],
        "import": ["import run.har -o imported.tape"],
    },
    "running": {
        "record": ["record -o second.tape agent.py"],
        "proxy": ["proxy record far.tape --upstream UPSTREAM -- PYTHON proxied.py"],
        "ci": ["ci record agent.py"],
        "rerun": ["rerun run.tape -o rerun.tape"],
        "fork": ["fork run.tape --at 1 --text refund -o branch.tape"],
        "diff": ["diff run.tape branch.tape --html"],
    },
    "searching": {
        "blame": ["blame run.tape --oracle=equals:refund --yes --workers=1 --html --budget CALLS"],
        "shrink": ["shrink run.tape --oracle=equals:refund -o small.tape"],
    },
}
"""How each command that writes files is typed, in an order in which one can use the other."""
WRITE_NO_CONTENT = {
    "bench",
    "bisect",
    "calibrate",
    "demo",
    "doctor",
    "gc",
    "ls",
    "race",
    "scan",
    "sign",
    "tree",
    "try",
    "tui",
    "validate",
    "verify",
    "view",
}
"""They leave no file, or one without anything of a run of the user's agent."""


@pytest.mark.many_processes
@pytest.mark.parametrize("part", LINES)
def test_no_command_writes_the_key_of_an_agent(shell: Shell, part: str) -> None:
    """The agent sends it in a URL, a header and a body, and its model repeats it."""
    shell.write("agent.py", AGENT)
    shell.write("proxied.py", PROXIED + AGENT)
    (shell.folder / "out").mkdir()
    shell.environment |= {"SERVICE_API_KEY": KEY, "TRACEFORK_LOG": "json:log.jsonl"}
    words = {
        "UPSTREAM": shell.environment["PROVIDER"],
        "PYTHON": sys.executable,
        "CALLS": "2 calls",
    }
    before: set[str] = set()
    idle, failed = [], []
    for line in [RECORDING, *chain.from_iterable(LINES[part].values())]:
        done = shell.tracefork(*(words.get(word, word) for word in line.split()))
        after = {str(path) for path in shell.folder.parent.rglob("*")}
        failed += [f"{line}: {done.exit} {done.err[-300:]}"] if done.exit not in (0, 1) else []
        idle += [line] if after == before else []
        before = after
    assert failed == []
    assert idle == []
    kept = everything_kept(shell.folder.parent)
    assert [name for name, form in forms(KEY).items() if form in kept] == []
    assert b"is my key" in kept


def test_the_key_is_found_where_it_is_written(shell: Shell) -> None:
    """Negative control: mode `raw` keeps it in bodies."""
    shell.write("agent.py", AGENT)
    done = shell.tracefork("record", "--mode=raw", "agent.py", SERVICE_API_KEY=KEY)
    assert done.exit == 0, done.err
    assert KEY.encode() in everything_kept(shell.folder)


def test_every_command_is_searched_or_writes_nothing() -> None:
    """A new command is in one of the two lists."""
    searched = set(chain.from_iterable(LINES.values()))
    assert searched | WRITE_NO_CONTENT == SUMMARIES.keys()
    assert not searched & WRITE_NO_CONTENT
