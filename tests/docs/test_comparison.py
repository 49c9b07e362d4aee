"""The commands that docs/explanation/comparison.md sets beside those of another tool run."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

from tracefork_testkit import ProviderServer

from .pages import ROOT

AGENT = """\
import os, sys
import openai
client = openai.OpenAI(base_url=os.environ["PROVIDER"] + "/v1", api_key="none")
messages = [{"role": "user", "content": " ".join(sys.argv[1:])}]
print(client.chat.completions.create(model="gpt-5-mini", messages=messages).choices[0].message)
"""
INSTEAD = {
    "ARGS": "hello",
    "A.tape": "agent.tape",
    "B.tape": "agent.tape",
    "F.tape": "agent.tape",
    "NAME": "agent",
    "FOLDER": "tapes",
}


def commands() -> list[list[str]]:
    """Return the words of the commands in the last column of the table, in their order."""
    page = (ROOT / "docs/explanation/comparison.md").read_text()
    rows = re.findall(r"^\| `(?:forkline|assert).*\| (.*) \|$", page, re.MULTILINE)
    found = [span for row in rows for span in re.findall(r"`([^`]+)`", row)]
    return [shlex.split(span) for span in found if span.startswith("tracefork ")]


def test_each_command_of_the_table_runs(tmp_path: Path) -> None:
    """Another question fails the check, as the page says."""
    agent = tmp_path / "agent.py"
    agent.write_text(AGENT)
    with ProviderServer() as provider:
        environment = {"PROVIDER": provider.url, "TRACEFORK_HOME": str(tmp_path / "home")}

        def run(*words: str) -> subprocess.CompletedProcess[str]:
            return subprocess.run(
                [sys.executable, "-m", "tracefork_core", *words],
                cwd=tmp_path,
                env={**__import__("os").environ, **environment},
                capture_output=True,
                text=True,
                check=False,
            )

        assert len(commands()) > 8
        for words in commands():
            done = run(*(INSTEAD.get(word, word) for word in words[1:]))
            assert done.returncode == 0, (words, done.stderr)
        assert (tmp_path / "tapes/agent.tape").is_file()
        agent.write_text(AGENT.replace('" ".join(sys.argv[1:])', '"another question"'))
        assert run("ci", "check").returncode == 1
