"""Run the SDK's own examples, unmodified: plain, recorded and replayed.

    git clone --depth 1 https://github.com/openai/openai-agents-python
    python run.py openai-agents-python [PART OF A PATH…]

A provider on loopback answers them: it calls the tools and hand-offs that it is offered, one after
the other, and then says what the request wants. An example counts if it ends by itself against it
without tracefork. The others need a real model, another service, a microphone or a person.

Then it is recorded, and replayed in a new process: with another PYTHONHASHSEED, with the provider
stopped. Both must print the same and end alike; a replay does not run tools, so what a tool prints
is missing there. Prints a line for each example, and the counts.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

from tracefork_testkit import ModelRequest, ProviderServer, Reply, ToolCall

SKIPPED = re.compile(r"/(realtime|voice|sandbox|hosted_mcp)/|run_examples|codex|server\.py|app\.py")
"""Audio, containers, other people's servers and programs, and parts of other examples."""
PATIENCE = 60
EQUAL, TOOLS = "ok", "ok, without what its tools printed"
MOST_CALLS = 4


def answer(request: ModelRequest) -> Reply:
    """Call the offered tools one after the other, then answer as the request wants it."""
    called = sum(len(message.tool_results) for message in request.messages)
    if called < MOST_CALLS and request.tools:
        tool = request.tools[called % len(request.tools)]
        return Reply(tool_calls=[ToolCall(tool.name, sample(tool.schema))])
    payload: Any = request.payload
    wanted = payload.get("text", {}).get("format") or {}
    chat = payload.get("response_format", {}).get("json_schema") or {}
    schema = wanted.get("schema") or chat.get("schema")
    return Reply(json.dumps(sample(schema))) if schema else Reply("All is well.")


def sample(schema: Any, root: Any = None, name: str = "") -> Any:
    """Return a value that a JSON schema describes."""
    root = schema if root is None else root
    if "$ref" in schema:
        return sample(root["$defs"][schema["$ref"].rpartition("/")[2]], root, name)
    for several in ("anyOf", "oneOf", "allOf"):
        if several in schema:
            return sample(schema[several][0], root, name)
    if "enum" in schema or "const" in schema:
        return schema.get("const", schema.get("enum", [None])[0])
    match schema.get("type"):
        case "object":
            parts = schema.get("properties", {})
            return {key: sample(part, root, key) for key, part in parts.items()}
        case "array":
            return [sample(schema.get("items", {"type": "string"}), root, name)]
        case "integer" | "number":
            return 2
        case "boolean":
            return False
    return "pass" if name == "score" else "Oslo"


class Example:
    """One example, in a copy of the folder of all examples."""

    def __init__(self, source: Path, path: Path, folder: Path) -> None:
        self.module = ".".join(path.relative_to(source).with_suffix("").parts)
        self._source = source
        self._folder = folder

    def obstacle(self) -> str:
        """Return why it does not end by itself with the provider, without tracefork."""
        with ProviderServer(answer) as server:
            plain = self._run([sys.executable, "-m", self.module], server.url, "plain", "1")
        return "" if plain[0] == 0 else (plain[2].strip().splitlines() or ["?"])[-1][:200]

    def compared(self) -> str:
        """Record and replay it, and return how the two differ."""
        tape = str(self._folder / f"{self.module}.tape")
        tracefork = [str(Path(sys.executable).with_name("tracefork"))]
        record = [*tracefork, "record", "-o", tape, "-m", self.module]
        with ProviderServer(answer) as server:
            url = server.url
            first = self._run(record, url, "recorded", "1")
        again = self._run([*tracefork, "replay", tape], url, "recorded", "2")
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

    def _run(self, words: list[str], url: str, copy: str, seed: str) -> tuple[int, str, str]:
        place = self._folder / copy / self.module
        if not place.exists():
            shutil.copytree(self._source / "examples", place / "examples")
        paths = [str(place), *filter(None, [os.environ.get("PYTHONPATH")])]
        environment = os.environ | {
            "OPENAI_BASE_URL": f"{url}/v1",
            "OPENAI_API_KEY": "none",
            "OPENAI_AGENTS_DISABLE_TRACING": "1",
            "EXAMPLES_INTERACTIVE_MODE": "auto",
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


def main(source: Path, parts: list[str]) -> int:
    """Run all examples whose path has one of these parts, and print what came of it."""
    found: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as folder:
        for path in sorted((source / "examples").rglob("*.py")):
            is_wanted = not parts or any(part in str(path) for part in parts)
            if not is_wanted or SKIPPED.search(str(path)) or "__main__" not in path.read_text():
                continue
            example = Example(source, path, Path(folder))
            if obstacle := example.obstacle():
                print(f"-    {example.module} {obstacle}", flush=True)
                continue
            result = example.compared()
            found[result if result in (EQUAL, TOOLS) else "FAIL"] += 1
            print(f"{example.module} {result}", flush=True)
    print(f"{found[EQUAL]} of {found.total()} examples replay to equal output")
    print(f"{found[TOOLS]} print the same but for lines of tools, which a replay does not run")
    return 1 if found["FAIL"] else 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]).resolve(), sys.argv[2:]))
