"""Hand the spans of a run to a span processor while it is recorded, in the process that records it.

A thread reads the tape, as another process would (`following`). It is no part of the run: what the
processor sends is on no tape, and the agent's own tracer provider is never touched.
"""

from __future__ import annotations

import threading
from contextvars import Context
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Protocol, Self

from tracefork_core.exchange.current import outside
from tracefork_core.interop.exporting import otlp
from tracefork_core.interop.exporting.following import Following
from tracefork_core.interop.exporting.tape_spans import Choice

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import ReadableSpan


class Processor(Protocol):
    """What takes spans that have ended, as `SpanProcessor` of OpenTelemetry's SDK does."""

    def on_end(self, span: ReadableSpan, /) -> None: ...


class export_spans:  # noqa: N801 - it is called as `record` is
    """Hand each span of a recording to a span processor as soon as what it stands for has ended.

    Put the `with` block around that of the recording. It ends when the processor has the last
    span::

        exporter = BatchSpanProcessor(OTLPSpanExporter())
        with tracefork.export_spans("run.tape", exporter), tracefork.record("run.tape"):
            agent()

    Args:
        path: the tape that the recording writes.
        processor: what takes the spans; it is not shut down.
        content: whether the spans say what was said.

    Raises:
        UsageError: the extra `otel` is not installed.
    """

    def __init__(self, path: str | Path, processor: Processor, *, content: bool = False) -> None:
        otlp.check_extra()
        self._path = Path(path)
        self._processor = processor
        choice = Choice(content=content)
        self._following = Following(self._path, self._path.stem, choice, is_awaited=True)
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._follow, name="tracefork-export", daemon=True)

    def __enter__(self) -> Self:
        # In an empty context: the thread is no part of the run that it reads.
        Context().run(self._thread.start)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._following.stop()
        self._thread.join()
        if self._error is not None and error is None:
            raise self._error

    def _follow(self) -> None:
        try:
            with outside():
                self._hand_over()
        except Exception as error:  # noqa: BLE001 - raised where the block ends
            self._error = error

    def _hand_over(self) -> None:
        resource = {otlp.SERVICE: self._path.stem}
        for spans in self._following.batches():
            for span in otlp.readable(spans, self._following.trace, resource):
                self._processor.on_end(span)
