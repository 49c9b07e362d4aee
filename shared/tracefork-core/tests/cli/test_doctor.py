from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from tracefork_core.cli.main import main
from tracefork_core.version import __version__

ADAPTER = """\
from tracefork_core.adapters import Adapter
ADAPTER = Adapter("toy", "tracefork-toy", "httpx", ("httpx",))
"""


def install(folder: Path, requirement: str, module: str) -> None:
    """Lay an adapter out as an installed distribution."""
    metadata = folder / "tracefork_toy-0.3.dist-info"
    metadata.mkdir(parents=True)
    (metadata / "METADATA").write_text(
        f"Metadata-Version: 2.1\nName: tracefork-toy\nVersion: 0.3\nRequires-Dist: {requirement}\n"
    )
    (metadata / "entry_points.txt").write_text("[tracefork.adapters]\ntoy = toy_adapter:ADAPTER\n")
    (folder / "toy_adapter.py").write_text(module)


def test_what_is_installed_is_listed(capsys: pytest.CaptureFixture[str]) -> None:
    """Python, the store, HTTP libraries with their seam, SDKs with the library they send with."""
    assert main(["doctor", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    seen = {library["name"]: library["seen"] for library in found["transports"]}
    assert seen["httpx"] == "seam"
    assert seen["requests"] == "seam"
    assert seen["urllib3"].startswith("no seam")
    sdks = {library["name"]: library["seen"] for library in found["sdks"]}
    assert "httpx2 (seam)" in sdks["openai"]
    assert found["tracefork"] == __version__
    assert main(["doctor"]) == 0
    text = capsys.readouterr().out
    assert "model SDKs" in text
    assert max(len(line) for line in text.splitlines() if "platform" not in line) <= 80


@pytest.mark.parametrize(
    ("requirement", "supported", "mark"),
    [
        ("httpx>=0.20,<9", True, "✓"),
        ("httpx[http2]>=8 ; python_version > '3'", False, "✗"),
        ("httpx~=0.28", None, "?"),
        ("httpcore", None, "?"),
    ],
)
def test_an_adapter_says_what_it_supports(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    requirement: str,
    supported: bool | None,
    mark: str,
) -> None:
    """The range comes from the adapter's own metadata; what cannot be told is not guessed."""
    install(tmp_path, requirement, ADAPTER)
    monkeypatch.syspath_prepend(tmp_path)
    assert main(["doctor", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)["adapters"]
    (adapter,) = (entry for entry in found if entry["name"] == "toy")
    assert adapter["supported"] is supported
    assert adapter["version"] == "0.3"
    assert main(["doctor"]) == 0
    assert f"  {mark} tracefork-toy 0.3 · httpx " in capsys.readouterr().out


def test_a_broken_adapter_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """An adapter that cannot be imported is listed with its error, and doctor still ends with 0."""
    install(tmp_path, "httpx", "import no_such_module\n")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "toy_adapter", raising=False)
    assert main(["doctor"]) == 0
    said = capsys.readouterr().out
    assert "✗ toy: ModuleNotFoundError: No module named 'no_such_module'" in said
