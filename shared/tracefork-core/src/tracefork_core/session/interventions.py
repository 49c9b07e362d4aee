"""What a fork may change at an exchange."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import TypeAlias

from tracefork_core.errors import UsageError
from tracefork_core.exchange.contract import Failure, Head

_MISSING = object()


@dataclass(frozen=True, slots=True)
class Replace:
    """Another answer, valid for who asked and streamed where a stream was asked for.

    Of a model: a `text`, or `tool_calls` as (name, arguments), or both. Of anything: the `body` as
    bytes, or a JSON `document`; of a model that is a whole answer in its provider's own form.
    """

    text: str | None = None
    tool_calls: Sequence[tuple[str, Mapping[str, object]]] = ()
    body: bytes | None = None
    document: object = field(default=_MISSING)

    def __post_init__(self) -> None:
        """Take no bytes for a text.

        Raises:
            UsageError: the text is none, or the body is not bytes.
        """
        if self.text is not None and not isinstance(self.text, str):
            raise UsageError(
                f"tracefork: Replace takes a text, and not {type(self.text).__name__}: "
                "Replace(body=…) takes bytes, Replace(document=…) what becomes JSON."
            )
        if self.body is not None and not isinstance(self.body, bytes):
            raise UsageError(
                f"tracefork: Replace(body=…) takes bytes, and not {type(self.body).__name__}."
            )

    @property
    def has_document(self) -> bool:
        """Whether a document was given; None is one."""
        return self.document is not _MISSING


@dataclass(frozen=True, slots=True)
class Edit:
    """Another question: the request is changed and then asked live.

    Attributes:
        model: another model.
        temperature: another temperature.
        system: another system prompt.
        prompt: another last message of the user.
        drop_message: leave out the message of this number.
        tools: offer these tools only, by name.
        values: other values in the body, by JSON pointer.
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
    """An error in place of an answer: a `status` of the provider's, or a `kind` of exception.

    `kind` is the name of an exception of the HTTP library: ReadTimeout, ConnectError.
    """

    status: int | None = None
    kind: str | None = None
    message: str = "injected by a fork"

    def __post_init__(self) -> None:
        """Refuse what is no error.

        Raises:
            UsageError: the status is that of an answer.
        """
        if self.status is not None and not 400 <= self.status <= 599:
            raise UsageError(
                f"tracefork: an error (--fail) has a status from 400 to 599, not {self.status}."
            )


@dataclass(frozen=True, slots=True)
class Drop:
    """Nothing in place of an answer: a model says nothing, a body is empty."""


@dataclass(frozen=True, slots=True)
class Resample:
    """The same question once more, live."""


@dataclass(frozen=True, slots=True)
class Keep:
    """The recorded answer, whatever is asked: held, or as a placebo."""


@dataclass(frozen=True, slots=True)
class Given:
    """An answer that is there already, of another branch say."""

    head: Head | Failure
    chunks: tuple[bytes, ...] = ()
    failure: Failure | None = None


def described(change: Intervention) -> dict[str, object]:
    """Return the words of an intervention as JSON-able values; bytes by their size alone."""
    if isinstance(change, Given):
        return {}
    named = {one.name: getattr(change, one.name) for one in fields(change)}
    usual = {one.name: one.default for one in fields(change)}
    return {
        name: len(value) if isinstance(value, bytes) else value
        for name, value in named.items()
        if value not in (None, (), {}, _MISSING) and value != usual[name]
    }


Intervention: TypeAlias = Replace | Edit | Fail | Drop | Resample | Keep | Given
