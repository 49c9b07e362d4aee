"""`tracefork report`: the data of the page. tests/page opens it in a browser."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tracefork_core.cli.report import bodies
from tracefork_testkit import ProviderServer

from .conftest import Shell, copied
from .pages import Read

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


def test_a_page_of_one_exchange_has_no_other(talked: Shell) -> None:
    """Its question is whole: no message of it is that of another exchange."""
    done = talked.tracefork("show", "agent.tape", "3", "--html")
    assert done.out.startswith("● agent-3.html · 1 run · 1 exchange · "), done.err
    read = Read(talked.folder / "agent-3.html")
    (run,) = read.report["runs"]
    assert (run["only"], run["exchanges"], run["finding"]["exchanges"]) == (3, 6, [3])
    (exchange,) = read.exchanges()
    assert (exchange["base"], exchange["keep"], len(exchange["messages"])) == (-1, 0, 8)
    shown = talked.tracefork("show", "agent.tape", "3", "--json").document
    assert json.loads(exchange["request"]["text"]) == shown["request_body"]
    texts = [part["text"] for new in exchange["new"] for part in new["parts"]]
    assert "question 3 \U0001f680 é" in texts
    assert "question 4" not in json.dumps(texts)


def test_a_page_of_a_difference_opens_at_the_first(talked: Shell) -> None:
    """The branch shares what its parent said; a run beside it shares nothing."""
    words = ("--at", "4", "--text", "no", "--allow-writes", "-o", "branch.tape", "agent.py")
    assert talked.tracefork("fork", "agent.tape", *words).exit == 0
    assert talked.tracefork("diff", "branch.tape", "--html").exit == 1
    read = Read(talked.folder / "branch-diff.html")
    place = "run=1&step=4&view=branches&part=diff&with=4&of=0"
    assert (read.report["place"], len(read.exchanges(1))) == (place, 2)
    assert read.report["runs"][1]["finding"]["line"].endswith("from agent.tape")
    copied_tape = talked.folder / "copies" / "agent.tape"
    copied_tape.parent.mkdir()
    copied_tape.write_bytes((talked.folder / "agent.tape").read_bytes())
    done = talked.tracefork("diff", "copies/agent.tape", "branch.tape", "--html", "-o", "two.html")
    assert "● two.html · 2 runs · 12 exchanges" in done.out, done.err
    beside = Read(talked.folder / "two.html")
    assert len(beside.exchanges(1)) == 6
    assert beside.report["runs"][1]["branch"]["cells"] == ["SAME"] * 4 + ["DIFFERS", "SAME"]
    same = talked.tracefork("diff", "copies/agent.tape", "agent.tape", "--html", "--json")
    assert (same.exit, same.document["same"]) == (0, True)
    assert Read(Path(same.document["report"])).report["place"] == "run=1&step=0&view=branches"


LANES = """\
import os
from concurrent.futures import ThreadPoolExecutor

import httpx2

client = httpx2.Client(verify=False)

def ask(messages):
    body = {"model": "m", "messages": messages}
    answer = client.post(os.environ["PROVIDER"] + "/v1/chat/completions", json=body).json()
    return answer["choices"][0]["message"]["content"]

with ThreadPoolExecutor(1) as pool:
    found = pool.submit(ask, [{"role": "user", "content": "Look it up, please."}]).result()
history = [{"role": "user", "content": found}]
for n in range(3):
    history.append({"role": "assistant", "content": ask(history)})
    history.append({"role": "user", "content": f"And {n}?"})
"""


def test_a_repeated_answer_is_one_edge(shell: Shell, provider: ProviderServer) -> None:
    """It leads to the exchange that repeated it first: those after it send the same history."""
    shell.environment["PROVIDER"] = provider.url
    shell.write("agent.py", LANES)
    assert shell.tracefork("record", "agent.py").exit == 0
    assert shell.tracefork("report", "agent.tape").exit == 0
    read = Read(shell.folder / "agent.html")
    edges = read.part(read.report["runs"][0]["index"])["edges"]
    repeats = [edge for edge in edges if edge["rule"] == "repeats the answer"]
    assert [(edge["from"], edge["to"]) for edge in repeats] == [(0, 1)]


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
        (("report", "gone"), 2, "there is no tape at gone"),
        (("report", "empty"), 2, "there is no tape in empty that can be read"),
        (("report", "agent.tape", "-o", "no/such/folder.html"), 5, "cannot write"),
        (("show", "agent.tape", "--html"), 2, "--html needs the number of one exchange"),
        (("show", "agent.tape", "1", "-o", "one.html"), 2, "-o is for the page. Add --html"),
        (("show", "agent.tape", "9", "--html"), 2, "there is no exchange 9"),
        (("diff", "agent.tape", "agent.tape", "--html", "--stat"), 2, "It excludes --markdown"),
        (("blame", "agent.tape", "--status", "--html"), 2, "--html excludes --status"),
    ],
)
def test_a_mistake_is_one_error(
    talked: Shell, words: tuple[str, ...], code: int, expected: str
) -> None:
    """It says what to type."""
    (talked.folder / "empty").mkdir()
    done = talked.tracefork(*words)
    assert (done.exit, expected in done.err) == (code, True), done.err


def test_hashes_make_a_page_without_texts(shell: Shell) -> None:
    """A tape of mode metadata has no bodies, and the page says so."""
    shell.write("agent.py", TALKS)
    shell.tracefork("record", "--mode", "metadata", "agent.py")
    assert shell.tracefork("report", "agent.tape").exit == 0
    read = Read(shell.folder / "agent.html")
    assert "hashes of bodies alone" in read.report["runs"][0]["limits"][0]
