"""Run AutoGen's own examples, unmodified: plain, recorded and replayed.

    git clone --depth 1 https://github.com/microsoft/autogen
    python run.py autogen [PART OF A NAME…]

Examples are the notebooks of its guides and the programs in its docstrings. A provider on loopback
answers them: it calls the tools and hand-offs that it is offered, one after the other, and then
says what the request wants. A person at the keyboard approves of a few things, then leaves. An
example counts if it ends by itself against these without tracefork. The others need a real model,
another service or a library that is not installed.

Then it is recorded, and replayed in a new process: with another PYTHONHASHSEED, with the provider
stopped. Both must print the same and end alike; a replay does not run tools, so what a tool prints
is missing there. Prints a line for each example, and the counts.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
import textwrap
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tracefork_testkit import ModelRequest, ProviderServer, Reply, ToolCall

PATIENCE = 150
EQUAL, TOOLS = "ok", "ok, without what its tools printed"
MOST_CALLS = 4
SAID = "All is well. APPROVE TERMINATE"
_CELLS = Path(__file__).with_name("cells.py")
_BLOCK = re.compile(r"^( *)\.\. code-block:: python\n((?:\n|\1 +.*\n)+)", re.MULTILINE)
_STARTED = re.compile(r"asyncio\.run\(")


def answer(request: ModelRequest) -> Reply:
    """Call the offered tools one after the other, then answer as the request wants it."""
    called = sum(len(message.tool_results) for message in request.messages)
    if called < MOST_CALLS and request.tools:
        tool = request.tools[called % len(request.tools)]
        return Reply(tool_calls=[ToolCall(tool.name, sample(tool.schema))])
    payload: Any = request.payload
    wanted = payload.get("response_format", {}).get("json_schema") or {}
    schema = wanted.get("schema")
    return Reply(json.dumps(sample(schema))) if schema else Reply(SAID)


def sample(schema: Any, root: Any = None) -> Any:
    """Return a value that a JSON schema describes."""
    root = schema if root is None else root
    if "$ref" in schema:
        return sample(root["$defs"][schema["$ref"].rpartition("/")[2]], root)
    for several in ("anyOf", "oneOf", "allOf"):
        if several in schema:
            return sample(schema[several][0], root)
    if "enum" in schema or "const" in schema:
        return schema.get("const", schema.get("enum", [None])[0])
    match schema.get("type"):
        case "object":
            return {key: sample(part, root) for key, part in schema.get("properties", {}).items()}
        case "array":
            return [sample(schema.get("items", {"type": "string"}), root)]
        case "integer" | "number":
            return 2
        case "boolean":
            return False
    return "Oslo"


class Example:
    """One example, in a folder of its own."""

    def __init__(self, name: str, words: list[str], folder: Path) -> None:
        self.name = name
        self._words = words
        self._folder = folder

    def obstacle(self) -> str:
        """Return why it does not end by itself with the provider, without tracefork."""
        with ProviderServer(answer) as server:
            plain = self._run([sys.executable, *self._words], server.url, "plain", "1")
        return "" if plain[0] == 0 else (plain[2].strip().splitlines() or ["?"])[-1][:200]

    def compared(self) -> str:
        """Record and replay it, and return how the two differ."""
        tape = str(self._folder / "run.tape")
        tracefork = str(Path(sys.executable).with_name("tracefork"))
        with ProviderServer(answer) as server:
            url = server.url
            record = [tracefork, "record", "-o", tape, *self._words]
            first = self._run(record, url, "recorded", "1")
        again = self._run([tracefork, "replay", tape], url, "recorded", "2")
        if first[0] != 0:
            return f"the recording ended with {first[0]}: {first[2][-400:]}"
        if again[0] != 0:
            return f"the replay ended with {again[0]}: {again[2][-600:]}"
        if first[1] == again[1]:
            return EQUAL
        if _is_part(again[1], first[1]):
            return TOOLS
        lines = zip(first[1].splitlines(), again[1].splitlines(), strict=False)
        differs = next((pair for pair in lines if pair[0] != pair[1]), ("more", "or less"))
        return f"printed {differs[0][:300]!r} and then {differs[1][:300]!r}"

    def _run(self, words: list[str], url: str, copy: str, seed: str) -> tuple[int, str, str]:
        place = self._folder / copy
        place.mkdir(parents=True, exist_ok=True)
        environment = os.environ | {
            "OPENAI_BASE_URL": f"{url}/v1",
            "OPENAI_API_KEY": "none",
            "ANTHROPIC_BASE_URL": url,
            "ANTHROPIC_API_KEY": "none",
            "PYTHONHASHSEED": seed,
        }
        try:
            ran = subprocess.run(
                words,
                cwd=place,
                env=environment,
                capture_output=True,
                text=True,
                input="APPROVE\n" * 5 + "exit\n" * 5,
                timeout=PATIENCE,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return -1, "", f"it ran for more than {PATIENCE} s"
        return ran.returncode, ran.stdout, ran.stderr


def _is_part(some: str, whole: str) -> bool:
    """Return whether a text is another one without some of its lines."""
    left = iter(whole.splitlines())
    return all(line in left for line in some.splitlines())


def found(source: Path, folder: Path) -> Iterator[Example]:
    """Yield the notebooks, and the programs in docstrings, each written to a file."""
    guides = source / "python" / "docs" / "src" / "user-guide"
    for path in sorted(guides.rglob("*.ipynb")):
        name = str(path.relative_to(guides).with_suffix(""))
        yield Example(name, [str(_CELLS), str(path)], folder / name)
    packages = source / "python" / "packages"
    for path in sorted(packages.glob("autogen-*/src/**/*.py")):
        for number, (_, block) in enumerate(_BLOCK.findall(path.read_text()), 1):
            if _STARTED.search(block):
                name = f"{path.relative_to(packages).with_suffix('')}-{number}"
                place = folder / name
                place.mkdir(parents=True)
                (place / "program.py").write_text(textwrap.dedent(block).lstrip("\n"))
                yield Example(name, [str(place / "program.py")], place)


def main(source: Path, parts: list[str]) -> int:
    """Run all examples whose name has one of these parts, and print what came of it."""
    counts: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as folder:
        for example in found(source, Path(folder)):
            if parts and not any(part in example.name for part in parts):
                continue
            if obstacle := example.obstacle():
                print(f"-    {example.name} {obstacle}", flush=True)
                continue
            result = example.compared()
            counts[result if result in (EQUAL, TOOLS) else "FAIL"] += 1
            print(f"{example.name} {result}", flush=True)
    print(f"{counts[EQUAL]} of {counts.total()} examples replay to equal output")
    print(f"{counts[TOOLS]} print the same but for lines of tools, which a replay does not run")
    return 1 if counts["FAIL"] else 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]).resolve(), sys.argv[2:]))
