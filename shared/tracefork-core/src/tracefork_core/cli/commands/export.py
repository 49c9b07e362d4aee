"""`tracefork export`: write a run as a trace or a file of other tools."""

from __future__ import annotations

import json
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tracefork_core.cli import options, tape_names
from tracefork_core.cli.display import figures, screen
from tracefork_core.errors import UnwritableError, UsageError
from tracefork_core.tape import Tape

if TYPE_CHECKING:
    from tracefork_core.blaming.report import Report
    from tracefork_core.interop.exporting.tape_spans import Choice
    from tracefork_core.interop.span import Span

app = typer.Typer(add_completion=False, rich_markup_mode=None)


class Kind(StrEnum):
    """What a run is written as."""

    OTEL = "otel"
    OPENINFERENCE = "openinference"
    BOTH = "both"
    ATIF = "atif"
    HAR = "har"


@app.command()
def export(
    tape: options.TapeName,
    otel: Annotated[
        bool, typer.Option("--otel", help="A trace with OpenTelemetry's names for AI alone.")
    ] = False,
    openinference: Annotated[
        bool, typer.Option("--openinference", help="A trace with OpenInference's names alone.")
    ] = False,
    both: Annotated[
        bool, typer.Option("--both", help="A trace with both on each span (the default).")
    ] = False,
    atif: Annotated[
        bool, typer.Option("--atif", help="A trajectory, ATIF 1.8; it is content as a whole.")
    ] = False,
    har: Annotated[bool, typer.Option("--har", help="The HTTP requests, HAR 1.2.")] = False,
    content: Annotated[
        bool, typer.Option("--content", help="Write what was said too, not only its structure.")
    ] = False,
    otlp: Annotated[
        str | None,
        typer.Option(
            "--otlp",
            metavar="URL",
            help="Send the trace to a collector; its headers: OTEL_EXPORTER_OTLP_HEADERS.",
        ),
    ] = None,
    follow: Annotated[
        bool,
        typer.Option("--follow", help="With --otlp: send spans while the run is recorded."),
    ] = False,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", metavar="FILE", help="The file to write.")
    ] = None,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace the file if it exists.")
    ] = False,
    as_json: options.AsJson = False,
) -> int:
    """Write a run as a trace of OpenTelemetry or OpenInference, or as an ATIF or HAR file.

    The times are those of the recording, and a second export is the same trace. Without --content,
    a trace has models, counts, times and errors, and nothing that was said.
    """
    flags = {
        Kind.OTEL: otel,
        Kind.OPENINFERENCE: openinference,
        Kind.BOTH: both,
        Kind.ATIF: atif,
        Kind.HAR: har,
    }
    chosen = [kind for kind, given in flags.items() if given]
    if len(chosen) > 1:
        raise UsageError(f"tracefork: choose one of {', '.join(f'--{kind}' for kind in chosen)}.")
    kind = chosen[0] if chosen else Kind.BOTH
    if (output is None) == (otlp is None):
        raise UsageError(
            "tracefork: name a file to write with -o, or the address of a collector with --otlp: "
            "-o trace.json, or --otlp http://127.0.0.1:4318/v1/traces."
        )
    if otlp is not None and kind in (Kind.ATIF, Kind.HAR):
        raise UsageError(f"tracefork: a collector takes traces. Write --{kind} to a file with -o.")
    if follow:
        return _Export(kind, content).follow(tape, otlp, as_json=as_json)
    if kind is Kind.ATIF and not content:
        raise UsageError(
            "tracefork: a trajectory is what was said. Add --content to write it to a file."
        )
    return _Export(kind, content).run(tape, otlp, output, overwrite=overwrite, as_json=as_json)


