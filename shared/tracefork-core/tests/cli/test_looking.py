"""`tracefork ls` and `tracefork show` display tapes."""

from __future__ import annotations

import hashlib
import json
import os
import sqlite3
from contextlib import closing
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

import tracefork_core as tracefork
from tracefork_core.cli.display.account import known_cost
from tracefork_core.cli.main import main
from tracefork_core.providers import model_call
from tracefork_core.providers.prices import price_of
from tracefork_testkit import ProviderServer, Reply, ToolCall

from .conftest import Shell

HOSTILE = "\x1b[31mred\x07 \u202eevil\u200b\x9b2J"


@pytest.fixture
def look(
    recorded: Shell, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Any:
    """Return a function that runs a command in the folder of tapes and returns its output."""
    monkeypatch.chdir(recorded.folder)
    monkeypatch.setenv("TRACEFORK_HOME", recorded.environment["TRACEFORK_HOME"])
    monkeypatch.setenv("COLUMNS", "80")

    def run(*words: str, code: int = 0) -> str:
        assert main(words) == code
        found = capsys.readouterr()
        return found.out if code == 0 else found.err

    return run


def test_a_folder_lists_its_tapes(look: Any) -> None:
    """`ls` has a line for each tape: exchanges, model, size, cost, state and digest."""
    with tracefork.Tape.open("support.tape") as tape:
        digest = tape.digest
    listed = {line.split()[0]: line for line in look("ls").splitlines()}
    assert "gpt-5-mini" in listed["support.tape"]
    assert f"✓ {digest[:6]}" in listed["support.tape"]
    assert listed["plain.tape"].split()[4:6] == ["2", "—"]
    found = {entry["name"]: entry for entry in json.loads(look("ls", "--json"))["tapes"]}
    assert found["support.tape"]["digest"] == digest
    assert found["support.tape"]["models"] == ["gpt-5-mini"]
    assert found["support.tape"]["state"] == "complete"


def test_damaged_and_foreign_files_are_listed_with_their_problem(
    taped: Shell, capsys: pytest.CaptureFixture[str]
) -> None:
    """`ls` continues after them."""
    good = (taped.folder / "agent.tape").read_bytes()
    taped.write("foreign.tape", "hello")
    taped.write("empty.tape", "")
    (taped.folder / "torn.tape").write_bytes(good[:2048] + b"\xff" * (len(good) - 2048))
    (taped.folder / "text.tape").write_bytes(good)
    with closing(sqlite3.connect(taped.folder / "text.tape")) as db:
        db.execute("UPDATE log SET events = CAST(events AS TEXT)")
        db.commit()
    assert main(["ls", "--json", str(taped.folder)]) == 0
    found = json.loads(capsys.readouterr().out)["tapes"]
    states = {entry["name"]: entry["state"] for entry in found}
    assert states["agent.tape"] == "complete"
    assert states["foreign.tape"] == states["empty.tape"] == "not a tape"
    assert {states["torn.tape"], states["text.tape"]} <= {"damaged", "not a tape"}
    assert all(entry["problem"] for entry in found if entry["state"] != "complete")
    assert main(["ls", str(taped.folder)]) == 0
    assert "! foreign.tape: " in capsys.readouterr().out


def test_ls_of_an_empty_folder_finds_no_tapes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A missing folder is an error."""
    assert main(["ls", str(tmp_path)]) == 0
    assert "no tapes in" in capsys.readouterr().out
    assert main(["ls", str(tmp_path / "gone")]) == 2
    assert str(tmp_path / "gone") in capsys.readouterr().err.replace("\n", "")


def test_the_timeline_has_a_line_for_each_exchange(look: Any) -> None:
    """It shows number, step or caller, what was answered, tokens in and out, and time."""
    head, spent, titles, _, line, following = look("show", "support.tape").splitlines()
    assert head == "support.tape · 1 exchange (1 gpt-5-mini)"
    assert " tokens · " in spent
    assert titles.split() == ["#", "step", "content", "tokens", "ms"]
    assert line.split()[:2] == ["0", "support.py:9"]
    assert following.startswith("next: tracefork show support.tape N · ")
    (first, second) = json.loads(look("show", "--json", "plain"))["timeline"]
    assert (first["n"], second["n"], second["status"]) == (0, 1, 200)


def test_on_a_narrow_screen_words_give_way_to_numbers(
    look: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each line still begins with the number of its exchange."""
    monkeypatch.setenv("COLUMNS", "40")
    with tracefork.Tape.open("support.tape") as tape:
        numbers = [str(exchange.n) for exchange in tape.exchanges]
    lines = [line.split() for line in look("show", "support.tape").splitlines()]
    rows = lines[lines.index(["#", "step", "content", "tokens", "ms"]) + 2 :]
    assert [words[0] for words in rows if words[0].isdigit()] == numbers


def test_an_exchange_is_shown_decoded(look: Any) -> None:
    """This covers messages, answer, tokens, headers and chunks, without the key."""
    assert "x-stainless-lang" not in look("show", "support.tape", "0"), "only if asked for"
    text = look("show", "support.tape", "0", "--headers")
    assert "exchange 0 of 1 · support.tape" in text
    assert "system       You answer support tickets. Be brief." in text
    assert "user         Where is order 17?" in text
    assert "← assistant  " in text
    assert "model        gpt-5-mini · openai.chat_completions" in text
    assert "1 chunk" in text
    assert "x-stainless-lang: python" in text
    assert "sk-none" not in text
    found = json.loads(look("show", "support.tape", "0", "--json"))
    assert found["request_body"]["model"] == "gpt-5-mini"
    assert found["call"]["usage"]["input_tokens"] == found["input_tokens"] > 0


def test_raw_bodies_are_written_unchanged(recorded: Shell) -> None:
    """Their hash is the recorded one."""
    with tracefork.Tape.open(recorded.folder / "support.tape") as tape:
        request, response = tape.exchanges[0].request, tape.exchanges[0].payload.response
        assert response is not None
        hashes = {"--request-raw": request.body, "--raw": response.body}
    for option, expected in hashes.items():
        done = recorded.tracefork("show", "support.tape", "0", option)
        assert hashlib.sha256(done.out.encode()).hexdigest() == expected


@pytest.mark.parametrize(
    ("words", "fact"),
    [
        (["show", "support.tape", "7"], "exchange 7"),
        (["show", "support.tape", "-1"], "-1"),
        (["show", "support.tape", "--raw"], "--raw"),
        (["show", "support.tape", "0", "--raw", "--request-raw"], "--request-raw"),
        (["show", "no-such.tape"], "no-such.tape"),
        (["show"], "TAPE"),
    ],
)
def test_an_invalid_number_name_or_option_of_show_is_refused(
    look: Any, words: list[str], fact: str
) -> None:
    """The error names it."""
    printed = look(*words, code=2)
    assert printed.startswith("✗ ")
    assert fact in printed


def test_a_hostile_tape_cannot_drive_the_terminal(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Escapes in models, answers, tool calls and headers are spelled out, in every view."""
    import openai

    path = tmp_path / "hostile.tape"
    reply = Reply(
        HOSTILE, tool_calls=[ToolCall(HOSTILE, {HOSTILE: HOSTILE})], headers={"x-evil": "\x9b2J"}
    )
    with ProviderServer(script=[reply]) as server:
        client = openai.OpenAI(base_url=f"{server.url}/v1", api_key="x")
        messages: Any = [{"role": "user", "content": HOSTILE}]
        with tracefork.record(path):
            client.chat.completions.create(model=HOSTILE, messages=messages)
    monkeypatch.chdir(tmp_path)
    views = [["ls"], ["show", "hostile.tape"], ["show", "hostile.tape", "0"]]
    for words in [*views, *([*view, "--json"] for view in views)]:
        assert main(words) == 0
        out = capsys.readouterr().out
        assert all(char.isprintable() or char == "\n" for char in out), words
    assert main(["show", "hostile.tape", "0"]) == 0
    assert r"\x1b[31mred\x07 \u202eevil\u200b\x9b2J" in capsys.readouterr().out


def test_the_cost_is_the_sum_of_the_known_prices(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is — if no price is known."""
    import openai

    monkeypatch.chdir(tmp_path)
    messages: Any = [{"role": "user", "content": "Where is order 17?"}]
    with ProviderServer() as server, server.real_hosts(), tracefork.record("priced.tape"):
        client = openai.OpenAI(api_key="x")
        for _ in range(2):
            client.chat.completions.create(model="gpt-5-mini", messages=messages)
    with tracefork.Tape.open("priced.tape") as tape:
        calls = [(exchange, model_call(exchange)) for exchange in tape.exchanges]
        prices = [price_of(exchange, call) for exchange, call in calls if call]
    assert main(["show", "priced.tape", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)["cost_usd"]
    known = [price for price in prices if price is not None]
    assert len(prices) == 2
    assert (Decimal(found) if found else None) == (sum(known) if known else None)
    with tracefork.Tape.open("priced.tape") as tape:
        assert known_cost(tape) == (sum(known) if known else None)


def test_the_name_of_a_file_cannot_drive_the_terminal(
    taped: Shell, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A received file may have any name."""
    monkeypatch.chdir(taped.folder)
    name = "\x1b[31mred\u202e.tape"
    (taped.folder / "agent.tape").rename(name)
    views = [["show"], ["show", "0"], ["verify", "--integrity"], ["tree"], ["scan"], ["pack"]]
    for command, *rest in [*views, ["unpack", "--into", "."]]:
        if command == "unpack":
            Path(name).rename(taped.folder / f"{name}.sent.tape")
        sent = f"{name}.sent.tape" if command == "unpack" else name
        main([command, sent, *rest])
        out = "".join(capsys.readouterr())
        assert "red" in out or command == "scan"
        assert all(char.isprintable() or char == "\n" for char in out), command


@pytest.mark.parametrize("command", ["ls", "show", "record", "replay"])
def test_a_pipe_is_not_waited_for(shell: Shell, command: str) -> None:
    """A pipe is not a tape."""
    shell.write("agent.py", "pass\n")
    os.mkfifo(shell.folder / "pipe.tape")
    words = {
        "ls": ["ls"],
        "show": ["show", "pipe.tape"],
        "record": ["record", "-o", "pipe.tape", "agent.py"],
        "replay": ["replay", "pipe.tape", "agent.py"],
    }
    done = shell.tracefork(*words[command])
    assert done.exit == (0 if command == "ls" else 2)
    assert "pipe.tape" in done.out + done.err
    assert "Traceback" not in done.err
    assert (shell.folder / "pipe.tape").is_fifo()
