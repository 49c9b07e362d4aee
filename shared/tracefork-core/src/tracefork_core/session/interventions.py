"""What a fork may change at an exchange. Each class is one kind of intervention."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import TypeAlias

from tracefork_core.errors import UsageError
from tracefork_core.exchange.contract import Failure, Head

_MISSING = object()


@dataclass(frozen=True, slots=True)
class Replace:
    """Give another answer, in the caller's format, and streamed if the request asks for a stream.

    Attributes:
        text: what a model says.
        tool_calls: what a model calls, as (name, arguments); also together with a text.
        body: the bytes of any answer.
        document: the JSON of any answer; of a model, the whole response in its provider's format.
    """

    text: str | None = None
    tool_calls: Sequence[tuple[str, Mapping[str, object]]] = ()
    body: bytes | None = None
    document: object = field(default=_MISSING)

    def __post_init__(self) -> None:
        """Check the types.

        Raises:
            UsageError: `text` is not a string, or `body` is not bytes.
        """
        if self.text is not None and not isinstance(self.text, str):
            raise UsageError(
                f"tracefork: Replace(text=…) must be a string (got {type(self.text).__name__}). "
                "Use Replace(body=…) for bytes and Replace(document=…) for JSON."
            )
        if self.body is not None and not isinstance(self.body, bytes):
            raise UsageError(
                f"tracefork: Replace(body=…) must be bytes (got {type(self.body).__name__})."
            )

    @property
    def has_document(self) -> bool:
        """Whether a document was given; None is a document too."""
        return self.document is not _MISSING


@dataclass(frozen=True, slots=True)
class Edit:
    """Change the request, then send it live.

    Attributes:
        model: the new model.
        temperature: the new temperature.
        system: the new system prompt.
        prompt: the new text of the last user message.
        drop_message: the number of the message to leave out.
        tools: the names of the tools to offer; all others are left out.
        values: new values in the body, by JSON pointer.
    """

    model: str | None = None
    temperature: float | None = None
    system: str | None = None
    prompt: str | None = None
    drop_message: int | None = None
    tools: Sequence[str] | None = None
    values: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Fail:
    """Give an error instead of an answer.

    Attributes:
        status: the HTTP status of an error response in the provider's format.
        kind: the exception of the HTTP library to raise: ReadTimeout, ConnectError.
        message: the text of either.
    """

    status: int | None = None
    kind: str | None = None
    message: str = "injected by a fork"

    def __post_init__(self) -> None:
        """Check the status.

        Raises:
            UsageError: it is not the status of an error.
        """
        if self.status is not None and not 400 <= self.status <= 599:
            raise UsageError(
                f"tracefork: the status of --fail must be from 400 to 599 (got {self.status})."
            )


@dataclass(frozen=True, slots=True)
class Drop:
    """Give an empty answer: a model says nothing, a body is empty."""


@dataclass(frozen=True, slots=True)
class Resample:
    """Send the same request again, live."""


@dataclass(frozen=True, slots=True)
class Keep:
    """Give the recorded answer, whatever the request is now: a held answer, or a placebo."""


@dataclass(frozen=True, slots=True)
class Given:
    """Give an answer that exists already, for example on another branch."""

    head: Head | Failure
    chunks: tuple[bytes, ...] = ()
    failure: Failure | None = None


def described(change: Intervention) -> dict[str, object]:
    """Return the arguments of an intervention as JSON-able values; for bytes, their size."""
    if isinstance(change, Given):
        return {}
    named = {each.name: getattr(change, each.name) for each in fields(change)}
    usual = {each.name: each.default for each in fields(change)}
    return {
        name: len(value) if isinstance(value, bytes) else value
        for name, value in named.items()
        if value not in (None, (), {}, _MISSING) and value != usual[name]
    }


Intervention: TypeAlias = Replace | Edit | Fail | Drop | Resample | Keep | Given
