"""A forked child whose agent has finished ends as in Python; the run belongs to its parent."""

from __future__ import annotations

import pytest

from .conftest import PLAIN_AGENT, Shell

FORKING = (
    PLAIN_AGENT
    + """\
sys.stdout.flush()
child = os.fork()
name = "parent" if child else "child"
status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) if child else 0
print(name, status, httpx2.post(os.environ["PROVIDER"] + "/echo", content=name.encode()).text)
"""
)
pytestmark = pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")


@pytest.mark.parametrize(
    ("ending", "status", "said"),
    [("", 0, ""), ("raise KeyError('x')", 1, "KeyError: 'x'"), ("sys.exit(3)", 3, "")],
    ids=["well", "error", "exit"],
)
def test_a_forked_child_ends_as_in_python(
    ending: str, status: int, said: str, shell: Shell
) -> None:
    """Its requests are on the tape, it prints nothing of tracefork, and keeps its status."""
    shell.write("forking.py", f"{FORKING}if not child:\n    print(end='', flush=True); {ending}\n")
    for words in (("record", "forking.py"), ("replay", "forking.tape")):
        done = shell.tracefork(*words)
        assert done.exit == 0
        assert done.out == f"one\ntwo\nchild 0 child\nparent {status} parent\n"
        assert said in done.err
        assert "bug" not in done.err
        assert done.err.count("4 exchanges") == 1
