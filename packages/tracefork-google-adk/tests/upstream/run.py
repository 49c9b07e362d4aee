"""Run ADK's own samples, unmodified: plain, recorded and replayed (`adapters.upstream`).

    git clone --depth 1 https://github.com/google/adk-python
    python run.py adk-python/contributing/samples [PART OF A PATH…]

A sample without a program is run by ADK's own command, `adk run`.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

sys.path.append(str(Path(__file__).parents[4] / "tests"))
from adapters.upstream import Example, Examples

SAID = "Please help me.\nAnd now?\nexit\n"


def variables(url: str) -> dict[str, str]:
    """Return the environment of a sample."""
    return {
        "GOOGLE_GEMINI_BASE_URL": url,
        "GOOGLE_API_KEY": "none",
        "OPENAI_BASE_URL": f"{url}/v1",
        "OPENAI_API_KEY": "none",
        "ANTHROPIC_BASE_URL": url,
        "ANTHROPIC_API_KEY": "none",
    }


def samples(source: Path) -> Iterator[Example]:
    """Find them."""
    for path in sorted(source.rglob("agent.py")):
        place = path.parent.relative_to(source)
        if (path.parent / "main.py").exists():
            yield Example(str(place), ("main.py",), f"samples/{place}")
        else:
            words = ("-m", "google.adk.cli", "run", path.parent.name)
            yield Example(str(place), words, f"samples/{place.parent}", SAID)


if __name__ == "__main__":
    source = Path(sys.argv[1]).resolve()
    runs = Examples(variables, source, "samples")
    sys.exit(runs.run(samples(source), sys.argv[2:]))
