"""Equal requests have equal answers, byte for byte, whatever the order."""

from __future__ import annotations

import asyncio
import ssl
from collections import Counter
from typing import Any

import httpx2
import pytest

from tracefork_testkit import ProviderServer

CHAT = {"model": "m", "messages": [{"role": "user", "content": "hi"}]}
ANTHROPIC = {**CHAT, "max_tokens": 8}
GEMINI = {"contents": [{"role": "user", "parts": [{"text": "hi"}]}]}
REQUESTS: list[tuple[str, dict[str, Any]]] = [
    ("/v1/chat/completions", CHAT),
    ("/v1/chat/completions", {**CHAT, "stream": True}),
    ("/v1/responses", {"model": "m", "input": "hi"}),
    ("/v1/responses", {"model": "m", "input": "hi", "stream": True}),
    ("/v1/messages", ANTHROPIC),
    ("/v1/messages", {**ANTHROPIC, "stream": True}),
    ("/v1beta/models/g:generateContent", GEMINI),
    ("/v1beta/models/g:streamGenerateContent?alt=sse", GEMINI),
]
# Loading the root certificates for each client would take longer than the test.
CONTEXT = ssl.create_default_context()
Wire = tuple[int, tuple[tuple[bytes, bytes], ...], bytes]


def wire(answer: httpx2.Response) -> Wire:
    return answer.status_code, tuple(answer.headers.raw), answer.content


async def converse(url: str, requests: list[tuple[str, dict[str, Any]]]) -> list[Wire]:
    async with httpx2.AsyncClient(base_url=url, verify=CONTEXT) as client:
        answers = await asyncio.gather(*(client.post(path, json=body) for path, body in requests))
    return [wire(answer) for answer in answers]


def run(requests: list[tuple[str, dict[str, Any]]], **options: bool) -> list[Wire]:
    with ProviderServer(**options) as server:  # type: ignore[arg-type]
        return asyncio.run(converse(server.url, requests))


def test_equal_requests_get_the_same_bytes_in_any_order() -> None:
    """Status, headers (date included) and body are equal in forward and reverse order."""
    assert run(REQUESTS) == run(REQUESTS[::-1])[::-1]


def test_repeated_requests_differ_by_occurrence_only() -> None:
    """The second of two equal requests has its own ids, the same in every run."""
    twice = [REQUESTS[0], REQUESTS[0]]
    first, second = run(twice), run(twice)
    assert Counter(first) == Counter(second)
    assert first[0] != first[1]


@pytest.mark.parametrize("number", range(len(REQUESTS)))
def test_a_nondeterministic_server_never_repeats_itself(number: int) -> None:
    """The negative control: ids and texts are new in every format."""
    one = run([REQUESTS[number]], nondeterministic=True)[0]
    assert one[0] == 200
    assert one[2] != run([REQUESTS[number]], nondeterministic=True)[0][2]


def test_only_the_date_moves_without_a_fixed_date() -> None:
    """`fixed_date=False` changes the date header and nothing else."""
    fixed, moving = run(REQUESTS[:1])[0], run(REQUESTS[:1], fixed_date=False)[0]
    assert fixed[2] == moving[2]
    changed = {name for name, _ in set(fixed[1]) ^ set(moving[1])}
    assert changed == {b"date"}
