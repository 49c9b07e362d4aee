from __future__ import annotations

from pathlib import Path

import pytest

from tracefork_core.cli.main import main

from .conftest import Shell


def test_without_a_command_the_commands_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    """The exit code is 2, because a script that passes no command has a mistake."""
    assert main([]) == 2
    printed = "".join(capsys.readouterr())
    assert {"record", "replay", "blame"} <= set(printed.split())


def test_a_bug_is_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The exit code is 6, and the message says how to see the traceback."""

    def fails(path: Path) -> None:
        raise KeyError(path)

    monkeypatch.setattr("tracefork_core.cli.commands.ls._read", fails)
    (tmp_path / "x.tape").write_text("")
    assert main(["ls", str(tmp_path)]) == 6
    said = capsys.readouterr().err
    assert "bug in tracefork: KeyError" in said
    assert "TRACEFORK_TRACEBACK=1" in said
    monkeypatch.setenv("TRACEFORK_TRACEBACK", "1")
    with pytest.raises(KeyError):
        main(["ls", str(tmp_path)])


def test_colour_is_for_terminals(recorded: Shell) -> None:
    """NO_COLOR wins over FORCE_COLOR."""
    plain = recorded.tracefork("ls")
    assert "\x1b" not in plain.out
    assert "\x1b" in recorded.tracefork("ls", FORCE_COLOR="1").out
    assert recorded.tracefork("ls", FORCE_COLOR="1", NO_COLOR="1").out == plain.out


def test_an_old_terminal_gets_escapes_not_errors(recorded: Shell) -> None:
    """Characters that stdout cannot encode are spelled out."""
    done = recorded.tracefork("ls", PYTHONIOENCODING="ascii")
    assert done.exit == 0
    assert r"\u2713" in done.out
