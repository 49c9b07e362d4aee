"""The wire format of Bedrock, as tracefork asks for it: see `tracefork_core.adapters.formats`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, TypeVar

from tracefork_bedrock.formats import agents, errors
from tracefork_bedrock.formats.dialects import CONVERSE, dialect_of
from tracefork_bedrock.formats.paths import STREAMS, Path, path_of, with_model
from tracefork_bedrock.formats.reading import METRICS, Dialect, tokens, usage_of
from tracefork_bedrock.formats.transport import (
    failed,
    failed_within,
    put_on,
    take_off,
    unpacked,
    whole,
)
from tracefork_core import UsageError
from tracefork_core.adapters.formats import (
    Answer,
    Asked,
    Carried,
    Json,
    ModelCall,
    ModelError,
    ToolUse,
    Usage,
    Wanted,
    set_values,
)
from tracefork_core.adapters.formats import lenient as le

PROVIDER = "aws.bedrock"

_Made = TypeVar("_Made")


class BedrockFormat:
    """Requests to Bedrock, by their paths: boto3 sends them, and so do SDKs over HTTP."""

    def reads(self, method: str, url: str) -> bool:
        """Return whether this asks Bedrock for a model, an agent or a knowledge base."""
        return path_of(method, url) is not None

    def decode(self, asked: Asked, answered: Answer | None) -> ModelCall | ToolUse | None:
        """Return the call of a model, or of what Bedrock runs itself."""
        path = path_of(asked.method, asked.url)
        if path is None:
            return None
        if not path.is_of_amazon and asked.body and not isinstance(le.parse(asked.body), dict):
            return None
        if not path.is_model:
            return agents.read(path, asked, answered)
        taken = take_off(path, asked, answered)
        if path.operation == "CountTokens":
            return _counted(path, taken.carried, taken.error)
        call = _dialect(path, taken.carried).read(taken.carried, path.name)
        return replace(
            call,
            provider=PROVIDER,
            usage=call.usage or usage_of(taken.counts),
            error=taken.error or call.error,
        )

    def encode(self, asked: Asked, wanted: Wanted, recorded: Answer | None) -> Answer:
        """Return another answer: JSON, or frames if the request wants a stream.

        Raises:
            UsageError: the request cannot be answered like this.
        """
        path = _known(asked)
        if wanted.status is not None:
            within = wanted.error is not None and wanted.error[:1].islower()
            is_stream = path.operation in STREAMS or path.operation in agents.STREAMS
            if within and is_stream:
                return failed_within(wanted, recorded, asked)
            return failed(wanted, asked)
        if not path.is_model:
            return agents.answer(path, asked, wanted, recorded)
        carried = take_off(path, asked, recorded).carried
        dialect = _dialect(path, carried)
        if wanted.has_document:
            document = _checked(path, dialect, wanted.document)
        else:
            document = _told(path, dialect.answer, carried, wanted, path.name)
        good = recorded is not None and recorded.status < 400
        headers = tuple(recorded.headers) if recorded is not None and good else ()
        if path.operation not in STREAMS:
            return whole(document, headers, asked)
        events = _told(path, dialect.events, carried, document)
        if path.operation != "ConverseStream":
            _count(dialect, replace(carried, status=200, body={}, events=tuple(events)), events)
        return put_on(path, events, headers, asked)

    def reword(self, asked: Asked, changes: Mapping[str, object]) -> tuple[str, bytes]:
        """Return the URL and the body of a request with changes: the model is in the URL.

        Raises:
            UsageError: the request has no such part.
        """
        path = _known(asked)
        carried = take_off(path, asked, None).carried
        if not path.is_model:
            return asked.url, le.compact(_set(path, carried, changes)).encode()
        model = changes.get("model")
        url = with_model(asked.url, path, model) if isinstance(model, str) else asked.url
        rest: dict[str, Any] = {name: value for name, value in changes.items() if name != "model"}
        if not rest:
            return url, asked.body
        body = _told(path, _dialect(path, carried).change, carried, rest)
        return url, le.compact(body).encode()

    def status_of(self, error: str) -> int | None:
        """Return the status of an error of Bedrock: ThrottlingException is 429."""
        return errors.status_of(error)

    def check_exception(self, seam: str, name: str) -> None:
        """Check that botocore has an exception of this name.

        Raises:
            UsageError: it has none.
        """
        from tracefork_bedrock import attempts, failures  # They import botocore, which takes long.

        if seam == attempts.SEAM and not failures.is_known(name):
            raise UsageError(
                f"tracefork: neither Amazon Bedrock nor botocore has an error {name} (--fail). "
                "Give a status from 400 to 599, an error of Bedrock "
                f"({', '.join(errors.NAMES)}) or an "
                f"exception of botocore ({', '.join(failures.OF_THE_NETWORK)})."
            )


FORMAT = BedrockFormat()


def _known(asked: Asked) -> Path:
    path = path_of(asked.method, asked.url)
    if path is None:
        raise UsageError(f"tracefork: {asked.method} {asked.url} asks nothing of Bedrock.")
    return path


def _dialect(path: Path, carried: Carried) -> Dialect:
    return dialect_of(path.operation, carried.request, path.name)


def _told(path: Path, make: Callable[..., _Made], *arguments: object) -> _Made:
    """Return what a dialect makes; its refusal names the request."""
    try:
        return make(*arguments)
    except UsageError as error:
        where = f"{path.operation} on {path.name}"
        raise UsageError(f"tracefork: cannot change {where}: {error}.") from error


def _checked(path: Path, dialect: Dialect, document: Json) -> dict[str, Json]:
    whole_answer = le.parse(le.compact(document))
    if not isinstance(whole_answer, dict) or (dialect.field and dialect.field not in whole_answer):
        needed = f" with {dialect.field!r}" if dialect.field else ""
        raise UsageError(
            f"tracefork: an answer of {path.operation} on {path.name} must be a JSON object"
            f"{needed} (got {document!r:.60}). To answer with an error, use --fail."
        )
    return whole_answer


def _count(dialect: Dialect, answered: Carried, events: list[dict[str, Json]]) -> None:
    """Add the service's own token counts to the last event, where clients look for them."""
    usage = dialect.read(answered, "").usage or Usage()
    entered = usage.input_tokens or tokens(le.compact(answered.request))
    left = usage.output_tokens or tokens(le.compact(events))
    counts: dict[str, Json] = {"inputTokenCount": entered, "outputTokenCount": left}
    events[-1] = {**events[-1], METRICS: {**counts, "invocationLatency": 0, "firstByteLatency": 0}}


def _set(path: Path, carried: Carried, changes: Mapping[str, Any]) -> dict[str, Json]:
    if set(changes) != {"values"}:
        raise UsageError(
            f"tracefork: {path.operation} is no call of a model. Change a value of it: "
            '--set /NAME=VALUE (Edit(values={"/NAME": VALUE})).'
        )
    set_values(carried.request, changes["values"])
    return carried.request


def _counted(path: Path, carried: Carried, error: ModelError | None) -> ModelCall:
    """Read a request that counts the tokens of another request, which it holds."""
    asked = le.mapping(carried.request.get("input"))
    counted = le.count(carried.body.get("inputTokens"))
    inner = le.mapping(asked.get("converse"))
    dialect = CONVERSE
    if invoked := le.mapping(asked.get("invokeModel")):
        inner = le.mapping(le.parse(unpacked(invoked.get("body"))))
        dialect = dialect_of("InvokeModel", inner, path.name)
    return replace(
        dialect.read(Carried(inner), path.name),
        operation="count_tokens",
        provider=PROVIDER,
        usage=None if counted is None else Usage(counted, reported=carried.body),
        error=error,
    )
