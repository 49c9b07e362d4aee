"""A replay needs no vocabulary of tiktoken."""

from __future__ import annotations

import asyncio
import base64
import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import tiktoken.registry
from autogen_core.model_context import TokenLimitedChatCompletionContext
from tiktoken import load

import tracefork_core as tracefork
from tracefork_testkit import ProviderServer

Call = Callable[..., Any]
HOST = "openaipublic.blob.core.windows.net"
downloads: list[str] = []


@pytest.fixture
def vocabulary(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[[], None]:
    """Let tiktoken have one small vocabulary, and forget it when the test says so."""
    words = b"\n".join(base64.b64encode(bytes([n])) + b" %d" % n for n in range(256))
    cache = tmp_path / "vocabulary"
    downloads.clear()

    def read(url: str) -> bytes:
        downloads.append(url)
        return words

    def encoding() -> dict[str, Any]:
        ranks = load.load_tiktoken_bpe(
            f"https://{HOST}/encodings/o200k_base.tiktoken", hashlib.sha256(words).hexdigest()
        )
        return {
            "name": "o200k_base",
            "pat_str": ".",
            "mergeable_ranks": ranks,
            "special_tokens": {},
        }

    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", str(cache))
    monkeypatch.setattr(load, "read_file", read)
    monkeypatch.setattr(tiktoken.registry, "ENCODING_CONSTRUCTORS", {"o200k_base": encoding})
    monkeypatch.setattr(tiktoken.registry, "ENCODINGS", {})

    def forget() -> None:
        tiktoken.registry.ENCODINGS.clear()
        for file in cache.glob("*"):
            file.unlink()

    return forget


def test_a_replay_counts_without_the_vocabulary(
    client: Call, agent: Call, server: ProviderServer, tape: Path, vocabulary: Callable[[], None]
) -> None:
    """The machine that records has it already: the tape holds no download, but the counts."""

    async def converse() -> str:
        context = TokenLimitedChatCompletionContext(client(), token_limit=60)
        helper = agent("helper", "Be brief.", model_context=context)
        await helper.run(task="@say One.")
        return str(await helper.run(task="@say Two."))

    def run() -> str:
        return asyncio.run(converse())

    run()
    assert downloads
    with tracefork.record(tape):
        recorded = run()
    assert len(downloads) == 1
    vocabulary()
    server.stop()
    with tracefork.replay(tape, strict=True):
        assert run() == recorded
    assert len(downloads) == 1
