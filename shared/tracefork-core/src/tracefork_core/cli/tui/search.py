"""Look for a text in everything that a run says: each message once, where it was new."""

from __future__ import annotations

from collections.abc import Generator, Iterator

from tracefork_core.cli.display.timeline import step_words
from tracefork_core.cli.report.bodies import request_body, response_body
from tracefork_core.cli.report.conversation import Conversation
from tracefork_core.cli.report.timeline import error_of
from tracefork_core.errors import TraceforkError
from tracefork_core.providers import ModelCall, model_call
from tracefork_core.tape import Exchange, Tape


def search(tape: Tape, words: str) -> Generator[int | None]:
    """Yield the number of each exchange with the text, in any case, and None of each without."""
    wanted = words.casefold()
    conversation = Conversation(content=True)
    for exchange in tape.exchanges:
        try:
            call = model_call(exchange)
            conversation.add(exchange, call)
            texts = list(_texts(exchange, call, conversation))
        except TraceforkError:  # Its row says that it is corrupt.
            texts = []
        yield exchange.n if any(wanted in text.casefold() for text in texts) else None


def _texts(exchange: Exchange, call: ModelCall | None, said: Conversation) -> Iterator[str]:
    yield exchange.url
    yield exchange.lane
    yield step_words(exchange)
    yield error_of(exchange, call, content=True) or ""
    if call is not None:
        yield call.request_model or ""
        for message in said.new:
            for part in message.parts:
                yield f"{part.name or ''} {part.text}"
    elif exchange.has_bodies:
        asked = request_body(exchange)
        yield asked if isinstance(asked, str) else ""
        yield response_body(exchange).text
