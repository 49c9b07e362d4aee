"""A temporary file that the recording left behind changes no name at replay, and is not lost."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path

import httpx2
import pytest

from tracefork_core import DivergenceError, fork, record, replay
from tracefork_core.inputs.leftovers import Leftovers
from tracefork_testkit import ProviderServer


def _named(text: str) -> str:
    with tempfile.NamedTemporaryFile("w", prefix="report-", suffix=".txt", delete=False) as file:
        file.write(text)
    return file.name


def _made(text: str) -> str:
    descriptor, name = tempfile.mkstemp()
    with open(descriptor, "w") as file:  # noqa: PTH123 - a descriptor
        file.write(text)
    return name


def _folder(text: str) -> str:
    folder = Path(tempfile.mkdtemp())
    (folder / "inside").mkdir()
    (folder / "inside" / "report.txt").write_text(text)
    return str(folder)


MAKERS = {"named": _named, "mkstemp": _made, "mkdtemp": _folder}
Agent = Callable[..., str]


@pytest.fixture(autouse=True)
def _temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))


def left(tmp_path: Path) -> dict[str, str]:
    """Return the files in the folder for temporary files, with their texts."""
    folder = tmp_path / "temporary"
    found = sorted(path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): path.read_text() for path in found}


@pytest.fixture(params=list(MAKERS.values()), ids=list(MAKERS))
def agent(request: pytest.FixtureRequest, provider: ProviderServer, http: httpx2.Client) -> Agent:
    """Return an agent that leaves a temporary file behind, and sends its name."""

    def agent(text: str = "a report") -> str:
        name: str = request.param(text)
        http.post(f"{provider.url}/echo", content=name.encode())
        return name

    return agent


def test_a_replay_gets_the_name_of_a_file_that_was_left_behind(
    tape: Path, tmp_path: Path, agent: Agent
) -> None:
    """Twice, and the file is as it was."""
    with record(tape):
        name = agent()
    before = left(tmp_path)
    assert len(before) == 1
    for _ in range(2):
        with replay(tape) as run:
            assert agent() == name
        assert run.differences == []
        assert left(tmp_path) == before


def test_without_this_a_replay_draws_another_name(
    tape: Path, agent: Agent, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The control: the first kind of proof can fail."""
    monkeypatch.setattr(Leftovers, "make_way", lambda *_: None)
    with record(tape):
        agent()
    with pytest.raises(DivergenceError), replay(tape):
        agent()


def test_a_file_that_was_changed_since_stays_and_is_named(
    tape: Path, tmp_path: Path, agent: Agent
) -> None:
    """It may be in use, so its name is not freed."""
    with record(tape):
        name = agent()
    for file in (tmp_path / "temporary").rglob("*.txt"):
        file.write_text("mine now")
    if Path(name).is_file():
        Path(name).write_text("mine now")
    before = left(tmp_path)
    with pytest.raises(DivergenceError) as raised, replay(tape):
        agent()
    assert f"{name} exists, and is not what the recording left" in str(raised.value)
    assert before.items() <= left(tmp_path).items()


def test_what_a_fork_leaves_under_the_name_is_kept_beside_it(
    tape: Path, tmp_path: Path, agent: Agent
) -> None:
    """If it has other content."""
    with record(tape):
        name = agent()
    before = left(tmp_path)
    with fork(tape, 0, "another answer") as forked:
        assert agent("another report") == name
    after = left(tmp_path)
    with replay(forked.path):
        assert agent("another report") == name
    assert before.items() <= after.items()
    assert [text for file, text in after.items() if file not in before] == ["another report"]
    assert Path(f"{name}.replayed").exists()


def test_a_file_that_the_user_deleted_needs_no_name_back(tape: Path, agent: Agent) -> None:
    """The replay makes it again."""
    with record(tape):
        name = agent()
    if Path(name).is_file():
        Path(name).unlink()
        with replay(tape):
            assert agent() == name
    with replay(tape):
        assert agent() == name
