"""A replay needs no vocabulary of tiktoken."""

from __future__ import annotations

import asyncio
import base64
import hashlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import tiktoken.registry
from autogen_core.model_context import TokenLimitedChatCompletionContext
from tiktoken import load

import tracefork_core as tracefork
from tracefork_testkit import ProviderServer
from tracefork_testkit.http1 import Delivery

Call = Callable[..., Any]
HOST = "openaipublic.blob.core.windows.net"
WORDS = b"\n".join(base64.b64encode(bytes([n])) + b" %d" % n for n in range(256))


class Vocabularies(ProviderServer):
    """Serves a small vocabulary in the place of the real one of several megabytes."""

    def answer(self, received: Any) -> Any:
        """Return the file."""
        self._received.append(received)
        return Delivery(200, [("content-type", "application/octet-stream")], [WORDS])


@pytest.fixture
def vocabularies(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Vocabularies]:
    """Serve it as the host that tiktoken asks, on a machine that has no vocabulary yet."""

    def encoding() -> dict[str, Any]:
        ranks = load.load_tiktoken_bpe(
            f"https://{HOST}/encodings/o200k_base.tiktoken", hashlib.sha256(WORDS).hexdigest()
        )
        named = {"name": "o200k_base", "pat_str": ".", "special_tokens": {}}
        return {**named, "mergeable_ranks": ranks}

    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", str(tmp_path / "vocabularies"))
    monkeypatch.setattr(tiktoken.registry, "ENCODING_CONSTRUCTORS", {"o200k_base": encoding})
    monkeypatch.setattr(tiktoken.registry, "ENCODINGS", {})
    with Vocabularies().real_hosts(HOST) as served:
        yield served


def forget(tmp_path: Path) -> None:
    """Make this a machine that has no vocabulary, as another one may."""
    tiktoken.registry.ENCODINGS.clear()
    for file in (tmp_path / "vocabularies").glob("*"):
        file.unlink()


@pytest.mark.parametrize("is_new", [True, False])
def test_a_replay_counts_without_the_vocabulary(
    client: Call,
    agent: Call,
    server: ProviderServer,
    vocabularies: Vocabularies,
    tape: Path,
    tmp_path: Path,
    is_new: bool,
) -> None:
    """The tape holds counts and no download, whether the recording made one or not.

    A fork counts new messages itself, and loads the vocabulary for that.
    """

    async def converse() -> str:
        context = TokenLimitedChatCompletionContext(client(), token_limit=60)
        helper = agent("helper", "Be brief.", model_context=context)
        await helper.run(task="@say One.")
        return str(await helper.run(task="@say Two."))

    def run() -> str:
        return asyncio.run(converse())

    if not is_new:
        run()
    with tracefork.record(tape):
        recorded = run()
    assert [asked.path for asked in vocabularies.requests] == ["/encodings/o200k_base.tiktoken"]
    with tracefork.Tape.open(tape) as opened:
        assert len(list(opened.exchanges)) == 2
    forget(tmp_path)
    with tracefork.fork(tape, 0, tracefork.Replace(text="Something else.")):
        run()
    assert len(vocabularies.requests) == 2
    forget(tmp_path)
    server.stop()
    with tracefork.replay(tape, strict=True):
        assert run() == recorded
    assert len(vocabularies.requests) == 2
