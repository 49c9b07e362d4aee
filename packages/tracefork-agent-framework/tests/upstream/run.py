"""Run the framework's own samples, unmodified: plain, recorded and replayed.

    git clone --depth 1 https://github.com/microsoft/agent-framework
    python run.py agent-framework/python/samples [PART OF A PATH…]

A provider on loopback answers them: it calls the tools that it is offered, one after the other, and
then says what the request wants. A sample counts if it ends by itself against it without tracefork.
The others need Azure, another service or a person.

Then it is recorded, and replayed in a new process: with another PYTHONHASHSEED, with the provider
stopped. Both must print the same and end alike; a replay does not run tools, so what a tool prints
is missing there. Prints a line for each sample, and the counts.
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

FOLDERS = ("01-get-started", "02-agents", "03-workflows", "autogen-migration")
SKIPPED = re.compile(r"/(devui|declarative|foundry|hosted|harness|evaluation|observability)/")
"""User interfaces, services of Azure, and programs that measure time."""
PATIENCE = 60
EQUAL, TOOLS = "ok", "ok, without what its tools printed"
MOST_CALLS = 3


def answer(request: ModelRequest) -> Reply:
    """Call the offered tools one after the other, then answer as the request wants it."""
    called = sum(len(message.tool_results) for message in request.messages)
    tools = [tool for tool in request.tools if tool.schema.get("type") == "object"]
    if called < MOST_CALLS and tools:  # The others are the provider's own.
        tool = tools[called % len(tools)]
        return Reply(tool_calls=[ToolCall(tool.name, sample(tool.schema))])
    payload: Any = request.payload
    wanted = payload.get("text", {}).get("format") or {}
    chat = payload.get("response_format", {}).get("json_schema") or {}
    schema = wanted.get("schema") or chat.get("schema")
    return Reply(json.dumps(sample(schema))) if schema else Reply("All is well.")


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
    values: dict[str, Any] = {"integer": 2, "number": 2, "boolean": True, "null": None}
    match schema.get("type"):
        case "object":
            parts = schema.get("properties", {})
            return {key: sample(part, root) for key, part in parts.items()}
        case "array":
            return [sample(schema.get("items", {"type": "string"}), root)]
        case kind:
            return values.get(str(kind), "Oslo")


class Run:
    """A run of a sample, in a copy of its folder."""

    def __init__(self, sample: Path, folder: Path) -> None:
        self._sample = sample
        self._folder = folder
        self._tape = str(folder / "run.tape")

    def plain(self) -> str:
        """Return why it does not end by itself with the provider, without tracefork."""
        with ProviderServer(answer) as server:
            code, _, errors = self._in("plain", [sys.executable], server.url, "1")
        return "" if code == 0 else (errors.strip().splitlines() or ["?"])[-1][:160]

    def compared(self) -> str:
        """Record and replay it, and return how the two differ."""
        command = str(Path(sys.executable).with_name("tracefork"))
        with ProviderServer(answer) as server:
            url = server.url
            words = [command, "record", "-o", self._tape]
            first = self._in("recorded", words, url, "1")
        again = self._in("replayed", [command, "replay", self._tape], url, "2")
        for name, ended in (("recording", first), ("replay", again)):
            if ended[0] != 0:
                return f"the {name} ended with {ended[0]}: {ended[2][-500:]}"
        if first[1] == again[1]:
            return EQUAL
        rest = iter(first[1].splitlines())
        if all(line in rest for line in again[1].splitlines()):
            return TOOLS
        pairs = zip(first[1].splitlines(), again[1].splitlines(), strict=False)
        differs = next((pair for pair in pairs if pair[0] != pair[1]), ("more", "or less"))
        return f"printed {differs[0][:200]!r} and then {differs[1][:200]!r}"

    def _in(self, copy: str, words: list[str], url: str, seed: str) -> tuple[int, str, str]:
        place = self._folder / ("plain" if copy == "plain" else "run")
        if not place.exists():
            shutil.copytree(self._sample.parent, place)
        environment = os.environ | {
            "OPENAI_BASE_URL": f"{url}/v1",
            "OPENAI_API_KEY": "none",
            "OPENAI_MODEL": "gpt-5-mini",
            "OPENAI_CHAT_MODEL": "gpt-5-mini",
            "OPENAI_CHAT_COMPLETION_MODEL": "gpt-5-mini",
            "ANTHROPIC_BASE_URL": url,
            "ANTHROPIC_API_KEY": "none",
            "ANTHROPIC_CHAT_MODEL": "claude-opus-5",
            "PYTHONHASHSEED": seed,
        }
        script = [] if copy == "replayed" else [self._sample.name]
        try:
            ran = subprocess.run(
                [*words, *script],
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


def main(source: Path, parts: list[str]) -> int:
    """Run all samples whose path has one of these parts, and print what came of it."""
    found: Counter[str] = Counter()
    for path in sorted(path for name in FOLDERS for path in (source / name).rglob("*.py")):
        name = str(path.relative_to(source))
        is_wanted = not parts or any(part in name for part in parts)
        if not is_wanted or SKIPPED.search(name) or "__main__" not in path.read_text():
            continue
        with tempfile.TemporaryDirectory() as folder:
            run = Run(path, Path(folder))
            if obstacle := run.plain():
                print(f"-    {name} {obstacle}", flush=True)
                continue
            result = run.compared()
        found[result if result in (EQUAL, TOOLS) else "FAIL"] += 1
        print(f"{name} {result}", flush=True)
    print(f"{found[EQUAL]} of {found.total()} samples replay to equal output")
    print(f"{found[TOOLS]} print the same but for lines of tools, which a replay does not run")
    return 1 if found["FAIL"] else 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]).resolve(), sys.argv[2:]))
