from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tracefork_core.cli.main import main
from tracefork_core.version import __version__

ADAPTER = """\
from tracefork_core.adapters import Adapter
ADAPTER = Adapter("toy", "tracefork-toy", "httpx", ("httpx",))
"""


@pytest.fixture(autouse=True)
def _afterwards_it_is_gone() -> Iterator[None]:
    yield
    sys.modules.pop("toy_adapter", None)


def lay(folder: Path, name: str, metadata: str | bytes | None) -> Path:
    """Make the files of an installed distribution, and return its metadata folder."""
    found = folder / f"{name}.dist-info"
    found.mkdir(parents=True)
    if metadata is not None:
        content = metadata.encode() if isinstance(metadata, str) else metadata
        (found / "METADATA").write_bytes(content)
    return found


def install(folder: Path, requirement: str, module: str) -> None:
    """Install an adapter."""
    metadata = lay(
        folder,
        "tracefork_toy-0.3",
        f"Metadata-Version: 2.1\nName: tracefork-toy\nVersion: 0.3\nRequires-Dist: {requirement}\n",
    )
    (metadata / "entry_points.txt").write_text("[tracefork.adapters]\ntoy = toy_adapter:ADAPTER\n")
    (folder / "toy_adapter.py").write_text(module)


def test_python_libraries_and_sdks_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    """Each SDK has the HTTP libraries that it sends with."""
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
    ("requirement", "supported", "mark", "remedy"),
    [
        ("httpx>=0.20,<9", True, "✓", None),
        ("httpx[http2]>=8 ; python_version > '3'", False, "✗", "pip install 'httpx>=8'"),
        ("httpx~=0.28", None, "?", None),
        ("httpcore", None, "?", None),
    ],
)
def test_an_adapter_shows_the_versions_it_supports(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    requirement: str,
    supported: bool | None,
    mark: str,
    remedy: str | None,
) -> None:
    """The range is in the adapter's metadata; a range that cannot be compared is not guessed."""
    install(tmp_path, requirement, ADAPTER)
    monkeypatch.syspath_prepend(tmp_path)
    assert main(["doctor", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)["adapters"]
    (adapter,) = (entry for entry in found if entry["name"] == "toy")
    assert adapter["supported"] is supported
    assert adapter["version"] == "0.3"
    assert adapter["remedy"] == remedy
    assert main(["doctor"]) == 0
    said = capsys.readouterr().out
    assert f"  {mark} tracefork-toy 0.3 · httpx " in said
    assert remedy is None or f"\n      {remedy}\n" in said


def test_a_missing_framework_shows_the_install_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its adapter is installed."""
    install(tmp_path, "lacking<3,>=2", ADAPTER.replace('"httpx", (', '"lacking", ('))
    monkeypatch.syspath_prepend(tmp_path)
    assert main(["doctor"]) == 0
    said = capsys.readouterr().out
    assert "✗ tracefork-toy 0.3 · lacking is not installed (supports <3,>=2)\n" in said
    assert "\n      pip install 'lacking<3,>=2'\n" in said


def test_a_missing_adapter_shows_the_install_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its framework is installed."""
    lay(tmp_path, "crewai-1.16.0", "Metadata-Version: 2.1\nName: crewai\nVersion: 1.16.0\n")
    assert main(["doctor"]) == 0
    assert "crewai 1.16.0" not in capsys.readouterr().out
    monkeypatch.syspath_prepend(tmp_path)
    assert main(["doctor"]) == 0
    said = capsys.readouterr().out
    assert "crewai 1.16.0" in said
    assert "\n      pip install tracefork-crewai\n" in said


@pytest.mark.parametrize(
    ("module", "problem"),
    [
        ("import no_such_module\n", "ModuleNotFoundError: No module named 'no_such_module'"),
        ("raise SystemExit('a licence is needed')\n", "SystemExit: a licence is needed"),
        ("ADAPTER = None\n", "toy_adapter:ADAPTER"),
        (ADAPTER, "AttributeError: module 'toy_adapter'"),
    ],
    ids=["lacking", "exiting", "other", "instrument"],
)
def test_a_broken_adapter_is_named(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    module: str,
    problem: str,
) -> None:
    """The list has its error, and the exit code is still 0."""
    install(tmp_path, "httpx", module)
    with (tmp_path / "tracefork_toy-0.3.dist-info" / "entry_points.txt").open("a") as points:
        points.write("[tracefork.instruments]\ntoy = toy_adapter:INSTRUMENT\n")
    monkeypatch.syspath_prepend(tmp_path)
    assert main(["doctor"]) == 0
    said = capsys.readouterr().out
    assert "✗ toy: " in said
    assert problem in " ".join(said.split())
    assert "\n      pip install --force-reinstall tracefork-toy\n" in said


@pytest.mark.parametrize("metadata", [None, "Name: groq\n", b"\xff"])
def test_a_half_installed_package_shows_the_install_command(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    metadata: str | bytes | None,
) -> None:
    """Its metadata is missing, cut or not text; the rest of the list is printed."""
    lay(tmp_path, "groq-1.0", metadata)
    install(tmp_path, "groq>=1", ADAPTER.replace('"httpx", (', '"groq", ('))
    monkeypatch.syspath_prepend(tmp_path)
    assert main(["doctor"]) == 0
    said = " ".join(capsys.readouterr().out.split())
    again = "pip install --force-reinstall groq"
    assert again in said
