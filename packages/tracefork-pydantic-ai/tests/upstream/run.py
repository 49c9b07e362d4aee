"""Run pydantic-ai's examples and the code of its docs, unmodified (`adapters.upstream`).

    git clone --depth 1 https://github.com/pydantic/pydantic-ai
    python run.py pydantic-ai [PART OF A PATH…]

Prints a line for each program that asks the provider, and the counts.
"""

from __future__ import annotations

import re
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path

sys.path.append(str(Path(__file__).parents[4] / "tests"))
from adapters.upstream import Example, Examples

SKIPPED = re.compile(r"realtime|voice|ag_ui|gradio|chat_app|slack|temporal|dbos|prefect")
"""Audio, servers of pages, and other people's services."""
BLOCK = re.compile(r"^( *)```py(?:thon)?( \{.*?\})?\n(.*?)^\1```$", re.MULTILINE | re.DOTALL)
OPTION = re.compile(r'(\w+)="([^"]*)"')
ASKS = re.compile(r"\.run|\.iter\(|model_request|\.evaluate")
RUNS_IT = "\n\nimport asyncio\n\nasyncio.run({}())\n"


def variables(url: str) -> dict[str, str]:
    """Return the environment of a program."""
    names = ("OPENAI", "ANTHROPIC", "GOOGLE", "GROQ", "MISTRAL", "PYDANTIC_AI_GATEWAY")
    return {
        **{f"{name}_API_KEY": "none" for name in names},
        "OPENAI_BASE_URL": f"{url}/v1",
        "ANTHROPIC_BASE_URL": url,
        "GOOGLE_GEMINI_BASE_URL": url,
        "GROQ_BASE_URL": url,
        "AWS_ENDPOINT_URL_BEDROCK_RUNTIME": url,
        "AWS_ACCESS_KEY_ID": "none",
        "AWS_SECRET_ACCESS_KEY": "none",
        "AWS_DEFAULT_REGION": "us-east-1",
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
        titled: dict[str, str] = {}
        for number, block in enumerate(BLOCK.finditer(page.read_text()), 1):
            options, code = dict(OPTION.findall(block[2] or "")), textwrap.dedent(block[3])
            titled[options.get("title", "")] = code
            if not ASKS.search(code) or options.get("test") == "skip":
                continue
            main = options.get("call_name", "main")
            if f"async def {main}(" in code and f"run({main}" not in code:
                code += RUNS_IT.format(main)
            needed = {name: titled[name] for name in options.get("requires", "").split(",") if name}
            name = f"{page.relative_to(source)}:{number}"
            yield Example(name, ("program.py",), files={**needed, "program.py": code})


if __name__ == "__main__":
    source = Path(sys.argv[1]).resolve()
    found = (one for one in programs(source) if not SKIPPED.search(one.name))
    sys.exit(Examples(variables, must_ask=True).run(found, sys.argv[2:]))
