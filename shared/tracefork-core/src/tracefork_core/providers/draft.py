"""The content of an answer before it is written, and the values that it copies from a recording."""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import shake_256

from tracefork_core.errors import UsageError
from tracefork_core.providers.call import ModelCall
from tracefork_core.providers.lenient import Json, compact, mapping
from tracefork_core.providers.question import Question

# Providers put the time into answers. Here it is always 2026-01-01, so that answers are stable.
CREATED = 1_767_225_600
_ALPHABET = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"


@dataclass(frozen=True, slots=True)
class Call:
    """A tool call of the answer; `arguments` is an object, or text that is sent unchanged."""

    name: str
    arguments: dict[str, Json] | str

    @property
    def written(self) -> str:
        """The arguments as text."""
        return self.arguments if isinstance(self.arguments, str) else compact(self.arguments)

    def object_for(self, taker: str) -> dict[str, Json]:
        """Return the arguments as an object.

        Raises:
            UsageError: They are text, which `taker` cannot send.
        """
        if isinstance(self.arguments, str):
            raise UsageError(
                f"{taker} accepts only an object as arguments. Give the arguments of {self.name!r}"
                " as an object, not as text"
            )
        return self.arguments


@dataclass(frozen=True, slots=True)
class Draft:
    """An answer before it is written in a provider's format.

    `before` is the recorded answer as a whole document, and `recorded` is that answer decoded. If
    no answer was recorded, or only an error, they are empty and None.
    """

    question: Question
    text: str | None
    calls: tuple[Call, ...]
    before: dict[str, Json]
    recorded: ModelCall | None
    seed: bytes

    @property
    def model(self) -> str:
        """The model to name in the answer: as recorded, else as requested."""
        before = self.recorded.response_model if self.recorded else None
        return before or self.question.call.request_model or "unknown"

    @property
    def is_unchanged(self) -> bool:
        """Whether text and tool calls equal those of the recorded answer."""
        recorded = self.recorded
        return (
            recorded is not None
            and recorded.text == (self.text or "")
            and [(call.name, call.arguments) for call in recorded.tool_calls]
            == [(call.name, call.arguments) for call in self.calls]
        )

    @property
    def reported(self) -> dict[str, Json]:
        """The recorded usage object; empty if there is none."""
        return (
            mapping(self.recorded.usage.reported) if self.recorded and self.recorded.usage else {}
        )

    @property
    def input_tokens(self) -> int:
        """The tokens of the request: as recorded, else estimated at four characters per token."""
        usage = self.recorded.usage if self.recorded else None
        counted = usage.input_tokens if usage else None
        return 1 + len(compact(self.question.wire.request)) // 4 if counted is None else counted

    @property
    def output_tokens(self) -> int:
        """The tokens of the answer, estimated at four characters per token."""
        length = len(self.text or "") + sum(len(call.name + call.written) for call in self.calls)
        return 1 + length // 4

    def id(self, prefix: str, length: int, part: int = 0) -> str:
        """Derive an id from the request and the answer, so that it is the same every time."""
        drawn = shake_256(self.seed + f"{prefix}{part}".encode()).digest(length)
        return prefix + "".join([_ALPHABET[byte % 62] for byte in drawn])

    def call_id(self, prefix: str, length: int, part: int) -> str:
        """Return the id of the recorded tool call at this position, or derive one."""
        before = self.recorded.tool_calls if self.recorded else ()
        recorded = before[part].id if part < len(before) else None
        return recorded or self.id(prefix, length, part)
