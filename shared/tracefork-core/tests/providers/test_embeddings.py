"""OpenAI's embeddings: inputs of every shape, and unchanged vectors."""

from __future__ import annotations

from collections.abc import Callable

from tracefork_core.providers import GenericPart, Message, ModelCall, TextPart

Ask = Callable[..., ModelCall]

URL = "https://api.openai.com/v1/embeddings"


def test_each_input_and_each_vector_is_a_message(ask: Ask) -> None:
    """A batch keeps its order, and the usage has input tokens only."""
    request = {"model": "e", "input": ["a", "b"], "encoding_format": "float"}
    body = {
        "model": "e-1",
        "data": [{"embedding": [0.5]}, {"embedding": "AAAA"}],
        "usage": {"prompt_tokens": 2, "total_tokens": 2},
    }
    view = ask(URL, request, body)
    assert (view.operation, view.api) == ("embeddings", "openai.embeddings")
    assert (view.request_model, view.response_model) == ("e", "e-1")
    assert view.input == (Message("user", (TextPart("a"),)), Message("user", (TextPart("b"),)))
    assert [message.parts for message in view.output] == [
        (GenericPart("embedding", [0.5]),),
        (GenericPart("embedding", "AAAA"),),
    ]
    assert view.usage is not None
    assert (view.usage.input_tokens, view.usage.output_tokens) == (2, None)
    assert view.parameters == {"encoding_formats": ["float"]}


def test_a_list_of_token_ids_is_one_input(ask: Ask) -> None:
    """A list of such lists is a batch."""
    flat = ask(URL, {"model": "e", "input": [1, 2]}, {})
    batch = ask(URL, {"model": "e", "input": [[1], [2]]}, {})
    assert flat.input == (Message("user", (GenericPart("tokens", [1, 2]),)),)
    assert len(batch.input) == 2
