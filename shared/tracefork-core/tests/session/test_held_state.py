"""A fork does not continue what a provider keeps otherwise than the fork needs it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from openai import OpenAI

import tracefork_core as tracefork
from tracefork_core import Edit, Keep, UsageError
from tracefork_testkit import ProviderServer


@pytest.fixture
def client(provider: ProviderServer) -> Iterator[OpenAI]:
    """A client of the provider."""
    with OpenAI(base_url=f"{provider.url}/v1", api_key="none") as client:
        yield client


def chain(client: OpenAI, *texts: str) -> str:
    """Continue each response by its id; return the last answer."""
    before, said = None, ""
    for text in texts:
        made = client.responses.create(model="m", input=text, previous_response_id=before)
        before, said = made.id, made.output_text
    return said


def converse(client: OpenAI, *texts: str) -> None:
    """Add to one conversation."""
    for text in texts:
        client.responses.create(model="m", input=text, conversation="conv_1")


def test_another_answer_is_not_continued_by_its_id(
    client: OpenAI, provider: ProviderServer, tape: Path
) -> None:
    """The provider never gave it, so nothing is sent; the answer itself needs no provider."""
    with tracefork.record(tape):
        chain(client, "one", "two")
    with (
        pytest.raises(UsageError, match="continues the response to exchange 0"),
        tracefork.fork(tape, at=0, replace="another"),
    ):
        chain(client, "one", "two")
    with tracefork.fork(tape, at=1, replace="another"):
        assert chain(client, "one", "two") == "another"
    assert len(provider.requests) == 2


def test_a_changed_request_is_continued_by_its_new_id(client: OpenAI, tape: Path) -> None:
    """The provider answers it, and keeps that."""
    with tracefork.record(tape):
        chain(client, "one", "two")
    with tracefork.fork(tape, at=0, replace=Edit(prompt="three")):
        chain(client, "one", "two")


def test_a_held_answer_to_another_request_is_not_continued(client: OpenAI, tape: Path) -> None:
    """Its id stands for the recorded request, which the fork has changed."""
    with tracefork.record(tape):
        chain(client, "one", "two", "three")
    changes: dict[int | str, Edit | Keep] = {0: Edit(prompt="four"), 1: Keep()}
    with (
        pytest.raises(UsageError, match="continues the response to exchange 1"),
        tracefork.fork(tape, at=0, change=changes),
    ):
        chain(client, "one", "two", "three")


def test_a_held_answer_to_the_same_request_is_continued(client: OpenAI, tape: Path) -> None:
    """The provider keeps just that."""
    with tracefork.record(tape):
        chain(client, "one", "two", "three")
    with tracefork.fork(tape, at=0, change={0: Keep(), 1: Keep()}):
        chain(client, "one", "two", "three")


def test_a_conversation_is_not_continued_from_its_middle(
    client: OpenAI, provider: ProviderServer, tape: Path
) -> None:
    """The recording added to it what the fork should not know."""
    with tracefork.record(tape):
        converse(client, "one", "two")
    with (
        pytest.raises(UsageError, match="conversation conv_1 has what the recording added"),
        tracefork.fork(tape, at=1),
    ):
        converse(client, "one", "two")
    assert len(provider.requests) == 2
