"""What a hybrid replay compares, where it looks, and what it refuses."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from .conftest import Shell

SECRET = "sk-proj-4f9Xq2LmT7vRb8NcWz3KdYhP4f9Xq2LmT7vRb8NcWz3KdYhP"
AGENT = """\
import os
import httpx2
import tracefork_core as tracefork

@tracefork.tool(effect="read")
def words() -> str:
    return open("words").read()

@tracefork.tool(verifier=True)
def check(token: str) -> dict:
    return {"exit_code": 1, "stderr": f"{token} is refused: {words()}"}

ask = os.environ["PROVIDER"] + "/echo"
httpx2.post(ask, content=b"one")
print(check("%s")["exit_code"], words())
"""
HYBRID = ("replay", "--mode", "hybrid")


def recorded(shell: Shell) -> Shell:
    """Record an agent whose verifier gets a secret, in a folder with a lockfile."""
    shell.write("agent.py", AGENT % SECRET)
    shell.write("uv.lock", "one")
    shell.write("words", "first")
    done = shell.tracefork("record", "agent.py")
    assert done.exit == 0, done.err
    return shell


def test_secrets_of_a_verifier_are_masked(shell: Shell, tmp_path: Path) -> None:
    """In what it was asked and in what it returned; or the evidence would hold the key."""
    recorded(shell)
    folder = tmp_path / "evidence"
    done = shell.tracefork(*HYBRID, "--json", "--bundle", str(folder), "agent.tape", "agent.py")
    (one,) = done.document["verifications"]
    assert (done.exit, one["tool"], one["now"]) == (0, "check", [one["recorded"]])
    assert "is refused: first" in one["now"][0]["error"]
    assert SECRET not in done.out
    assert all(SECRET not in file.read_text() for file in folder.iterdir())


def test_a_lockfile_is_looked_for_where_the_agent_ran(shell: Shell, tmp_path: Path) -> None:
    """And a bundle is written where the command was typed."""
    recorded(shell)
    (elsewhere := tmp_path / "elsewhere").mkdir()
    tape = str(shell.folder / "agent.tape")
    typed = (*HYBRID, "--bundle", "evidence", tape)
    done = replace(shell, folder=elsewhere).tracefork(*typed)
    assert done.exit == 0, done.err
    assert (elsewhere / "evidence" / "manifest.json").exists()
    shell.write("uv.lock", "two")
    done = replace(shell, folder=elsewhere).tracefork(*HYBRID, tape)
    assert (done.exit, "uv.lock has changed" in done.err) == (2, True)


def test_a_verifier_that_was_never_called_is_refused(shell: Shell) -> None:
    """With a typing mistake, another verifier would pass, and nothing would tell."""
    recorded(shell)
    done = shell.tracefork(*HYBRID, "--verifier", "wrods", "agent.tape", "agent.py")
    assert done.exit == 2
    assert "It has calls of check, words." in done.err
    done = shell.tracefork(*HYBRID, "--verifier", "words", "agent.tape", "agent.py")
    assert (done.exit, "2 runs of verifiers" in done.err) == (0, True), done.err


def test_a_result_without_an_exit_code_is_compared_as_a_whole(shell: Shell) -> None:
    """It is not called passed: only its words say whether the check did."""
    recorded(shell)
    words = (*HYBRID, "--verifier", "words", "agent.tape", "agent.py")
    done = shell.tracefork(*words)
    assert "✓ words (exchange 2): returned a result then, the same now: same" in done.err
    shell.write("words", "second")
    done = shell.tracefork(*words)
    assert done.exit == 1
    assert "✗ words (exchange 2): returned a result then, another result now" in done.err
    assert "failed with exit 1 in another way now: different" in done.err
    assert "not proven: only verifiers ran" in done.err


UNTAPED = """\
import os
import openai

def pay(amount):
    with open("paid.log", "a") as log:
        log.write("paid\\n")
    return f"paid {amount}"

client = openai.OpenAI(base_url=os.environ["PROVIDER"] + "/v1", api_key="sk-none")
messages = [{"role": "user", "content": '@call pay {"amount": 7}\\n@then\\n@say Done.'}]
offer = {"name": "pay", "parameters": {"type": "object", "properties": {}}}
tools = [{"type": "function", "function": offer}]
for _ in range(2):
    answer = client.chat.completions.create(model="gpt-5-mini", messages=messages, tools=tools)
    message = answer.choices[0].message
    messages.append(message.model_dump(exclude_none=True))
    for call in message.tool_calls or []:
        messages.append({"role": "tool", "tool_call_id": call.id, "content": pay(7)})
"""


def test_a_tool_that_is_not_on_the_tape_is_refused_in_both_modes(shell: Shell) -> None:
    """The replay would run it again; it does, once it is allowed by its name."""
    shell.write("agent.py", UNTAPED)
    assert shell.tracefork("record", "agent.py").exit == 0
    paid = shell.folder / "paid.log"
    for mode in ("strict", "hybrid"):
        done = shell.tracefork("replay", "--mode", mode, "agent.tape", "agent.py")
        assert (done.exit, f"pay ×1. Mode {mode} would run it again." in done.err) == (2, True)
    assert paid.read_text() == "paid\n"
    allowed = ("replay", "--mode", "strict", "--allow-write", "pay", "agent.tape", "agent.py")
    done = shell.tracefork(*allowed)
    assert (done.exit, "! accepted: pay is not on the tape" in done.err) == (0, True)
    assert paid.read_text() == "paid\npaid\n"
