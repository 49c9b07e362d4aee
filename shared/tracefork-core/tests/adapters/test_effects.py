"""One place decides what side effect a tool has."""

from __future__ import annotations

import pytest

import tracefork_core as tracefork
from tracefork_core import UsageError
from tracefork_core.adapters import effect_of


@tracefork.tool(effect="read")
def look_up() -> None:
    """Declare an effect in the code."""


def test_the_first_declaration_counts() -> None:
    """What the caller names first, then the decorator; an undeclared tool may be a write."""
    assert effect_of("t", "write", "read", function=look_up) == "write"
    assert effect_of("t", None, "pure", function=look_up) == "pure"
    assert effect_of("t", None, function=look_up) == "read"
    assert effect_of("t") is None


def test_a_wrong_declaration_is_named() -> None:
    """It says for which tool, and what is possible."""
    with pytest.raises(UsageError, match=r"tool refund must be one of read, write, pure.*'reads'"):
        effect_of("refund", "reads")