class _Export:
    """One export: what is written, and where it goes."""

    def __init__(self, kind: Kind, content: bool) -> None:
        self._kind = kind
        self._content = content

    def run(
        self, shown: str, otlp: str | None, output: Path | None, *, overwrite: bool, as_json: bool
    ) -> int:
        path = tape_names.find(shown)
        with Tape.open(path) as tape:
            if self._kind in (Kind.ATIF, Kind.HAR):
                assert output is not None
                count, what = len(tape.exchanges), "exchange"
                target = _write(output, self._file(tape, path.stem), overwrite=overwrite)
            else:
                from tracefork_core.interop.exporting.tape_spans import trace_id

                trace, spans = trace_id(tape.digest), self._spans(tape, path.stem)
                count, what = len(spans), "span"
                target = self._trace(spans, trace, path.stem, otlp, output, overwrite=overwrite)
            digest = tape.digest
        return self._report(target, count, what, digest, as_json=as_json)

    def follow(self, shown: str, otlp: str | None, *, as_json: bool) -> int:
        """Send the spans of a run while it is recorded.

        Raises:
            UsageError: there is no collector, or it did not take the spans.
        """
        from tracefork_core.interop.exporting import otlp as protocol
        from tracefork_core.interop.exporting.following import Following

        if otlp is None:
            raise UsageError("tracefork: --follow sends spans to a collector. Name it with --otlp.")
        path, sent = tape_names.find(shown), 0
        following = Following(path, path.stem, self._choice())
        for spans in following.batches():
            protocol.send(spans, following.trace, {protocol.SERVICE: path.stem}, otlp)
            sent += len(spans)
        with Tape.open(path) as tape:
            return self._report(otlp, sent, "span", tape.digest, as_json=as_json)

    def _report(self, target: str, count: int, what: str, digest: str, *, as_json: bool) -> int:
        fields: dict[str, object] = {
            "command": "export",
            "exit": 0,
            "format": self._kind,
            "to": target,
            f"{what}s": count,
            "digest": digest,
            "content": self._content,
        }
        if as_json:
            screen.say_json(fields)
        else:
            self._tell(target, figures.several(count, what))
        return 0

    def _file(self, tape: Tape, name: str) -> dict[str, Any]:
        from tracefork_core.interop.exporting import atif, har

        if self._kind is Kind.ATIF:
            return atif.document(tape, name)
        return har.document(tape, content=self._content)

    def _choice(self, blame: Report | None = None) -> Choice:
        from tracefork_core.interop.exporting.tape_spans import Choice

        return Choice(
            gen_ai=self._kind is not Kind.OPENINFERENCE,
            openinference=self._kind is not Kind.OTEL,
            content=self._content,
            blame=blame,
        )

    def _spans(self, tape: Tape, name: str) -> list[Span]:
        from tracefork_core.blaming.last_blame import last_blame
        from tracefork_core.interop.exporting.tape_spans import spans_of

        return list(spans_of(tape, name, self._choice(last_blame(tape))))

    def _trace(
        self,
        spans: list[Span],
        trace: str,
        name: str,
        otlp: str | None,
        output: Path | None,
        *,
        overwrite: bool,
    ) -> str:
        from tracefork_core.interop.exporting import otlp as protocol

        resource = {protocol.SERVICE: name}
        if otlp is not None:
            protocol.send(spans, trace, resource, otlp)
            return otlp
        assert output is not None
        document = protocol.document(spans, trace, resource)
        return _write(output, document, overwrite=overwrite)

    def _tell(self, target: str, count: str) -> None:
        console = screen.stdout()
        what = "with its content" if self._content else "without content"
        console.print(f"● exported {target} · {count} · {self._kind} · {what}", soft_wrap=True)
        if not self._content:
            screen.note(console, "  --content adds what was said", screen.DIM)


def _write(output: Path, document: dict[str, Any], *, overwrite: bool) -> str:
    """Write a document and return the name of its file.

    Raises:
        UsageError: the file exists.
        UnwritableError: it cannot be written.
    """
    shown = tape_names.shown(output.absolute())
    if output.exists() and not overwrite:
        raise UsageError(
            f"tracefork: {shown} already exists. Use --overwrite to replace it, or -o to choose "
            "another name."
        )
    try:
        output.write_text(json.dumps(document, ensure_ascii=False), encoding="utf-8")
    except OSError as error:
        raise UnwritableError(f"tracefork: cannot write {shown}: {error.strerror}.") from error
    return shown
