"""`tracefork report`: the data of the page. tests/page opens it in a browser."""

from __future__ import annotations

import base64
import json
import re
import zlib
from pathlib import Path
from typing import Any

import pytest

from tracefork_core.cli.report import bodies
from tracefork_testkit import ProviderServer

from .conftest import Shell, copied

TALKS = """\
import os
import openai

client = openai.OpenAI(base_url=os.environ["PROVIDER"] + "/v1", api_key="sk-none")
history = [{"role": "system", "content": "You are a desk. \\U0001f600"}]
for n in range(6):
    history.append({"role": "user", "content": f"question {n} \\U0001f680 é"})
    answer = client.chat.completions.create(model="gpt-5-mini", messages=history)
    history.append({"role": "assistant", "content": answer.choices[0].message.content})
"""


class Read:
    """A page as the browser reads it."""

    def __init__(self, file: Path) -> None:
        text = file.read_text()
        found = re.search(r'id="report">(.*?)</script>', text)
        assert found is not None
        self.report: dict[str, Any] = json.loads(found[1])
        self._parts = dict(re.findall(r'octet-stream" id="(p\d+)">([^<]*)<', text))

    def part(self, key: str) -> dict[str, Any]:
        """Return an unpacked part."""
        packed = base64.b64decode(self._parts[key])
        found: dict[str, Any] = json.loads(zlib.decompress(packed, -zlib.MAX_WBITS))
        return found

    def exchanges(self, run: int = 0) -> list[dict[str, Any]]:
        """Return the exchanges of a run, with their content."""
        blocks = self.report["runs"][run]["blocks"]
        return [one for _, key in blocks for one in self.part(key)["exchanges"]]

    def request(self, n: int) -> str:
        """Return the text of a request, put together as the page does: in units of UTF-16."""
        body = self.exchanges()[n]["request"]
        if body["base"] < 0:
            return str(body["text"])
        before = self.request(body["base"]).encode("utf-16-le")
        tail = before[len(before) - 2 * body["tail"] :] if body["tail"] else b""
        own = body["text"].encode("utf-16-le")
        return (before[: 2 * body["head"]] + own + tail).decode("utf-16-le")


@pytest.fixture(scope="session")
def a_talk(tmp_path_factory: pytest.TempPathFactory, provider: ProviderServer) -> Shell:
    """Return a shell with a conversation on tape, and its page; tests must not change it."""
    folder, home = tmp_path_factory.mktemp("talked"), tmp_path_factory.mktemp("home")
    found = Shell(folder, {"PROVIDER": provider.url, "TRACEFORK_HOME": str(home)})
    found.write("agent.py", TALKS)
    assert found.tracefork("record", "agent.py").exit == 0
    done = found.tracefork("report", "agent.tape")
    assert done.exit == 0, done.err
    assert "● agent.html · 1 run · 6 exchanges" in done.out
    return found


@pytest.fixture
def talked(shell: Shell, a_talk: Shell) -> Shell:
    """Return a shell in a copy of that folder."""
    return copied(a_talk.folder, shell)


def test_each_message_is_in_the_page_once(talked: Shell) -> None:
    """A question names what it repeats, and what is new; whole bodies can be put together."""
    read = Read(talked.folder / "agent.html")
    texts = [
        part["text"] for one in read.exchanges() for new in one["new"] for part in new["parts"]
    ]
    assert len(texts) == len(set(texts))
    assert "question 5 \U0001f680 é" in texts
    last = read.exchanges()[5]
    assert (last["base"], last["keep"]) == (4, 10)
    for n in range(6):
        shown = talked.tracefork("show", "agent.tape", str(n), "--json").document
        assert json.loads(read.request(n)) == shown["request_body"]


def test_a_page_is_small(talked: Shell) -> None:
    """What a question repeats is not in its body again."""
    read = Read(talked.folder / "agent.html")
    own = [len(one["request"]["text"]) for one in read.exchanges()]
    assert max(own[1:]) < 200 < len(read.request(5))


def test_units_are_those_of_a_browser() -> None:
    """A character beyond the first plane is two units there, and one here."""
    body = bodies.beside("\U0001f600\U0001f600ab\U0001f680", "\U0001f600\U0001f600\U0001f680", 3)
    assert (body.base, body.head, body.text, body.tail) == (3, 4, "ab", 2)


def test_a_page_that_exists_is_kept(talked: Shell) -> None:
    """Unless the user says so."""
    done = talked.tracefork("report", "agent.tape")
    assert done.exit == 2
    assert "agent.html already exists. Use --overwrite to replace it" in done.err
    done = talked.tracefork("report", "agent.tape", "--overwrite", "--json")
    assert done.document["exchanges"] == 6


def test_a_branch_is_on_the_page_of_its_run(talked: Shell) -> None:
    """And the parent on that of the branch; what they share is there once."""
    words = ("--at", "4", "--text", "no", "--allow-writes", "-o", "branch.tape", "agent.py")
    assert talked.tracefork("fork", "agent.tape", *words).exit == 0
    talked.tracefork("report", "agent.tape", "--overwrite")
    talked.tracefork("report", "branch.tape")
    runs = Read(talked.folder / "agent.html").report["runs"]
    assert [run["name"] for run in runs] == ["agent.tape", "branch.tape"]
    assert runs[1]["parent"] == {"run": 0, "at": 4}
    assert runs[1]["branch"]["cells"] == ["FREE"] * 4 + ["EDITED", "DIVERGED"]
    read = Read(talked.folder / "branch.html")
    assert [run["name"] for run in read.report["runs"]] == ["branch.tape", "agent.tape"]
    assert len(read.exchanges(0)) == 2


def test_a_folder_is_one_page(talked: Shell) -> None:
    """A file that is no tape is named, and left out."""
    (talked.folder / "broken.tape").write_bytes(b"no tape")
    done = talked.tracefork("report", ".", "-o", "all.html")
    assert done.exit == 0
    assert "! left out: broken.tape" in done.out
    assert Read(talked.folder / "all.html").report["title"] == "work"


@pytest.mark.parametrize(
    ("words", "code", "expected"),
    [
        (("gone",), 2, "there is no tape at gone"),
        (("empty",), 2, "there is no tape in empty that can be read"),
        (("agent.tape", "-o", "no/such/folder.html"), 5, "cannot write"),
    ],
)
def test_a_mistake_is_one_error(
    talked: Shell, words: tuple[str, ...], code: int, expected: str
) -> None:
    """It says what to type."""
    (talked.folder / "empty").mkdir()
    done = talked.tracefork("report", *words)
    assert (done.exit, expected in done.err) == (code, True), done.err


def test_hashes_make_a_page_without_texts(shell: Shell) -> None:
    """A tape of mode metadata has no bodies, and the page says so."""
    shell.write("agent.py", TALKS)
    shell.tracefork("record", "--mode", "metadata", "agent.py")
    assert shell.tracefork("report", "agent.tape").exit == 0
    read = Read(shell.folder / "agent.html")
    assert "hashes of bodies alone" in read.report["runs"][0]["limits"][0]
