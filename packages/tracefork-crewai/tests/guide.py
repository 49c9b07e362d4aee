"""Do what the guide says: write its files, run its commands, its Python too."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[3]
GUIDE = ROOT / "docs" / "how-to" / "find-the-task-that-broke-your-crew.md"
_FENCE = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_BLAME = "blame"


def follow(*, blame: bool) -> list[str]:
    """Run each command and example of the guide in this folder; return what they printed.

    What comes after a command as text is what it has to print. Without `blame` what blames is left
    out: that takes minutes.
    """
    for file in (ROOT / "examples" / "newsroom").glob("*.py"):
        shutil.copy(file, Path.cwd())
    printed: list[str] = []
    for kind, text in _FENCE.findall(GUIDE.read_text()):
        if kind == "text":
            assert text.strip() in printed[-1]
        elif kind == "python" and "report" in text and not blame:
            continue
        elif kind == "python":
            printed.append(_run([sys.executable, "-c", text]))
        else:
            lines = [line.removeprefix("$ ") for line in text.splitlines()]
            commands = [line for line in lines if line.startswith("tracefork ")]
            chosen = [line for line in commands if blame or f" {_BLAME} " not in line]
            printed += [_run(_installed(line)) for line in chosen]
    return printed


def _installed(line: str) -> list[str]:
    command, *words = shlex.split(line)
    return [str(Path(sys.executable).with_name(command)), *words]


def _run(command: list[str]) -> str:
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=600, env=os.environ, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout + done.stderr
