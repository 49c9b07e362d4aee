"""tracefork reports the result whatever an agent does to its standard streams."""

from __future__ import annotations

import pytest

from .conftest import PLAIN_AGENT, Shell

OUTPUT = PLAIN_AGENT + "sys.stdout.flush()\n"
WAYS = {
    "closed": "sys.stdout.close(); sys.stderr.close()",
    "taken away": "sys.stdout = sys.stderr = None",
    "replaced": "import io; sys.stdout = io.StringIO(); sys.stderr = io.StringIO()",
    "without its buffer": "sys.stdout.detach(); sys.stdout = open(1, 'w', closefd=False)",
}


@pytest.mark.parametrize("way", WAYS.values(), ids=list(WAYS))
def test_the_summary_and_the_verdict_are_printed(way: str, shell: Shell) -> None:
    """The agent's exit code and output are unchanged."""
    shell.write("own.py", OUTPUT + way + "\n")
    recorded = shell.tracefork("record", "own.py")
    assert (recorded.exit, recorded.out) == (0, "one\ntwo\n"), recorded.err
    assert "next: tracefork replay own.tape own.py" in recorded.err
    replayed = shell.tracefork("replay", "own.tape")
    assert (replayed.exit, replayed.out) == (0, "one\ntwo\n")
    assert "replayed 2 of 2 exchanges bit-exact" in replayed.err


@pytest.mark.parametrize("way", WAYS.values(), ids=list(WAYS))
def test_a_document_is_written(way: str, shell: Shell) -> None:
    """With --json, stdout is one document."""
    shell.write("own.py", OUTPUT + way + "\n")
    assert shell.tracefork("record", "own.py", "--json").document["exchanges"] == 2
    assert shell.tracefork("replay", "own.tape", "--json").document["result"] == "same"
