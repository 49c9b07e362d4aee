"""READMEs and explanations are true: their examples run, in the order of the page."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
)
from docs.pages import ROOT, follow

from tracefork_core.telemetry.instruments import INSTRUMENTS

_STAND_IN = (
    "python examples/stand_in/provider.py &",
    "export OPENAI_BASE_URL=http://127.0.0.1:8899/v1 OPENAI_API_KEY=none",
)


def make_key(home: Path) -> None:
    """Put an Ed25519 key pair where ssh keeps them."""
    (home / ".ssh").mkdir()
    key = Ed25519PrivateKey.generate()
    kind = (Encoding.PEM, PrivateFormat.OpenSSH, NoEncryption())
    (home / ".ssh" / "id_ed25519").write_bytes(key.private_bytes(*kind))
    public = key.public_key().public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH)
    (home / ".ssh" / "id_ed25519.pub").write_bytes(public)


def test_what_the_readme_shows_works(tmp_path: Path) -> None:
    """Each command does what is said, and so does the Python."""
    follow("README.md", tmp_path)
    assert (tmp_path / "use" / "ticket.0.tape").is_file()


def test_what_the_readme_of_core_shows_works(tmp_path: Path) -> None:
    """The file, the commands and the examples of tracefork-core's page run, one after another."""
    follow("shared/tracefork-core/README.md", tmp_path)


@pytest.mark.with_langgraph
def test_what_the_readme_of_the_langgraph_adapter_shows_works(tmp_path: Path) -> None:
    """Its examples run one after another: record, save, travel, bind, and declare a tool."""
    follow("packages/tracefork-langgraph/README.md", tmp_path, before=_STAND_IN)


@pytest.mark.with_langgraph
def test_a_run_is_travelled_as_the_guide_says(tmp_path: Path) -> None:
    """The graph is recorded, goes on from its checkpoints for nothing, and is forked at one."""
    listed = "tracefork show run.tape --checkpoints 2>&1"
    one = f"$({listed} | grep -o '[0-9a-f]*$' | tail -n 1)"
    follow("docs/how-to/travel-in-a-langgraph-run.md", tmp_path, instead={"5f3a91c2": one})


def test_the_determinism_boundary_is_shown_with_an_agent_of_any_kind(tmp_path: Path) -> None:
    """What records and replays an agent on that page does so."""
    agent = "def my_agent(*_, **chance): pass"
    follow("docs/explanation/determinism-boundary.md", tmp_path, example=agent)


def test_the_guide_to_ci_works(tmp_path: Path) -> None:
    """Record a tape, scan it, verify it, and replay it in a test, as the page says."""
    follow("docs/how-to/put-it-into-ci.md", tmp_path)


def test_a_test_records_itself_as_the_guide_says(tmp_path: Path) -> None:
    """It refunds once for two runs, shows a changed prompt, and is recorded again on purpose."""
    follow("docs/how-to/put-it-into-a-test.md", tmp_path)
    assert len((tmp_path / "refunds" / "refunds.log").read_text().splitlines()) == 2


def test_the_reference_of_telemetry_is_right(tmp_path: Path) -> None:
    """A recording writes a line, and the page lists each metric with its kind and unit."""
    follow("docs/reference/telemetry.md", tmp_path)
    line = json.loads((tmp_path / "observed" / "runs.jsonl").read_text().splitlines()[0])
    page = (ROOT / "docs/reference/telemetry.md").read_text()
    assert {key for key in line if key.startswith("tracefork.") and f"`{key}`" not in page} == set()
    for name, (kind, unit, _) in INSTRUMENTS.items():
        assert f"| `{name}` | {kind} | `{unit}` |" in page


def test_the_guide_to_sharing_works(tmp_path: Path) -> None:
    """Scan, pack, sign, unpack, verify and replay a tape in another folder."""
    make_key(tmp_path)
    follow("docs/how-to/share-a-tape.md", tmp_path)
    assert (tmp_path / "share" / "inbox" / "ticket-packed.tape").is_file()
