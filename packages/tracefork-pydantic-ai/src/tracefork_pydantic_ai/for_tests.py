"""Record a test the first time, and replay it from then on."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Any, Literal

from pydantic_ai.models import override_allow_model_requests

from tracefork_core import UsageError, use_tape
from tracefork_core.adapters import answering_tape

FOLDER = "tapes"
"""The folder of tapes, beside the file of the test."""


def tape(
    name: str,
    *,
    mode: Literal["none", "once", "new", "rewrite", "rerun"] | None = None,
    mask: Sequence[str] = (),
    strict: bool = False,
) -> _Tape:
    """Record what runs inside to `tapes/NAME.tape` beside this file, and replay it from then on.

        with tape("refund"):
            assert desk.run_sync("Refund order 7.").output == "Done."

    It is a sync or async `with`. A replay needs no key and no network, calls no tool, and passes
    where `models.ALLOW_MODEL_REQUESTS` is False: it makes no request. The arguments and errors are
    those of `tracefork_core.use_tape`.
    """
    if not name or Path(name).is_absolute():
        raise UsageError(f"tracefork: a tape needs a name, such as refund (got {name!r}).")
    beside = Path(sys._getframe(1).f_code.co_filename).parent
    path = beside / FOLDER / f"{name}.tape"
    return _Tape(use_tape(path, mode=mode, mask=mask, strict=strict))


class _Tape:
    """The block that `tape` makes."""

    def __init__(self, used: Any) -> None:
        self._used = used
        self._stack = ExitStack()

    def __enter__(self) -> Any:
        with ExitStack() as stack:
            run = stack.enter_context(self._used)
            if answering_tape() is not None:
                stack.enter_context(override_allow_model_requests(allow_model_requests=True))
            self._stack = stack.pop_all()
        return run

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> bool | None:
        return self._stack.__exit__(kind, error, traceback)

    async def __aenter__(self) -> Any:
        return self.__enter__()

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> bool | None:
        return self.__exit__(kind, error, traceback)
