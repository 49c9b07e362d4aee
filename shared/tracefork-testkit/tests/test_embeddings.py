"""The real OpenAI SDK reads the server's embeddings."""

from __future__ import annotations

import math
from collections.abc import Callable

import openai
import pytest

from tracefork_testkit import ProviderServer, Reply

OpenAIAt = Callable[[ProviderServer], openai.OpenAI]


def test_vectors_depend_on_the_text_alone(openai_at: OpenAIAt) -> None:
    """Equal texts have equal unit vectors, as floats or base64, and use up no scripted reply."""
    with ProviderServer([Reply("still here")]) as server:
        sdk = openai_at(server)
        create = sdk.embeddings.create
        packed = create(model="text-embedding-3-small", input=["a", "b", "a"]).data
        floats = create(model="text-embedding-3-small", input="a", encoding_format="float").data
        chat = sdk.chat.completions.create(
            model="gpt-5", messages=[{"role": "user", "content": "hi"}]
        )
    assert packed[0].embedding == packed[2].embedding != packed[1].embedding
    assert floats[0].embedding == pytest.approx(packed[0].embedding)
    assert len(packed[0].embedding) == 1536
    assert math.hypot(*packed[0].embedding) == pytest.approx(1)
    assert chat.choices[0].message.content == "still here"


def test_a_vector_has_the_requested_dimensions(
    provider: ProviderServer, openai_at: OpenAIAt
) -> None:
    """A request for 16 numbers gets 16."""
    one = openai_at(provider).embeddings.create(
        model="text-embedding-3-large", input="a", dimensions=16
    )
    assert len(one.data[0].embedding) == 16
