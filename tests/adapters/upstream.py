"""Run a framework's own examples, unmodified: plain, recorded and replayed.

A provider on loopback answers them: it calls the tools and hand-offs that it is offered, one after
the other, and then says what the request wants. An example counts if it ends by itself against it
without tracefork. The others need a real model, another service, a microphone or a person.

Then it is recorded, and replayed in a new process: with another PYTHONHASHSEED, with the provider
stopped. Both must print the same and end alike; a replay does not run tools, so what a tool prints
is missing there.
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
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from tracefork_testkit import ModelRequest, ProviderServer, Reply, ToolCall

PATIENCE = 120
EQUAL, TOOLS = "ok", "ok, without what its tools printed"
MOST_CALLS = 4
_NOT_IN_NAMES = re.compile(r"[^\w.]+")


@dataclass(frozen=True)
class Answers:
    """Calls the offered tools one after the other, then answers as the request wants it.

    Attributes:
        says: what it says where a text is wanted.

    An agent that hands over no longer shows what it called. So each hand-off is made twice at most.
    """

    says: str = "All is well."
    _handed_over: Counter[str] = field(default_factory=Counter, init=False)

    def __call__(self, request: ModelRequest) -> Reply:
        """Answer a request."""
        payload: Any = request.payload
        called = sum(len(message.tool_results) for message in request.messages)
        outputs = [tool for tool in request.tools if tool.name.startswith("final_result")]
        done = {name for name, times in self._handed_over.items() if times > 1}
        tools = [tool for tool in request.tools if tool not in outputs and tool.name not in done]
        choice = payload.get("toolConfig", {}).get("toolChoice") or {}
        is_forced = bool({"any", "tool"} & choice.keys()) and called < 2 * MOST_CALLS
        if tools and (called < MOST_CALLS or is_forced):
            tool = tools[called % len(tools)]
            self._handed_over.update([tool.name] if tool.name.startswith("handoff_to_") else [])
            return _calling(tool)
        if outputs:  # pydantic-ai takes the end of a run as the arguments of a tool.
            return _calling(outputs[0])
        wanted = payload.get("text", {}).get("format") or {}
        chat = payload.get("response_format", {}).get("json_schema") or {}
        gemini = payload.get("generationConfig", {})
        schema = wanted.get("schema") or chat.get("schema")
        schema = schema or gemini.get("responseSchema") or gemini.get("responseJsonSchema")
        return Reply(json.dumps(sample(schema))) if schema else Reply(self.says)


def _calling(tool: Any) -> Reply:
    arguments = sample({"type": "object", **tool.schema})
    return Reply(tool_calls=[ToolCall(tool.name, arguments)])


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
    match str(schema.get("type")).lower():
        case "object":
            parts = schema.get("properties", {})
            return {key: sample(part, root, key) for key, part in parts.items()}
        case "array":
            return [sample(schema.get("items", {"type": "string"}), root, name)]
        case "integer" | "number":
            return min(max(2, schema.get("minimum", 2)), schema.get("maximum", 2))
        case "boolean":
            return False
        case "null":
            return None
    if schema.get("format") == "date":
        return "2026-01-02"
    return "pass" if name == "score" else "Oslo"


@dataclass(frozen=True)
class Example:
    """One example.

    Attributes:
        name: what the report calls it.
        words: what Python and `tracefork record` get: ("-m", "module") or ("script.py",).
        folder: where it runs, within the folder that is copied.
        said: what a person types.
        files: files and folders that it needs, or the text of a file, by their names there.
        prompt: what asks a person. A replay asks no person, so it is left out of what is compared.
    """

    name: str
    words: tuple[str, ...]
    folder: str = "."
    said: str = ""
    files: Mapping[str, Path | str] = field(default_factory=dict)
    prompt: str = ""


class Examples:
    """Examples, each of which runs in folders of its own.

    Args:
        variables: returns the environment of an example, from the provider's URL.
        folder: what all of them need: it is copied each time.
        into: its name in a copy, which is on PYTHONPATH.
        answers: the provider.
        must_ask: whether an example counts only if it asks the provider.
    """

    def __init__(
        self,
        variables: Callable[[str], dict[str, str]],
        folder: Path | None = None,
        into: str = ".",
        *,
        answers: Answers = Answers(),
        must_ask: bool = False,
    ) -> None:
        self._folder, self._into, self._variables = folder, into, variables
        self._answers, self._must_ask = answers, must_ask

    def run(self, examples: Iterable[Example], parts: list[str]) -> int:
        """Run all whose name has one of these parts, and print what came of it."""
        found: Counter[str] = Counter()
        for example in examples:
            if parts and not any(part in example.name for part in parts):
                continue
            with tempfile.TemporaryDirectory() as place:
                if obstacle := self._obstacle(example, Path(place)):
                    print(f"-    {example.name} {obstacle}", flush=True)
                    continue
                result = self._compared(example, Path(place))
            found[result if result in (EQUAL, TOOLS) else "FAIL"] += 1
            print(f"{example.name} {result}", flush=True)
        print(f"{found[EQUAL]} of {found.total()} examples replay to equal output")
        print(f"{found[TOOLS]} print the same but for lines of tools, which a replay does not run")
        return 1 if found["FAIL"] else 0

    def _obstacle(self, example: Example, place: Path) -> str:
        """Return why it does not end by itself with the provider, without tracefork."""
        with ProviderServer(replace(self._answers)) as server:
            words = [sys.executable, *example.words]
            plain = self._ran(example, words, server.url, place / "plain", "1")
            is_silent = self._must_ask and not server.requests
        if plain[0] != 0:
            return (plain[2].strip().splitlines() or ["?"])[-1][:200]
        return "it asks no model" if is_silent else ""

    def _compared(self, example: Example, place: Path) -> str:
        """Record and replay it, and return how the two differ."""
        tape = str(place / f"{_NOT_IN_NAMES.sub('-', example.name)}.tape")
        tracefork = [str(Path(sys.executable).with_name("tracefork"))]
        record = [*tracefork, "record", "-o", tape, *example.words]
        with ProviderServer(replace(self._answers)) as server:
            url = server.url
            first = self._ran(example, record, url, place / "recorded", "1")
        again = self._ran(example, [*tracefork, "replay", tape], url, place / "recorded", "2")
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

    def _ran(
        self, example: Example, words: list[str], url: str, place: Path, seed: str
    ) -> tuple[int, str, str]:
        if not place.exists():
            self._copy(example, place)
        paths = [str(place), *filter(None, [os.environ.get("PYTHONPATH")])]
        environment = {
            **os.environ,
            **self._variables(url),
            "PYTHONHASHSEED": seed,
            "PYTHONPATH": os.pathsep.join(paths),
        }
        try:
            ran = subprocess.run(
                words,
                cwd=place / example.folder,
                env=environment,
                capture_output=True,
                text=True,
                input=example.said,
                timeout=PATIENCE,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return -1, "", f"it ran for more than {PATIENCE} s"
        printed = ran.stdout.replace(example.prompt, "") if example.prompt else ran.stdout
        return ran.returncode, printed, ran.stderr

    def _copy(self, example: Example, place: Path) -> None:
        place.mkdir(parents=True)
        if self._folder is not None:
            shutil.copytree(self._folder, place / self._into, dirs_exist_ok=True)
        for name, source in example.files.items():
            if isinstance(source, str):
                (place / name).write_text(source)
            elif source.is_dir():
                shutil.copytree(source, place / name, dirs_exist_ok=True)
            else:
                shutil.copy(source, place / name)


def _is_part(some: str, whole: str) -> bool:
    """Return whether a text is another one without some of its lines."""
    left = iter(whole.splitlines())
    return all(line in left for line in some.splitlines())
