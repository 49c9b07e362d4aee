"""Run the framework's own samples, unmodified: plain, recorded and replayed (`adapters.upstream`).

    git clone --depth 1 https://github.com/microsoft/agent-framework
    python run.py agent-framework/python/samples [PART OF A PATH…]

Prints a line for each sample, and the counts. Those that need Azure do not end by themselves.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path

sys.path.append(str(Path(__file__).parents[4] / "tests"))
from adapters.upstream import Example, Examples

FOLDERS = ("01-get-started", "02-agents", "03-workflows", "autogen-migration")
SKIPPED = re.compile(r"/(devui|declarative|foundry|hosted|harness|evaluation|observability)/")
"""User interfaces, services of Azure, and programs that measure time."""


def variables(url: str) -> dict[str, str]:
    """Return the environment of a sample."""
    return {
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
            yield Example(name, (path.name,), files={".": path.parent})


if __name__ == "__main__":
    source = Path(sys.argv[1]).resolve()
    sys.exit(Examples(variables).run(samples(source), sys.argv[2:]))
