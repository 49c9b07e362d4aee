"""What masking finds in real files is secret: it changes nothing else in them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tracefork_core.masking.redactor import Redactor

SHARED = Path(__file__).parents[3] / "shared"
FOLDERS = [SHARED / "traffic", SHARED / "real"]
REAL = {"jwt": b"eyJ", "aws_key_id": b"AKIA"}
"""The kinds of tokens that were left in these files, and how they begin."""


def files() -> Iterator[Path]:
    for folder in FOLDERS:
        yield from (path for path in sorted(folder.rglob("*")) if path.is_file())


@pytest.mark.skipif(
    not all(folder.is_dir() for folder in FOLDERS),
    reason="recorded traffic of real providers is not ours to publish",
)
def test_only_real_tokens_are_masked_in_real_traffic() -> None:
    """Decoding escapes and base64 finds no token where there is none."""
    redactor, found = Redactor({}), 0
    for path in files():
        data = path.read_bytes()
        for match in redactor.find(data):
            assert data[match.start : match.end].startswith(REAL[match.name]), (path, match)
            found += 1
    assert found > 0
