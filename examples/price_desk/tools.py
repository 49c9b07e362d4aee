"""The tools of the agent: one that writes, and one that only checks."""

import subprocess
import sys
from pathlib import Path

import tracefork_core as tracefork


@tracefork.tool(effect="write")
def edit(name: str, text: str) -> str:
    """Replace a file."""
    Path(name).write_text(text)
    return f"{name} has {len(text)} characters now"


@tracefork.tool(verifier=True)
def run_checks() -> dict:
    """Run the checks, and return how they ended."""
    command = [sys.executable, "check_prices.py"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return {"exit_code": done.returncode, "stderr": done.stderr}
