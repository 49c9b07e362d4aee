"""The public surface: one pinned list per package, and imports that stay light."""

from __future__ import annotations

import importlib
import json
import types

import pytest
from house.repository import Package, run_python

# A change here is a change of the interface: it belongs in the changelog of the package.
PUBLIC = {
    "tracefork_core": [
        "BoundaryError",
        "BoundaryWarning",
        "Comparison",
        "DivergenceError",
        "Drifting",
        "Drop",
        "Edit",
        "EgressError",
        "Fail",
        "Forking",
        "Judge",
        "Keep",
        "NondetSource",
        "Recorder",
        "Replace",
        "ReplayError",
        "Report",
        "Resample",
        "SurroundingsWarning",
        "Tape",
        "TapeError",
        "ToolError",
        "TraceforkError",
        "UsageError",
        "WriteError",
        "__version__",
        "assert_matches",
        "assert_no_diff",
        "bind",
        "bisect",
        "blame",
        "carry",
        "diff",
        "fork",
        "export_spans",
        "observe",
        "record",
        "replay",
        "rerun",
        "tool",
        "use_tape",
    ],
    "tracefork_core.adapters": [
        "Adapter",
        "Attached",
        "BlockIn",
        "Changes",
        "ChangingCall",
        "Checkpoints",
        "Effect",
        "Failure",
        "FindProject",
        "FrameworkValues",
        "Head",
        "Imported",
        "Importer",
        "Instrument",
        "Lane",
        "Late",
        "Live",
        "Noted",
        "Outcome",
        "Patches",
        "ProgramValues",
        "Project",
        "Recorded",
        "RecordedRun",
        "Request",
        "RunningStep",
        "SavedCheckpoint",
        "SavedValue",
        "SavedWrite",
        "State",
        "Stored",
        "ToolMark",
        "Values",
        "also_a",
        "answering_tape",
        "as_json",
        "ask_where",
        "atool_exchange",
        "atool_stream",
        "begin_step",
        "bind_until_undo",
        "branch_lane",
        "check_asked",
        "check_session",
        "checked_events",
        "checkpoints",
        "classes_in",
        "crossing_seam",
        "current_step",
        "effect_of",
        "end_step",
        "events_in",
        "fork_point",
        "found_adapters",
        "holds_data",
        "in_session",
        "is_crossing_seam",
        "is_recorded_here",
        "lane_here",
        "lazy_names",
        "mark_as_recorded",
        "mask_secrets_of",
        "memory_checkpoints",
        "numbered",
        "own_branches",
        "put_in_front",
        "recorded_checkpoints",
        "recorded_runs",
        "recorded_tool",
        "replace_in_classes",
        "restart_lane_numbers",
        "result_classes",
        "revisited_checkpoint",
        "session_checked",
        "session_here",
        "state_of",
        "step",
        "take_lane",
        "tool_exchange",
        "tool_mark",
        "undisturbed",
        "upkeep",
        "values_set",
        "without_secrets",
    ],
    "tracefork_core.adapters.formats": [
        "Answer",
        "Asked",
        "BlobPart",
        "Carried",
        "FilePart",
        "Format",
        "GenericPart",
        "Json",
        "Message",
        "ModelCall",
        "ModelError",
        "Part",
        "ReasoningPart",
        "ServerToolCallPart",
        "ServerToolCallResponsePart",
        "TextPart",
        "ToolCallPart",
        "ToolCallResponsePart",
        "ToolDefinition",
        "ToolUse",
        "UriPart",
        "Usage",
        "Wanted",
        "answer_as",
        "change_as",
        "events_as",
        "from_base64",
        "from_url",
        "join_fragments",
        "lenient",
        "parameters",
        "read_as",
        "set_values",
    ],
    "tracefork_crewai": [
        "ADAPTER",
        "__version__",
        "attach",
        "blame",
        "detach",
        "fork",
        "leave_live",
        "record",
        "replay",
    ],
    "tracefork_langgraph": [
        "ADAPTER",
        "TapeSaver",
        "TapeToolMiddleware",
        "TracingHandler",
        "__version__",
        "afork",
        "arerun",
        "aresume",
        "attach",
        "bind",
        "bind_tool",
        "bind_tools",
        "detach",
        "fork",
        "history",
        "rerun",
        "resume",
        "unbind",
        "unbind_tool",
        "unbind_tools",
    ],
    "tracefork_agent_framework": ["ADAPTER", "__version__", "attach", "detach", "leave_live"],
    "tracefork_autogen": ["ADAPTER", "__version__", "attach", "detach", "fork_state", "leave_live"],
    "tracefork_bedrock": ["ADAPTER", "__version__", "add_services", "attach", "detach"],
    "tracefork_claude_agent_sdk": ["ADAPTER", "__version__", "attach", "detach"],
    "tracefork_google_adk": [
        "ADAPTER",
        "__version__",
        "attach",
        "detach",
        "fork_session",
        "import_recording",
        "leave_live",
    ],
    "tracefork_mcp": ["ADAPTER", "__version__", "attach", "declare"],
    "tracefork_openai_agents": ["ADAPTER", "__version__", "attach", "detach", "leave_live"],
    "tracefork_pydantic_ai": [
        *("ADAPTER", "__version__", "attach", "detach", "leave_live", "tape"),
    ],
    "tracefork_testkit": [
        "ClosedNetwork",
        "Fault",
        "Hold",
        "Message",
        "ModelRequest",
        "NetworkClosedError",
        "ProviderServer",
        "ReceivedRequest",
        "Reply",
        "Tool",
        "ToolCall",
        "ToolResult",
        "Usage",
        "closed_network",
        "directed",
    ],
}
# What `import` of a package may cost: none of these.
HEAVY = {
    "aiohttp",
    "anthropic",
    "asyncio",
    "hypothesis",
    "httpx",
    "httpx2",
    "importlib.metadata",
    "langchain_core",
    "langgraph",
    "msgspec",
    "openai",
    "pydantic",
    "pytest",
    "rich",
    "sqlite3",
    "time_machine",
    "typer",
    "typing",
}


