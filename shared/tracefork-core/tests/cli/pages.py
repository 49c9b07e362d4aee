"""Read a page of `tracefork report` as the browser does."""

from __future__ import annotations

import base64
import json
import re
import zlib
from pathlib import Path
from typing import Any


class Read:
    """A page as the browser reads it."""

    def __init__(self, file: Path) -> None:
        text = file.read_text()
        found = re.search(r'id="report">(.*?)</script>', text)
        assert found is not None
        self.report: dict[str, Any] = json.loads(found[1])
        self._parts = dict(re.findall(r'octet-stream" id="(p\d+)">([^<]*)<', text))

    def part(self, key: str) -> dict[str, Any]:
        """Return an unpacked part."""
        packed = base64.b64decode(self._parts[key])
        found: dict[str, Any] = json.loads(zlib.decompress(packed, -zlib.MAX_WBITS))
        return found

    def exchanges(self, run: int = 0) -> list[dict[str, Any]]:
        """Return the exchanges of a run, with their content."""
        blocks = self.report["runs"][run]["blocks"]
        return [one for _, key in blocks for one in self.part(key)["exchanges"]]

    def request(self, n: int) -> str:
        """Return the text of a request, put together as the page does: in units of UTF-16."""
        body = self.exchanges()[n]["request"]
        if body["base"] < 0:
            return str(body["text"])
        before = self.request(body["base"]).encode("utf-16-le")
        tail = before[len(before) - 2 * body["tail"] :] if body["tail"] else b""
        own = body["text"].encode("utf-16-le")
        return (before[: 2 * body["head"]] + own + tail).decode("utf-16-le")
