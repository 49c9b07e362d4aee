from __future__ import annotations

import json
from pathlib import Path

import pytest

from tracefork_core.cli.main import main

from .conftest import Shell


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], ""),
        (["recrod"], "Did you mean record?"),
        (["xyzzy"], "no command 'xyzzy'"),
        (["record"], "record what?"),
        (["record", "gone.py"], "no script at gone.py"),
        (["record", "."], "no adapter installed here knows what to run in it"),
        (["record", "-m", "no_such_module"], "no module named no_such_module"),
        (["record", "--agent", "json"], "--agent takes package.module:function"),
        (["record", "-m", "a", "--agent", "b:c"], "exclude one another"),
        (["record", "--verbose", "agent.py"], "Options of the agent itself go behind `--`"),
        (["record", "--", "x"], "no script before it"),
        (["record", "-o", "no/such/folder/x.tape", "agent.py"], "no folder"),
        (["replay"], "TAPE"),
        (["replay", "gone.tape", "agent.py"], "no tape at gone.tape"),
        (["replay", "last"], "nothing recorded on this machine"),
        (["verify", "gone.tape"], "no tape at gone.tape"),
        (["ls", "--no-such"], "--no-such"),
        (["demo", "--dir", "x", "--temp"], "exclude one another"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_a_persons_mistake_is_a_sentence(
    words: list[str],
    said: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """It ends with 2, in words without a traceback, and as a document with --json."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TRACEFORK_HOME", str(tmp_path / "home"))
    (tmp_path / "agent.py").write_text("")
    assert main(words) == 2
    assert said in capsys.readouterr().err.replace("\n", " ")
    if not words:
        return
    assert main([words[0], "--json", *words[1:]]) == 2
    found = json.loads(capsys.readouterr().out)
    assert (found["exit"], found["result"]) == (2, "usage")
    assert found["error"]["kind"] == "UsageError"
    assert not list(tmp_path.glob("*.tape"))


def test_a_matcher_nobody_knows_is_a_mistake(taped: Shell) -> None:
    """--match takes the names of matchers only; nothing is replayed without."""
    done = taped.tracefork("replay", "--match", "fuzzy", "agent.tape", "agent.py")
    assert (done.exit, done.out) == (2, "")
    assert "no matcher 'fuzzy'" in done.err


def test_a_bug_is_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A fault of tracefork itself ends with 6 and says how to see the traceback."""

    def fails(path: Path) -> None:
        raise KeyError(path)

    monkeypatch.setattr("tracefork_core.cli.ls._read", fails)
    (tmp_path / "x.tape").write_text("")
    assert main(["ls", str(tmp_path)]) == 6
    said = capsys.readouterr().err
    assert "bug in tracefork: KeyError" in said
    assert "TRACEFORK_TRACEBACK=1" in said
    monkeypatch.setenv("TRACEFORK_TRACEBACK", "1")
    with pytest.raises(KeyError):
        main(["ls", str(tmp_path)])


def test_colour_is_for_terminals(recorded: Shell) -> None:
    """Without a terminal, and with NO_COLOR where rich is told to colour, no escape is written."""
    plain = recorded.tracefork("ls")
    assert "\x1b" not in plain.out
    assert "\x1b" in recorded.tracefork("ls", FORCE_COLOR="1").out
    assert recorded.tracefork("ls", FORCE_COLOR="1", NO_COLOR="1").out == plain.out


def test_an_old_terminal_gets_escapes_not_errors(recorded: Shell) -> None:
    """Where stdout cannot hold our marks, they are spelled out."""
    done = recorded.tracefork("ls", PYTHONIOENCODING="ascii")
    assert done.exit == 0
    assert r"\u2713" in done.out