@pytest.mark.parametrize("name", PUBLIC)
def test_the_public_names_are_the_pinned_ones(name: str) -> None:
    """`__all__` is the pinned list, and every name on it is there.

    What needs CrewAI, OpenAI Agents or mcp is looked up by their own tests: they are not installed
    here.
    """
    module = importlib.import_module(name)
    assert sorted(module.__all__) == sorted(PUBLIC[name])
    missing = {public: _error_of(module, public) for public in module.__all__}
    frameworks = {
        "tracefork_agent_framework": "agent_framework",
        "tracefork_autogen": "autogen_core",
        "tracefork_bedrock": "botocore",
        "tracefork_claude_agent_sdk": "claude_agent_sdk",
        "tracefork_crewai": "crewai",
        "tracefork_google_adk": "google.adk",
        "tracefork_mcp": "mcp",
        "tracefork_openai_agents": "agents",
        "tracefork_pydantic_ai": "pydantic_ai",
    }
    allowed = {None, frameworks.get(name)}
    assert set(missing.values()) <= allowed, missing


def _error_of(module: types.ModuleType, name: str) -> str | None:
    """Return the module that is missing to load a name of another; None where it is there."""
    try:
        assert getattr(module, name) is not None
    except ModuleNotFoundError as error:
        return error.name
    return None


@pytest.mark.parametrize("name", PUBLIC)
def test_nothing_else_looks_public(name: str) -> None:
    """A name without an underscore that is defined here is on the list, or is a module."""
    module = importlib.import_module(name)
    defined = {
        public
        for public, value in vars(module).items()
        if not public.startswith("_")
        and not isinstance(value, types.ModuleType)
        and getattr(value, "__module__", name) == name
    }
    allowed = {*module.__all__, "annotations", "TYPE_CHECKING", "GROUP", "IMPORTERS", "PROJECTS"}
    assert defined - allowed == set()


def test_every_package_is_pinned(package: Package) -> None:
    """A new package states its public names here."""
    assert package.module in PUBLIC


def test_importing_core_loads_nothing_heavy() -> None:
    """`import tracefork_core` loads no library but Python's own light ones."""
    loaded = run_python("import sys, json, tracefork_core; print(json.dumps(list(sys.modules)))")
    assert HEAVY & set(json.loads(loaded)) == set()


def test_the_check_for_heavy_modules_can_fail() -> None:
    """Using what core offers does load its libraries: the check above looks at the right place."""
    loaded = run_python(
        "import sys, json, tracefork_core; tracefork_core.record; "
        "print(json.dumps(list(sys.modules)))"
    )
    assert {"msgspec", "sqlite3"} <= set(json.loads(loaded))


def test_no_package_imports_its_framework_when_imported(package: Package) -> None:
    """`import` of a package does not import the framework or an SDK: `attach` does."""
    loaded = run_python(f"import sys, json, {package.module}; print(json.dumps(list(sys.modules)))")
    frameworks = {
        *("agents", "crewai", "langgraph", "langchain_core"),
        *("openai", "anthropic", "httpx", "httpx2"),
    }
    assert frameworks & set(json.loads(loaded)) == set()
