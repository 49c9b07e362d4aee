"""Run pydantic-ai's examples and the code of its docs, unmodified (`adapters.upstream`).

    git clone --depth 1 https://github.com/pydantic/pydantic-ai
    python run.py pydantic-ai [PART OF A PATH…]

Prints a line for each program that asks the provider, and the counts.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path

sys.path.append(str(Path(__file__).parents[4] / "tests"))
from adapters.upstream import Example, Examples

SKIPPED = re.compile(r"realtime|voice|ag_ui|gradio|chat_app|slack|/evals|temporal|dbos|prefect")
"""Audio, servers of pages, and other people's services."""
BLOCK = re.compile(r"^```py(?:thon)?( \{.*?\})?\n(.*?)^```$", re.MULTILINE | re.DOTALL)
RUNS_MAIN = "\n\nimport asyncio\n\nasyncio.run(main())\n"


def variables(url: str) -> dict[str, str]:
    """Return the environment of a program."""
    names = ("OPENAI", "ANTHROPIC", "GOOGLE", "GROQ", "MISTRAL")
    return {
        **{f"{name}_API_KEY": "none" for name in names},
        "OPENAI_BASE_URL": f"{url}/v1",
        "ANTHROPIC_BASE_URL": url,
        "GOOGLE_GEMINI_BASE_URL": url,
        "GROQ_BASE_URL": url,
        "LOGFIRE_SEND_TO_LOGFIRE": "false",
    }


def programs(source: Path) -> Iterator[Example]:
    """Find the examples, and each block of code in the docs that runs an agent."""
    package = source / "examples" / "pydantic_ai_examples"
    for path in sorted(package.rglob("*.py")):
        if "__main__" in path.read_text():
            module = ".".join(path.relative_to(package.parent).with_suffix("").parts)
            yield Example(f"examples/{module}", ("-m", module), files={package.name: package})
    for page in sorted((source / "docs").rglob("*.md")):
        for number, block in enumerate(BLOCK.finditer(page.read_text()), 1):
            options, code = block[1] or "", block[2]
            if ".run" not in code or 'test="skip"' in options:
                continue
            if "async def main(" in code and "run(main" not in code:
                code += RUNS_MAIN
            name = f"{page.relative_to(source)}:{number}"
            yield Example(name, ("program.py",), files={"program.py": code})


if __name__ == "__main__":
    source = Path(sys.argv[1]).resolve()
    found = (one for one in programs(source) if not SKIPPED.search(one.name))
    sys.exit(Examples(variables, must_ask=True).run(found, sys.argv[2:]))
