"""Run pydantic-ai's own examples, and the code of its docs, unmodified: plain, recorded, replayed.

    git clone --depth 1 https://github.com/pydantic/pydantic-ai
    python run.py pydantic-ai [PART OF A PATH…]

A provider on loopback answers them: it calls the tools that it is offered, one after the other, and
then says what the request wants. A program counts if it ends by itself against it without tracefork
and has asked it. The others need a real model, another service or a person, or show a part only.

Then it is recorded, and replayed in a new process: with another PYTHONHASHSEED, with the provider
stopped. Both must print the same and end alike; a replay does not run tools, so what a tool prints
is missing there. Prints a line for each program, and the counts.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tracefork_testkit import ModelRequest, ProviderServer, Reply, ToolCall

SKIPPED = re.compile(r"realtime|voice|ag_ui|gradio|chat_app|slack|/evals|temporal|dbos|prefect")
"""Audio, servers of pages, and other people's services."""
BLOCK = re.compile(r"^```py(?:thon)?( \{.*?\})?\n(.*?)^```$", re.MULTILINE | re.DOTALL)
PATIENCE = 120
EQUAL, TOOLS = "ok", "ok, without what its tools printed"
MOST_CALLS = 4


def answer(request: ModelRequest) -> Reply:
    """Call the offered tools one after the other, then answer as the request wants it."""
    called = sum(len(message.tool_results) for message in request.messages)
    outputs = [tool for tool in request.tools if tool.name.startswith("final_result")]
    others = [tool for tool in request.tools if tool not in outputs]
    if called < MOST_CALLS and others:
        tool = others[called % len(others)]
        return Reply(tool_calls=[called_with_sample(tool)])
    if outputs:
        return Reply(tool_calls=[called_with_sample(outputs[0])])
    return Reply("All is well.")


def called_with_sample(tool: Any) -> ToolCall:
    """Return a call of a tool, with arguments as its schema describes them."""
    arguments = sample(tool.schema)
    return ToolCall(tool.name, arguments if isinstance(arguments, dict) else {})


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
            return max(2, schema.get("minimum", 2))
        case "boolean":
            return False
    return "2026-01-02" if schema.get("format") == "date" else "Oslo"


class Program:
    """One program, in a folder of its own."""

    def __init__(self, name: str, files: dict[str, Path | str], words: list[str]) -> None:
        self.name = name
        self._files = files
        self._words = words

    def obstacle(self, folder: Path) -> str:
        """Return why it does not end by itself with the provider, without tracefork."""
        with ProviderServer(answer) as server:
            plain = self._run(folder / "plain", [sys.executable, *self._words], server.url, "1")
            is_asked = bool(server.requests)
        if plain[0] != 0:
            return (plain[2].strip().splitlines() or ["?"])[-1][:150]
        return "" if is_asked else "it asks no model"

    def compared(self, folder: Path) -> str:
        """Record and replay it, and return how the two differ."""
        tape = str(folder / "run.tape")
        tracefork = [str(Path(sys.executable).with_name("tracefork"))]
        record = [*tracefork, "record", "-o", tape, *self._words]
        with ProviderServer(answer) as server:
            url = server.url
            first = self._run(folder / "run", record, url, "1")
        again = self._run(folder / "run", [*tracefork, "replay", tape], url, "2")
        if first[:2] == again[:2] and first[0] == 0:
            return EQUAL
        if first[0] != 0:
            return f"the recording ended with {first[0]}: {first[2][-400:]}"
        if again[0] != 0:
            return f"the replay ended with {again[0]}: {again[2][-600:]}"
        if _is_part(again[1], first[1]):
            return TOOLS
        lines = zip(first[1].splitlines(), again[1].splitlines(), strict=False)
        differs = next((pair for pair in lines if pair[0] != pair[1]), ("more", "or less"))
        return f"printed {differs[0][:300]!r} and then {differs[1][:300]!r}"

    def _run(self, place: Path, words: list[str], url: str, seed: str) -> tuple[int, str, str]:
        if not place.exists():
            for name, source in self._files.items():
                (place / name).parent.mkdir(parents=True, exist_ok=True)
                if isinstance(source, str):
                    (place / name).write_text(source)
                elif source.is_dir():
                    shutil.copytree(source, place / name)
                else:
                    shutil.copy(source, place / name)
        names = ("OPENAI", "ANTHROPIC", "GOOGLE", "GROQ", "MISTRAL")
        paths = [str(place), *filter(None, [os.environ.get("PYTHONPATH")])]
        environment = os.environ | {
            **{f"{name}_API_KEY": "none" for name in names},
            "OPENAI_BASE_URL": f"{url}/v1",
            "ANTHROPIC_BASE_URL": url,
            "GOOGLE_GEMINI_BASE_URL": url,
            "GROQ_BASE_URL": url,
            "LOGFIRE_SEND_TO_LOGFIRE": "false",
            "PYTHONHASHSEED": seed,
            "PYTHONPATH": os.pathsep.join(paths),
        }
        try:
            ran = subprocess.run(
                words,
                cwd=place,
                env=environment,
                capture_output=True,
                text=True,
                stdin=subprocess.DEVNULL,
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


def programs(source: Path) -> Iterator[Program]:
    """Yield the examples, and each block of code in the docs that asks an agent."""
    package = source / "examples" / "pydantic_ai_examples"
    for path in sorted(package.rglob("*.py")):
        if "__main__" in path.read_text():
            module = ".".join(path.relative_to(package.parent).with_suffix("").parts)
            yield Program(f"examples/{module}", {package.name: package}, ["-m", module])
    for page in sorted((source / "docs").rglob("*.md")):
        for number, block in enumerate(BLOCK.finditer(page.read_text()), 1):
            options, code = block[1] or "", block[2]
            if ".run" not in code or 'test="skip"' in options:
                continue
            name = f"{page.relative_to(source)}:{number}"
            if "async def main(" in code and "run(main" not in code:
                code += "\n\nimport asyncio\n\nasyncio.run(main())\n"
            yield Program(name, {"program.py": code}, ["program.py"])


def main(source: Path, parts: list[str]) -> int:
    """Run all programs whose name has one of these parts, and print what came of it."""
    found: Counter[str] = Counter()
    for program in programs(source):
        if (parts and not any(part in program.name for part in parts)) or SKIPPED.search(
            program.name
        ):
            continue
        with tempfile.TemporaryDirectory() as folder:
            if obstacle := program.obstacle(Path(folder)):
                found["-"] += 1
                print(f"-    {program.name} {obstacle}", flush=True)
                continue
            result = program.compared(Path(folder))
        found[result if result in (EQUAL, TOOLS) else "FAIL"] += 1
        print(f"{program.name} {result}", flush=True)
    counted = found.total() - found["-"]
    print(f"{found[EQUAL]} of {counted} programs replay to equal output, {found['-']} do not run")
    print(f"{found[TOOLS]} print the same but for lines of tools, which a replay does not run")
    return 1 if found["FAIL"] else 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]).resolve(), sys.argv[2:]))
