"""Every example runs, is recorded, and replays with its model gone."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from docs.pages import ROOT, Reader, follow

EXAMPLES = ROOT / "examples"
SCRIPTS = {
    "stand_in": "agent.py",
    "openai_tools": "agent.py",
    "anthropic_chat": "agent.py",
    "fastapi_service": "app.py",
    "langgraph_sqlite": "agent.py",
    "support": "agent.py",
    "shop": "agent.py",
}
"""What is recorded in each folder; the others are run where ELSEWHERE says."""
ELSEWHERE = {
    "bedrock_desk": "docs/how-to/record-amazon-bedrock.md",
    "adapter": "docs/how-to/write-an-adapter.md",
    "claims_desk": "packages/tracefork-openai-agents/tests/claims.py",
    "loan_desk": "docs/how-to/debug-an-agent-framework-workflow.md",
    "any_language": "docs/how-to/record-any-language.md",
    "hotel_desk": "docs/how-to/replay-a-claude-agent.md",
    "mcp_issues": "packages/tracefork-mcp/tests/test_how_to.py",
    "order_graph": "docs/how-to/find-the-node-that-broke-a-strands-graph.md",
    "newsroom": "packages/tracefork-crewai/tests/test_how_to.py",
    "support_desk": "docs/how-to/which-agent-gave-the-wrong-handoff.md",
    "parcel_desk": "packages/tracefork-pydantic-ai/tests/test_parcel_desk.py",
    "trip_review": "packages/tracefork-google-adk/tests/test_review.py",
    "trip_desk": "docs/how-to/debug-a-google-adk-agent.md",
    "sales_desk": "docs/how-to/debug-an-autogen-team.md",
    "price_desk": "docs/how-to/replay-modes.md",
    "refund_desk": "docs/tutorial/debug-a-langgraph-run.md",
    "notebook": "tests/docs/test_examples.py",
    "pytest_tape": "tests/docs/test_examples.py",
}


@pytest.fixture
def reader(tmp_path: Path) -> Iterator[Reader]:
    reader = Reader(tmp_path)
    yield reader
    reader.close()


def typed(reader: Reader, command: str) -> str:
    """Run a command that has to succeed, and return what it printed."""
    status, printed = reader.type(command)
    assert status == 0, f"$ {command}\n{printed}"
    return printed


def start_model(reader: Reader, folder: str) -> None:
    """Start the folder's model, or that of stand_in, and go into a copy of the folder."""
    own = (EXAMPLES / folder / "provider.py").is_file()
    typed(reader, f"cp -r {EXAMPLES / folder} work && cd work")
    typed(reader, f"python {EXAMPLES / (folder if own else 'stand_in')}/provider.py &")
    typed(reader, "export OPENAI_BASE_URL=http://127.0.0.1:8899/v1 OPENAI_API_KEY=none")
    typed(reader, "export ANTHROPIC_BASE_URL=http://127.0.0.1:8899 ANTHROPIC_API_KEY=none")


@pytest.mark.parametrize(
    "folder",
    [
        pytest.param(name, marks=pytest.mark.with_langgraph if "langgraph" in name else ())
        for name in SCRIPTS
    ],
)
def test_an_example_replays_with_its_model_gone(reader: Reader, folder: str) -> None:
    """What it prints is the same, and the replay proves it; a changed question diverges."""
    start_model(reader, folder)
    live = typed(reader, f"tracefork record -o run.tape {SCRIPTS[folder]} 2>err.txt")
    typed(reader, "kill %1")
    assert live.strip()
    assert typed(reader, "tracefork replay run.tape 2>err.txt") == live
    assert "bit-exact · 0 sockets" in typed(reader, "cat err.txt")
    typed(reader, f"sed -i 's/17/18/; s/turntable/radio/; s/price/prize/' {SCRIPTS[folder]}")
    status, printed = reader.type(f"tracefork replay run.tape {SCRIPTS[folder]}")
    assert status == 1, printed


def test_the_page_of_examples_works(tmp_path: Path) -> None:
    """The refund is made once, and not again by the replay."""
    follow("examples/README.md", tmp_path)


def test_the_test_records_once_and_replays(reader: Reader) -> None:
    """The mode `once` asks the model; without it, a replay needs none, and no key."""
    start_model(reader, "pytest_tape")
    typed(reader, "touch pytest.ini")
    typed(reader, "python -m pytest -q --tape-mode=once")
    typed(reader, "kill %1")
    typed(reader, "env -u OPENAI_API_KEY python -m pytest -q")
    typed(reader, "sed -i 's/order 17/order 18/' test_agent.py")
    status, printed = reader.type("python -m pytest -q")
    assert status == 1, printed


KERNEL = """\
import json, os, sys
from jupyter_client.manager import start_new_kernel

manager, client = start_new_kernel()
for cell in json.load(open("agent.ipynb"))["cells"]:
    if cell["cell_type"] == "code":
        code = "".join(cell["source"])
        if "replay" in code:
            os.system("kill " + sys.argv[1])
        done = client.execute_interactive(code, timeout=60)["content"]
        assert done["status"] == "ok", done

def shown(message):
    data = message["content"].get("data", {})
    print(data.get("text/html", ""))

tape = "tracefork.Tape.open('notebook.tape')"
client.execute_interactive(tape, timeout=60, output_hook=shown)
client.execute_interactive(f"{tape}.exchanges[0]", timeout=60, output_hook=shown)
manager.shutdown_kernel(now=True)
"""


def test_the_notebook_runs(reader: Reader) -> None:
    """Its cells run in a kernel, the last one with the model gone. Steps name their cells.

    The kernel shows a tape and an exchange as HTML.
    """
    start_model(reader, "notebook")
    reader.save("kernel.py", KERNEL)
    printed = typed(reader, "python kernel.py $(jobs -p)")
    assert "<b>notebook.tape</b> · 1 exchange" in printed
    assert "&quot;Where is order 17?&quot;" in printed
    assert "In [1]:8" in typed(reader, "tracefork show notebook.tape")


def test_no_example_is_left_out() -> None:
    """Each folder is on the page of examples, and is run here or where it is said."""
    folders = {folder.name for folder in EXAMPLES.iterdir() if folder.is_dir()}
    page = (EXAMPLES / "README.md").read_text()
    assert [name for name in sorted(folders) if f"[{name}]({name})" not in page] == []
    assert folders == set(SCRIPTS) | set(ELSEWHERE)
    assert [name for name, test in ELSEWHERE.items() if name not in (ROOT / test).read_text()] == []


@pytest.mark.parametrize(
    ("page", "folder"),
    [("docs/how-to/fork-a-run.md", "support"), ("docs/how-to/hunt-a-race.md", "shop")],
)
def test_the_agent_of_a_guide_is_the_one_in_its_folder(page: str, folder: str) -> None:
    """The guide shows the file; the folder has it for those who do not want to type."""
    shown = re.search(r"```python title=agent.py\n(.*?)```", (ROOT / page).read_text(), re.DOTALL)
    assert shown is not None
    assert shown[1] == (EXAMPLES / folder / "agent.py").read_text()
