"""Run the framework's own samples, unmodified: plain, recorded and replayed (`adapters.upstream`).

    git clone --depth 1 https://github.com/microsoft/agent-framework
    python run.py agent-framework/python/samples [PART OF A PATH…]

Many samples ask Foundry with a token of Azure's command line. The provider is their Foundry, and a
program called `az` gives them a token that no one checks. A person at the keyboard says yes a few
times, then leaves. Prints a line for each sample, and the counts.
"""

from __future__ import annotations

import json
import os
import re
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

sys.path.append(str(Path(__file__).parents[4] / "tests"))
from adapters.upstream import Example, Examples

FOLDERS = ("01-get-started", "02-agents", "03-workflows", "autogen-migration")
SKIPPED = re.compile(r"/(devui|declarative|hosted|harness|evaluation|observability)/")
"""User interfaces, services of Azure, and programs that measure time."""
SAID = "yes\n" * 5 + "exit\n" * 5
TOKEN = {"accessToken": "none", "expiresOn": "2099-01-01 00:00:00.0", "expires_on": 4070908800}
TOOLS = Path(tempfile.mkdtemp())
"""Holds the program `az`."""


def variables(url: str) -> dict[str, str]:
    """Return the environment of a sample."""
    return {
        "PATH": f"{TOOLS}{os.pathsep}{os.environ['PATH']}",
        "FOUNDRY_PROJECT_ENDPOINT": url,
        "FOUNDRY_MODEL": "gpt-5-mini",
        "OPENAI_BASE_URL": f"{url}/v1",
        "OPENAI_API_KEY": "none",
        "OPENAI_MODEL": "gpt-5-mini",
        "OPENAI_CHAT_MODEL": "gpt-5-mini",
        "OPENAI_CHAT_COMPLETION_MODEL": "gpt-5-mini",
        "ANTHROPIC_BASE_URL": url,
        "ANTHROPIC_API_KEY": "none",
        "ANTHROPIC_CHAT_MODEL": "claude-opus-5",
    }


def samples(source: Path) -> Iterator[Example]:
    """Find them; each runs in a copy of its folder."""
    for path in sorted(path for name in FOLDERS for path in (source / name).rglob("*.py")):
        name = str(path.relative_to(source))
        if not SKIPPED.search(name) and "__main__" in path.read_text():
            yield Example(name, (path.name,), said=SAID, files={".": path.parent})


if __name__ == "__main__":
    (TOOLS / "az").write_text(f"#!/bin/sh\necho '{json.dumps(TOKEN)}'\n")
    (TOOLS / "az").chmod(0o700)
    source = Path(sys.argv[1]).resolve()
    sys.exit(Examples(variables).run(samples(source), sys.argv[2:]))
