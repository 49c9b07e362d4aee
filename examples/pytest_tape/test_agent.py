"""Record once with TRACEFORK_RECORD=1 and a model; after that, replay for $0."""

import os
from pathlib import Path

from agent import answer

import tracefork_core as tracefork

TAPE = Path(__file__).with_name("order.tape")


def session():
    """Record if TRACEFORK_RECORD is set, else replay."""
    if os.environ.get("TRACEFORK_RECORD"):
        return tracefork.record(TAPE, overwrite=True)
    return tracefork.replay(TAPE)


def test_the_answer_mentions_the_order():
    with session():
        assert "sure" in answer("Where is order 17?")
