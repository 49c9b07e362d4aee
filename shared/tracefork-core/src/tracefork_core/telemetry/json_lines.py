"""Write logs as lines of JSON, to standard error or a file.

structlog is loaded for the first line, after the run: an agent finds the modules that it had
before. It is not configured globally, since the agent may use it, too.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any


class JsonLines:
    """A logger that opens its file for each line, so that no descriptor is open during a run."""

    def __init__(self, file: Path | None) -> None:
        self._file = None if file is None else file.absolute()

    def check(self) -> None:
        """Raise OSError unless the file can be written."""
        if self._file is not None:
            with self._file.open("a"):
                pass

    def info(self, event: str, **fields: Any) -> None:
        self._write("info", event, fields)

    def warning(self, event: str, **fields: Any) -> None:
        self._write("warning", event, fields)

    def _write(self, level: str, event: str, fields: dict[str, Any]) -> None:
        import structlog

        if self._file is None:
            self._write_to(sys.stderr, structlog, level, event, fields)
            return
        with self._file.open("a", encoding="utf-8") as stream:
            self._write_to(stream, structlog, level, event, fields)

    def _write_to(
        self, stream: Any, structlog: Any, level: str, event: str, fields: dict[str, Any]
    ) -> None:
        logger = structlog.wrap_logger(
            structlog.WriteLogger(stream),
            processors=[
                structlog.processors.add_log_level,
                structlog.processors.TimeStamper(fmt="iso", utc=True),
                structlog.processors.JSONRenderer(),
            ],
            wrapper_class=structlog.BoundLogger,
            context_class=dict,
            cache_logger_on_first_use=False,
        )
        getattr(logger, level)(event, **fields)
