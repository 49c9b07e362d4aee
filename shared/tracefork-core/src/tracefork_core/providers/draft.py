"""The content of an answer to make, and what it copies from the recorded answer."""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import shake_256

from tracefork_core.errors import UsageError
from tracefork_core.providers.call import ModelCall
from tracefork_core.providers.lenient import Json, compact, mapping
from tracefork_core.providers.question import Question

# Providers put the time into answers. Made-up answers are stable: theirs is 2026-01-01.
CREATED = 1_767_225_600
_ALPHABET = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"


@dataclass(frozen=True, slots=True)
class Call:
    """A tool call of the answer; `arguments` is an object, or text that is sent as it is."""

    name: str
    arguments: dict[str, Json] | str

    @property
    def written(self) -> str:
        """The arguments as text."""
        return self.arguments if isinstance(self.arguments, str) else compact(self.arguments)

    def object_for(self, taker: str) -> dict[str, Json]:
        """Return the arguments as an object.

        Raises:
            UsageError: they are text, which `taker` cannot send.
        """
        if isinstance(self.arguments, str):
            raise UsageError(
                f"{taker} sends arguments as objects only. Give those of {self.name!r} as an"
                " object, not as text"
            )
        return self.arguments


@dataclass(frozen=True, slots=True)
class Draft:
    """An answer before it has a provider's form.

    `before` is the recorded answer as one document, `recorded` its meaning. They are empty and None
    if no answer was recorded, or only an error.
    """

    question: Question
    text: str | None
    calls: tuple[Call, ...]
    before: dict[str, Json]
    recorded: ModelCall | None
    seed: bytes

    @property
    def model(self) -> str:
        """The name of the model that answers."""
        before = self.recorded.response_model if self.recorded else None
        return before or self.question.call.request_model or "unknown"

    @property
    def is_unchanged(self) -> bool:
        """Whether this answer says the same as the recorded one."""
        said = self.recorded
        return (
            said is not None
            and said.text == (self.text or "")
            and [(call.name, call.arguments) for call in said.tool_calls]
            == [(call.name, call.arguments) for call in self.calls]
        )

    @property
    def reported(self) -> dict[str, Json]:
        """The recorded usage object."""
        return (
            mapping(self.recorded.usage.reported) if self.recorded and self.recorded.usage else {}
        )

    @property
    def input_tokens(self) -> int:
        """The tokens of the request: as recorded, else estimated at four bytes per token."""
        usage = self.recorded.usage if self.recorded else None
        counted = usage.input_tokens if usage else None
        return 1 + len(compact(self.question.wire.request)) // 4 if counted is None else counted

    @property
    def output_tokens(self) -> int:
        """The tokens of the answer, estimated at four characters per token."""
        said = len(self.text or "") + sum(len(call.name + call.written) for call in self.calls)
        return 1 + said // 4

    def id(self, prefix: str, length: int, part: int = 0) -> str:
        """Make up an id, the same one for the same answer to the same request."""
        drawn = shake_256(self.seed + f"{prefix}{part}".encode()).digest(length)
        return prefix + "".join([_ALPHABET[byte % 62] for byte in drawn])

    def call_id(self, prefix: str, length: int, part: int) -> str:
        """Return the id of the recorded tool call at this position, or make one up."""
        before = self.recorded.tool_calls if self.recorded else ()
        recorded = before[part].id if part < len(before) else None
        return recorded or self.id(prefix, length, part)
