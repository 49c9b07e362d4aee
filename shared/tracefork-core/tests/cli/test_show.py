"""`tracefork show` is for reading: what was said, once, and nothing that each row repeats."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
from pathlib import Path
from typing import Any

import httpx2
import openai
import pytest

import tracefork_core as tracefork
from tracefork_core.cli.display.columns import Cell, Column, Columns
from tracefork_core.cli.main import main
from tracefork_testkit import ModelRequest, ProviderServer, Reply, ToolCall

TOOLS: Any = [
    {"type": "function", "function": {"name": "find_order", "parameters": {"type": "object"}}}
]


@tracefork.tool(effect="read")
def find_order(number: int) -> str:
    return f"order {number}: on its way"


def model(request: ModelRequest) -> Reply:
    if request.tool_results:
        return Reply("It is on its way, and arrives tomorrow.")
    return Reply(tool_calls=[ToolCall("find_order", {"number": 17})])


def agent(url: str) -> None:
    """Ask, look an order up, answer; then ask a server that fails."""
    client = openai.OpenAI(base_url=f"{url}/v1", api_key="none", max_retries=0)
    messages: Any = [
        {"role": "system", "content": "You answer support tickets."},
        {"role": "user", "content": "Where is order 17?"},
    ]
    for _ in range(2):
        answer = client.chat.completions.create(model="gpt-5-mini", messages=messages, tools=TOOLS)
        message = answer.choices[0].message
        messages.append(message.to_dict())
        for call in message.tool_calls or ():
            result = find_order(17)
            messages.append({"role": "tool", "tool_call_id": call.id, "content": result})
    httpx2.get(f"{url}/v1/nowhere")


@pytest.fixture(autouse=True)
def _taped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TRACEFORK_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("COLUMNS", "80")
    with ProviderServer(model) as server, tracefork.record("run.tape"):
        agent(server.url)


def shown(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    assert main(["show", "run.tape", *words]) == 0
    return capsys.readouterr().out


def test_the_timeline_says_what_was_said(capsys: pytest.CaptureFixture[str]) -> None:
    """A tool with its arguments and its result, the first words of an answer, an error."""
    rows = [line for line in shown(capsys).splitlines() if line[:1].isdigit()]
    assert '▸ find_order {"number":17}' in rows[0]
    assert 'find_order {"number":17} → "order' in rows[1]
    assert "It is on its way, and" in rows[2]
    assert "GET /v1/nowhere ✗ 404" in rows[3]
    assert all(len(row) <= 80 for row in rows)


def test_what_each_row_repeats_is_left_out(capsys: pytest.CaptureFixture[str]) -> None:
    """One lane and one model say nothing about a row; no price is known."""
    head, spent, titles, *_ = shown(capsys).splitlines()
    assert titles.split() == ["#", "step", "content", "tokens", "ms"]
    assert head == "run.tape · 4 exchanges (2 gpt-5-mini, 1 tool, 1 HTTP)"
    assert " tokens · " in spent
    assert "$" not in spent


def test_the_transcript_has_each_message_once(capsys: pytest.CaptureFixture[str]) -> None:
    """The second question repeats the whole history. A call stands with its result."""
    said = shown(capsys, "--transcript")
    for words in ("You answer support tickets.", "Where is order 17?", "arrives tomorrow."):
        assert said.count(words) == 1, words
    assert '▸ find_order {"number": 17} → order 17: on its way' in said
    assert said.count("find_order") == 1
    document = json.loads(shown(capsys, "--transcript", "--json"))
    assert [one["who"] for one in document["transcript"]] == ["system", "user", "tool", "assistant"]


def test_headers_are_shown_if_they_are_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    """Twenty lines of them hide eight lines of a conversation."""
    assert "content-type: " not in shown(capsys, "0")
    assert "content-type: " in shown(capsys, "0", "--headers")


def test_on_a_terminal_the_pager_shows_it(tmp_path: Path) -> None:
    """Any pager; one that leaves at once is no error."""
    (tmp_path / "pager").write_text('#!/bin/sh\nhead -c 30 > "$0.out"\n')
    (tmp_path / "pager").chmod(0o755)
    command = [sys.executable, "-m", "tracefork_core", "show", "run.tape"]
    ours, theirs = pty.openpty()
    environment = {**os.environ, "PAGER": str(tmp_path / "pager"), "TERM": "dumb"}
    done = subprocess.run(
        command, stdout=theirs, stderr=subprocess.PIPE, env=environment, check=False
    )
    os.close(theirs)
    os.close(ours)
    assert (done.returncode, done.stderr) == (0, b"")
    assert (tmp_path / "pager.out").read_text().startswith("run.tape · 4 exchanges")


def test_a_step_keeps_its_end_and_a_text_its_beginning() -> None:
    """`Agent workflow ▸ …` says nothing; the last step is what a person looks for."""
    columns = [
        Column("step", share=0.25, keeps_end=True),
        Column("content", rest=True),
        Column("ms", right=True),
    ]
    rows = [
        [Cell("workflow ▸ plan ▸ search"), Cell("a" * 100), Cell("1")],
        [Cell("漢字漢字漢字漢字"), Cell("b"), Cell("1,234")],
        [Cell("workflow ▸ planning ▸ go"), Cell("c"), Cell("1")],
    ]
    laid = Columns(columns, rows, 40)
    lines = [laid.line(row).plain for row in rows]
    assert lines[0].startswith("… ▸ search aaaa")
    assert lines[0].endswith("…     1")
    assert all(line.cell_len == 40 for line in map(laid.line, rows))
    assert lines[1].endswith(" 1,234")


def test_a_column_leaves_whose_cells_are_cut_to_the_same() -> None:
    """Lanes of crews differ in their middle, and say nothing once that is cut away."""
    columns = [Column("lane", share=0.2, keeps_end=True), Column("content", rest=True)]
    rows = [[Cell(f"main/run.{n}/call_the_model.1"), Cell(f"answer {n}")] for n in (1, 2)]
    assert "lane" not in Columns(columns, rows, 60).head()[0].plain
    assert "lane" in Columns(columns, rows, 200).head()[0].plain
