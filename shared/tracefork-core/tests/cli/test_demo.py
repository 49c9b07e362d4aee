from __future__ import annotations

from pathlib import Path

import pytest

from .conftest import Shell

pytestmark = pytest.mark.many_processes

TOY_AGENT = """\
import os

import httpx2


def main():
    words = ["one", "two"]
    return [httpx2.post(os.environ["PROVIDER"] + "/echo", content=word).text for word in words]


if __name__ == "__main__":
    print(*main(), sep="\\n")
"""

MODULE = """\
from pathlib import Path
from tracefork_testkit import ProviderServer

AGENT = Path(__file__).with_name("toy_agent.py")
EDIT = ("one", "onE")
BLAME = ("--agent=toy_agent:main", "--oracle=regex:3", "--allow-writes")
REPAIR = ("--at=1", "--text=three")


def provider():
    return ProviderServer()


def ENVIRONMENT(url):
    return {"PROVIDER": url}
"""


@pytest.fixture
def path(tmp_path: Path, shell: Shell) -> dict[str, str]:
    """Install a demo, and return the environment that finds it."""
    site = tmp_path / "site"
    metadata = site / "toy_demo-0.1.dist-info"
    metadata.mkdir(parents=True)
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: toy-demo\nVersion: 0.1\n")
    (metadata / "entry_points.txt").write_text("[tracefork.demos]\na_toy = toy_demo\n")
    (site / "toy_demo.py").write_text(MODULE)
    (site / "toy_agent.py").write_text(TOY_AGENT)
    return {"PYTHONPATH": f"{site}:{shell.python_path}"}


def test_the_tour_runs_real_commands(shell: Shell, path: dict[str, str]) -> None:
    """Each command is shown before it runs."""
    done = shell.tracefork("demo", "a_toy", **path)
    assert done.exit == 0, done.err
    commands = [line[2:] for line in done.out.splitlines() if line.startswith("$ ")]
    assert commands == [
        "tracefork record -o ticket.tape toy_agent.py",
        "tracefork replay ticket.tape toy_agent.py",
        "tracefork show ticket.tape",
        "tracefork replay ticket.tape toy_agent.py",
        "tracefork blame ticket.tape --agent=toy_agent:main --oracle=regex:3 --allow-writes --yes",
        "tracefork fork ticket.tape --at=1 --text=three",
    ]
    assert "  - one\n  + onE" in done.out
    assert "✓ replayed 2 of 2 exchanges bit-exact · 0 sockets" in done.err
    assert "✗ diverged after 0 of 2 exchanges" in done.err
    assert "Blame cannot tell" in done.out
    assert "three\n" in done.out
    assert (shell.folder / "tracefork-demo" / "ticket.1.tape").exists()


def test_a_tour_that_fails_can_be_a_document(
    shell: Shell, path: dict[str, str], tmp_path: Path
) -> None:
    """With --temp, the current folder is unchanged. tests/e2e reads a whole tour's document."""
    (tmp_path / "site" / "toy_agent.py").write_text("raise SystemExit(3)\n")
    done = shell.tracefork("demo", "a_toy", "--temp", "--json", **path)
    (step,) = done.document["steps"]
    assert (done.exit, step["exit"], step["expected"]) == (3, 3, 0)
    assert step["output"]
    assert not (shell.folder / "tracefork-demo").exists()


def test_a_step_that_goes_wrong_ends_the_tour(
    shell: Shell, path: dict[str, str], tmp_path: Path
) -> None:
    """If the edited byte changes nothing, the tour names the step that should have failed."""
    agent = tmp_path / "site" / "toy_agent.py"
    agent.write_text("# one\n" + TOY_AGENT.replace('["one", "two"]', '["1"]'))
    done = shell.tracefork("demo", "a_toy", "--dir", "here", **path)
    assert done.exit == 1
    assert "\n✗ tracefork replay ticket.tape toy_agent.py\n" in done.err
    assert "0 (same)" in done.err
    again = shell.tracefork("demo", "a_toy", "--dir", "here", **path)
    assert (again.exit, "here" in again.err) == (2, True), again.err


def test_a_missing_demo_shows_the_install_command(
    shell: Shell, path: dict[str, str], tmp_path: Path
) -> None:
    """The demo may be unknown, or its package missing."""
    done = shell.tracefork("demo", "no_such", **path)
    assert done.exit == 2
    assert "a_toy" in done.err
    (tmp_path / "site" / "toy_demo.py").write_text("import no_such_module\n")
    done = shell.tracefork("demo", "a_toy", **path)
    assert done.exit == 2
    assert "pip install 'tracefork-langgraph[demo]'" in done.err.replace("\n", " ")
