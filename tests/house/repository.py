"""The packages of this repository, and how the house tests run commands on them."""

from __future__ import annotations

import os
import subprocess
import sys
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]

# What `pip install` of each folder brings, on top of those before it: a dependency of a dependency
# is our users' too, so whatever comes or goes is seen here.
PULLED = {
    "tracefork-core": """
        annotated-doc annotated-types anyio backports-zstd genai-prices h11 httpcore2
        httpx2 idna markdown-it-py mdurl msgspec pydantic pydantic-core pygments rich shellingham
        time-machine tracefork-core truststore typer typing-extensions typing-inspection
    """,
    "tracefork-langgraph": """
        certifi charset-normalizer distro httpcore httpx jsonpatch jsonpointer langchain-core
        langchain-protocol langgraph langgraph-checkpoint langgraph-prebuilt langgraph-sdk langsmith
        orjson ormsgpack packaging pyyaml requests requests-toolbelt sniffio tenacity
        tracefork-langgraph urllib3 uuid-utils
        websockets xxhash zstandard
    """,
    "tracefork-testkit": "tracefork-testkit",
}
# CrewAI brings 137 distributions and a gigabyte, others with every week's release, and pins that do
# not go with LangGraph's: what the adapter itself asks for is looked at, and nothing is fetched.
ASKS = {
    "tracefork-agent-framework": [
        "agent-framework-core",
        "tracefork-core",
        "tracefork-mcp",
    ],
    "tracefork-autogen": [
        "autogen-agentchat",
        "autogen-core",
        "msgspec",
        "tracefork-core",
        "tracefork-mcp",
    ],
    "tracefork-bedrock": ["boto3", "tracefork-core"],
    "tracefork-claude-agent-sdk": ["claude-agent-sdk", "tracefork-core"],
    "tracefork-crewai": ["crewai", "msgspec", "pydantic", "tracefork-core"],
    "tracefork-google-adk": [
        "google-adk",
        "msgspec",
        "pydantic",
        "pyyaml",
        "tracefork-core",
        "tracefork-mcp",
    ],
    "tracefork-mcp": ["anyio", "mcp", "tracefork-core"],
    "tracefork-openai-agents": [
        "msgspec",
        "openai-agents",
        "tracefork-core",
        "tracefork-mcp",
        "websockets",
    ],
    "tracefork-pydantic-ai": [
        "pydantic",
        "pydantic-ai-slim",
        "pydantic-core",
        "pydantic-graph",
        "tracefork-core",
        "tracefork-mcp",
    ],
}


@dataclass(frozen=True)
class Package:
    """One distribution: its folder, and the [project] table of its pyproject.toml."""

    folder: Path
    project: dict[str, Any]

    @property
    def name(self) -> str:
        return str(self.project["name"])

    @property
    def module(self) -> str:
        return self.name.replace("-", "_")

    @property
    def source(self) -> Path:
        return self.folder / "src" / self.module


@dataclass(frozen=True)
class Built:
    """The two files that a release of a package uploads."""

    wheel: Path
    sdist: Path


def packages() -> list[Package]:
    """Return every distribution of the repository, by name."""
    files = [*ROOT.glob("shared/*/pyproject.toml"), *ROOT.glob("packages/*/pyproject.toml")]
    found = [Package(path.parent, tomllib.loads(path.read_text())["project"]) for path in files]
    return sorted(found, key=lambda package: package.name)


def run(*command: str | Path) -> str:
    """Return what a command prints, or fail with its errors.

    It runs without the variables by which this environment could leak into another one.
    """
    kept = {k: v for k, v in os.environ.items() if k not in {"PYTHONPATH", "VIRTUAL_ENV"}}
    done = subprocess.run(
        [str(part) for part in command],
        cwd=ROOT,
        env=kept,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def run_python(code: str, python: str | Path = sys.executable) -> str:
    """Return what `code` prints in a fresh interpreter that sees its own packages only."""
    return run(python, "-I", "-c", code)
