"""The pictures of the docs show what the commands print today."""

from __future__ import annotations

import html
import importlib.util
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PICTURES = ROOT / "docs" / "pictures"
_LARGEST = 150_000
_TEXT = re.compile(r"<text[^>]*>(.*?)</text>")
_VARIES = re.compile(r"\d+|[█▓▒·]+|\s+")
"""Ports, counts and bars differ from run to run."""


def shown(picture: Path) -> str:
    """Return the words of a picture, without what differs between two runs."""
    text = " ".join(html.unescape(piece) for piece in _TEXT.findall(picture.read_text()))
    return _VARIES.sub(" ", text)


def test_the_pictures_are_of_today(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Made again, they have the same words. After a change: python docs/pictures.py."""
    spec = importlib.util.spec_from_file_location("pictures", ROOT / "docs" / "pictures.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    monkeypatch.setattr(module, "PICTURES", tmp_path)
    module.main()
    for picture in sorted(PICTURES.glob("*.svg")):
        assert shown(tmp_path / picture.name) == shown(picture), picture.name
    assert len(shown(PICTURES / "blame.svg")) > 300
    assert "messages/ /content" in shown(PICTURES / "divergence.svg")
    assert "DIVERGED" in shown(PICTURES / "view.svg")


def test_the_photograph_of_a_report_is_small() -> None:
    """Cloning the repository and opening the page take no longer for it."""
    photograph = (PICTURES / "report.png").read_bytes()
    assert photograph.startswith(b"\x89PNG")
    assert len(photograph) <= _LARGEST
