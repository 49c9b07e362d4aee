"""What every source file of the repository keeps to, and no linter checks."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

from house.repository import ROOT, Package, packages

TESTS = [ROOT / "tests", *(package.folder / "tests" for package in packages())]
INDEX = re.compile(r"(--index-url|--extra-index-url|index-url\s*=|\[\[tool\.uv\.index\]\])")


# Where the name that is imported is not the name that is installed.
IMPORTED_AS = {
    "agent-framework-core": "agent_framework",
    "pydantic-ai-slim": "pydantic_ai",
    "openai-agents": "agents",
    "backports.zstd": "backports",
    "google-adk": "google",
    "pyyaml": "yaml",
    "langgraph-checkpoint": "langgraph",
    "opentelemetry-exporter-otlp-proto-http": "opentelemetry",
    "opentelemetry-sdk": "opentelemetry",
    "strands-agents": "strands",
}
# A distribution whose parts are imported by their own names: boto3 is a shell around botocore.
PARTS = {
    "pytest": {"pytest", "_pytest"},
    "boto3": {"botocore", "urllib3"},
    "aiobotocore": {"aiobotocore", "aiohttp"},
}
# Core uses it where a framework that needs it calls, and nowhere else.
BROUGHT_BY_FRAMEWORKS = {"tracefork_core": {"pydantic", "pydantic_core"}}
# Standard library of a newer Python, and a part of a dependency under a name of its own.
KNOWN = {"compression", "_time_machine"}


def import_name(requirement: str) -> str:
    """Return what a requirement is imported as, by its first name."""
    name = re.split(r"[\s<>=!~;\[]", requirement, maxsplit=1)[0].lower()
    return IMPORTED_AS.get(name, name.replace("-", "_"))


def with_parts(names: Iterable[str]) -> set[str]:
    """Return what can be imported of distributions that are imported by these names."""
    return {part for name in names for part in PARTS.get(name, {name})}


def imported_by(package: Package) -> set[str]:
    """Return the first names of everything foreign that the sources import, lazily too."""
    found: set[str] = set()
    for path in package.source.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Import):
                found.update(alias.name.split(".")[0] for alias in node.names)
            elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                found.add(node.module.split(".")[0])
    return found - set(sys.stdlib_module_names) - KNOWN - {package.module}


def proofs_in(folder: Path) -> Iterator[tuple[str, ast.FunctionDef | ast.AsyncFunctionDef]]:
    """Yield each test function with the place people look for it."""
    for path in sorted(folder.rglob("test_*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith(
                "test_"
            ):
                yield f"{path.relative_to(ROOT)}:{node.lineno} {node.name}", node


def test_every_test_says_what_it_proves() -> None:
    """Each test has a docstring: the behaviour, in a sentence."""
    silent = [
        place
        for folder in TESTS
        for place, node in proofs_in(folder)
        if not ast.get_docstring(node)
    ]
    assert silent == []


def test_every_test_fits_on_a_screen() -> None:
    """No test is longer than 40 lines."""
    long = [
        place
        for folder in TESTS
        for place, node in proofs_in(folder)
        if (node.end_lineno or 0) - node.lineno >= 40
    ]
    assert long == []


def test_dependencies_are_what_the_sources_import(package: Package) -> None:
    """A package asks for what its sources import: nothing more, and nothing less."""
    optional = package.project.get("optional-dependencies", {})
    needed = list(package.project.get("dependencies", []))
    offered = [name for extra, names in optional.items() if extra != "test" for name in names]
    asked = {import_name(requirement) for requirement in needed}
    asked -= {"tracefork_mcp"}  # Its instrument works by being installed.
    asked, may_ask = with_parts(asked), with_parts(map(import_name, offered))
    assert asked - imported_by(package) == set()
    brought = BROUGHT_BY_FRAMEWORKS.get(package.module, set())
    assert imported_by(package) - asked - may_ask - brought == set()


def test_no_file_names_a_package_index() -> None:
    """Where packages come from is the business of whoever installs them."""
    files = [*ROOT.glob("*.toml"), *ROOT.glob("*.ini"), *ROOT.glob("*/*/*.toml")]
    files += ROOT.glob("*/*/constraints/*")
    assert [str(path) for path in files if INDEX.search(path.read_text())] == []
