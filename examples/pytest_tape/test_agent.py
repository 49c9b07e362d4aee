"""Record once with `pytest --tape-mode=once` and a model; after that, `pytest` replays for $0."""

import pytest
from agent import answer


@pytest.mark.tape
def test_the_answer_mentions_the_order():
    assert "sure" in answer("Where is order 17?")
