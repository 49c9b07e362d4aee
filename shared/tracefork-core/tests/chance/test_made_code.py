"""Code made at run time has no file: the line that runs it is reported."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

from tracefork_core import Tape, record
from tracefork_testkit import ProviderServer

AGENT = """\
import dataclasses, os, uuid
import httpx2

@dataclasses.dataclass
class Order:
    number: uuid.UUID = dataclasses.field(default_factory=uuid.uuid4)
    shop: str = dataclasses.field(default_factory=lambda: os.environ["SHOP"])
    folder: str = dataclasses.field(default_factory=os.getcwd)

Order()
exec("import uuid; uuid.uuid4()", {})
exec("httpx2.get(os.environ['PROVIDER'] + '/bytes/1')")
"""


@pytest.mark.parametrize("name", ["agent", "__main__"])
def test_the_line_that_runs_generated_code_is_reported(
    tape: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, provider: ProviderServer, name: str
) -> None:
    """What a dataclass or `exec` draws, reads and sends, in a script and in a module."""
    monkeypatch.setenv("PROVIDER", provider.url)
    monkeypatch.setenv("SHOP", "of books")
    (tmp_path / "agent.py").write_text(AGENT)
    with record(tape, entropy=False, boundary="note") as run:
        runpy.run_path(str(tmp_path / "agent.py"), run_name=name)
    assert [leak.partition(": ")[0] for leak in run.leaks] == ["agent.py:10", "agent.py:11"]
    with Tape.open(tape) as recorded:
        assert [one.aside.caller for one in recorded.exchanges] == ["agent.py:12"]
        read = {seen.name or seen.kind: seen.site for seen in recorded.surroundings}
    assert (read["SHOP"], read["folder"]) == ("agent.py:7", "agent.py:10")
