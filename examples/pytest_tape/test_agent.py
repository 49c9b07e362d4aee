"""Record with a model the first time; after that, replay for $0."""

from pathlib import Path

from agent import answer

import tracefork_core as tracefork

TAPE = Path(__file__).with_name("order.tape")


def test_the_answer_mentions_the_order():
    with tracefork.use_tape(TAPE):
        assert "sure" in answer("Where is order 17?")
