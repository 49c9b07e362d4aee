"""Run Strands' own examples, unmodified: plain, recorded and replayed (`adapters.upstream`).

    git clone --depth 1 https://github.com/strands-agents/docs
    pip install strands-agents-tools strands-agents-evals
    python run.py docs/site/docs/examples [PART OF A PATH…]

Prints a line for each example, and the counts.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path

sys.path.append(str(Path(__file__).parents[4] / "tests"))
from adapters.upstream import Example, Examples

SKIPPED = re.compile(r"/(cdk|deploy_to_eks)/")
"""What is deployed."""
SAID = "Please help me.\nexit\n"


def variables(url: str) -> dict[str, str]:
    """Return the environment of an example."""
    return {
        "AWS_ENDPOINT_URL_BEDROCK_RUNTIME": url,
        "AWS_REGION": "us-east-1",
        "AWS_ACCESS_KEY_ID": "none",
        "AWS_SECRET_ACCESS_KEY": "none",
        "BYPASS_TOOL_CONSENT": "true",
    }


def examples(source: Path) -> Iterator[Example]:
    """Find them."""
    for path in sorted(source.rglob("*.py")):
        if not SKIPPED.search(str(path)) and "__main__" in path.read_text():
            place = path.relative_to(source)
            yield Example(str(place), (path.name,), f"examples/{place.parent}", SAID)


if __name__ == "__main__":
    source = Path(sys.argv[1]).resolve()
    runs = Examples(variables, source, "examples")
    sys.exit(runs.run(examples(source), sys.argv[2:]))
