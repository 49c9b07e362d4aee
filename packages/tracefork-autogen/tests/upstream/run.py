"""Run AutoGen's notebooks and the programs in its docstrings, unmodified (`adapters.upstream`).

    git clone --depth 1 https://github.com/microsoft/autogen
    python run.py autogen [PART OF A NAME…]

A person at the keyboard approves of a few things, then leaves. Prints a line for each example, and
the counts.
"""

from __future__ import annotations

import ast
import re
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path

sys.path.append(str(Path(__file__).parents[4] / "tests"))
from adapters.upstream import Answers, Example, Examples

ANSWERS = Answers(says="All is well. APPROVE TERMINATE")
SAID = "APPROVE\n" * 5 + "exit\n" * 5
PROMPT = "Enter your response: "
_CELLS = Path(__file__).with_name("cells.py")
_BLOCK = re.compile(r"^( *)\.\. code-block:: python\n((?:\n|\1 +.*\n)+)", re.MULTILINE)


def variables(url: str) -> dict[str, str]:
    """Return the environment of an example."""
    return {
        "OPENAI_BASE_URL": f"{url}/v1",
        "OPENAI_API_KEY": "none",
        "ANTHROPIC_BASE_URL": url,
        "ANTHROPIC_API_KEY": "none",
    }


def examples(source: Path) -> Iterator[Example]:
    """Find the notebooks, and the programs in docstrings."""
    guides = source / "python" / "docs" / "src" / "user-guide"
    for path in sorted(guides.rglob("*.ipynb")):
        name = str(path.relative_to(guides).with_suffix(""))
        yield Example(name, (str(_CELLS), str(path)), said=SAID)
    packages = source / "python" / "packages"
    for path in sorted(packages.glob("autogen-*/src/**/*.py")):
        for number, (_, block) in enumerate(_BLOCK.findall(_texts_in(path)), 1):
            if "asyncio.run(" in block:
                name = f"{path.relative_to(packages).with_suffix('')}-{number}"
                code = textwrap.dedent(block).lstrip("\n")
                files = {"program.py": code}
                yield Example(name, ("program.py",), said=SAID, files=files, prompt=PROMPT)


def _texts_in(module: Path) -> str:
    """Return the docstrings of a module as Python reads them: a backslash may be doubled there."""
    parts = ast.walk(ast.parse(module.read_text()))
    found = [part.value for part in parts if isinstance(part, ast.Expr)]
    texts = [text.value for text in found if isinstance(text, ast.Constant)]
    return "\n".join(text for text in texts if isinstance(text, str))


if __name__ == "__main__":
    source = Path(sys.argv[1]).resolve()
    sys.exit(Examples(variables, answers=ANSWERS).run(examples(source), sys.argv[2:]))
