"""Run the code cells of a notebook as Jupyter does: one after the other, on one event loop.

    python cells.py NOTEBOOK.ipynb

Lines for the shell (`!pip …`, `pip …`) and for Jupyter (`%…`) are left out.
"""

from __future__ import annotations

import ast
import asyncio
import inspect
import json
import sys
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any

_OTHERS = ("!", "%", "pip ")


async def run(cells: list[str], name: str) -> None:
    """Run cells that share their names and may await at the top."""
    main = ModuleType("__main__")
    sys.modules["__main__"] = main  # Where pickles and type hints look the names up.
    for number, cell in enumerate(cells):
        lines = [line for line in cell.splitlines() if not line.lstrip().startswith(_OTHERS)]
        flags = ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
        code: Any = compile("\n".join(lines), f"{name}[{number}]", "exec", flags=flags)
        result = FunctionType(code, vars(main))()
        if inspect.isawaitable(result):
            await result


def cells_of(notebook: Path) -> list[str]:
    """Return the source of each code cell."""
    cells = json.loads(notebook.read_text())["cells"]
    return ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]


if __name__ == "__main__":
    path = Path(sys.argv[1])
    asyncio.run(run(cells_of(path), path.stem))
