"""Packed parts of a page: JSON, deflated, in base64. A browser unpacks deflate by itself."""

from __future__ import annotations

import base64
import zlib
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from functools import cache

import msgspec

_LEVEL = 6
"""Level 9 saves 1 % and takes twice as long."""


class Parts:
    """The packed parts of a page, in order.

    A thread packs them: meanwhile, zlib leaves the interpreter to the one that reads the tape.
    """

    def __init__(self, prefix: str = "p", level: int = _LEVEL) -> None:
        self._prefix, self._level = prefix, level
        self._packed: list[Future[bytes]] = []

    def add(self, value: msgspec.Struct) -> str:
        """Pack a document, and return the id of its part."""
        self._packed.append(_packer().submit(_packed, msgspec.json.encode(value), self._level))
        return f"{self._prefix}{len(self._packed) - 1}"

    def get(self, name: str) -> bytes | None:
        """Return the text of a part; None if no part has that name."""
        number = name.removeprefix(self._prefix)
        if name == number or not (number.isascii() and number.isdecimal()):
            return None
        return self._packed[int(number)].result() if int(number) < len(self._packed) else None

    def __iter__(self) -> Iterator[tuple[str, bytes]]:
        """Yield the id and the text of each part."""
        return ((f"{self._prefix}{i}", one.result()) for i, one in enumerate(self._packed))


@cache
def _packer() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(max_workers=1, thread_name_prefix="packing")


def _packed(data: bytes, level: int) -> bytes:
    packing = zlib.compressobj(level, wbits=-zlib.MAX_WBITS, memLevel=9)
    return base64.b64encode(packing.compress(data) + packing.flush())
