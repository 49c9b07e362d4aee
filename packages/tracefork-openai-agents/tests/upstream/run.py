"""Run the SDK's own examples, unmodified: plain, recorded and replayed (`adapters.upstream`).

    git clone --depth 1 https://github.com/openai/openai-agents-python
    python run.py openai-agents-python [PART OF A PATH…]

Prints a line for each example, and the counts.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path

sys.path.append(str(Path(__file__).parents[4] / "tests"))
from adapters.upstream import Example, Examples

SKIPPED = re.compile(r"/(realtime|voice|sandbox|hosted_mcp)/|run_examples|codex|server\.py|app\.py")
"""Audio, containers, other people's servers and programs, and parts of other examples."""


def variables(url: str) -> dict[str, str]:
    """Return the environment of an example."""
    return {
        "OPENAI_BASE_URL": f"{url}/v1",
        "OPENAI_API_KEY": "none",
        "OPENAI_AGENTS_DISABLE_TRACING": "1",
        "EXAMPLES_INTERACTIVE_MODE": "auto",
    }


def examples(source: Path) -> Iterator[Example]:
    """Find them."""
    for path in sorted((source / "examples").rglob("*.py")):
        if not SKIPPED.search(str(path)) and "__main__" in path.read_text():
            module = ".".join(path.relative_to(source).with_suffix("").parts)
            yield Example(module, ("-m", module))


if __name__ == "__main__":
    source = Path(sys.argv[1]).resolve()
    runs = Examples(variables, source / "examples", "examples")
    sys.exit(runs.run(examples(source), sys.argv[2:]))
