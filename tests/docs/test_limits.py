"""The list of limits is complete, rendered from its data, and its tests exist."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path
from types import ModuleType

ROOT = Path(__file__).parents[2]
_FOLDERS = {
    "docs": ROOT / "tests" / "docs",
    "adk": ROOT / "packages" / "tracefork-google-adk" / "tests",
    "agent-framework": ROOT / "packages" / "tracefork-agent-framework" / "tests",
    "agents": ROOT / "packages" / "tracefork-openai-agents" / "tests",
    "autogen": ROOT / "packages" / "tracefork-autogen" / "tests",
    "bedrock": ROOT / "packages" / "tracefork-bedrock" / "tests",
    "claude": ROOT / "packages" / "tracefork-claude-agent-sdk" / "tests",
    "langgraph": ROOT / "packages" / "tracefork-langgraph" / "tests",
    "crewai": ROOT / "packages" / "tracefork-crewai" / "tests",
    "mcp": ROOT / "packages" / "tracefork-mcp" / "tests",
    "pydantic-ai": ROOT / "packages" / "tracefork-pydantic-ai" / "tests",
}
_CORE = ROOT / "shared" / "tracefork-core" / "tests"
_FIELDS = {"area", "what", "happens", "shows", "remedy", "tests"}


def renderer() -> ModuleType:
    """Load docs/limits_page.py, which is a script and no package."""
    spec = importlib.util.spec_from_file_location("limits_page", ROOT / "docs" / "limits_page.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def missing_tests(named: list[str]) -> list[str]:
    """Return the tests that do not exist under the name that the list gives."""
    missing = []
    for test in named:
        path, _, name = test.partition("::")
        folder, _, rest = path.partition("/")
        file = _FOLDERS.get(folder, _CORE / folder) / rest
        if not file.is_file() or not re.search(rf"def {name}\(", file.read_text()):
            missing.append(test)
    return missing


def test_the_page_is_rendered_from_the_data() -> None:
    """Run `python docs/limits_page.py` after a change of limits.toml."""
    module = renderer()
    assert module.PAGE.read_text() == module.page()


def test_every_limit_has_every_field() -> None:
    """A limit says what it is about, what happens, how it shows, what to do and its tests."""
    entries = renderer().limits()
    assert len(entries) > 100
    for entry in entries:
        assert set(entry) == _FIELDS, entry
        assert all(entry[field] for field in _FIELDS - {"tests"}), entry
        assert entry["happens"].endswith(".")
        assert entry["remedy"].endswith("."), entry


def test_the_tests_of_the_limits_exist() -> None:
    """Each is a function of the file that is named; a renamed test is noticed."""
    named = [test for entry in renderer().limits() for test in entry["tests"]]
    assert len(named) > 60
    assert missing_tests(named) == []
    assert missing_tests(["run/test_scope.py::test_nothing"]) == ["run/test_scope.py::test_nothing"]


def test_the_short_page_has_about_ten_points() -> None:
    """A page that lists everything is read by nobody: the rest is in the reference."""
    page = (ROOT / "docs" / "limits.md").read_text()
    assert 8 <= len(re.findall(r"^- ", page, re.MULTILINE)) <= 12
