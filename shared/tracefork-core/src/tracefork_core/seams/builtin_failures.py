"""The exceptions of Python itself that come back from a tape, each built from its message alone."""

from __future__ import annotations

from tracefork_core.exchange.contract import Failure

BUILTINS: dict[str, type[Exception]] = {
    kind.__name__: kind
    for kind in (
        ArithmeticError,
        AssertionError,
        AttributeError,
        BlockingIOError,
        BrokenPipeError,
        BufferError,
        ChildProcessError,
        ConnectionAbortedError,
        ConnectionError,
        ConnectionRefusedError,
        ConnectionResetError,
        EOFError,
        Exception,
        FileExistsError,
        FileNotFoundError,
        FloatingPointError,
        ImportError,
        IndexError,
        InterruptedError,
        IsADirectoryError,
        KeyError,
        LookupError,
        MemoryError,
        ModuleNotFoundError,
        NameError,
        NotADirectoryError,
        NotImplementedError,
        OSError,
        OverflowError,
        PermissionError,
        ProcessLookupError,
        RecursionError,
        ReferenceError,
        RuntimeError,
        SyntaxError,
        SystemError,
        TimeoutError,
        TypeError,
        UnboundLocalError,
        ValueError,
        ZeroDivisionError,
    )
}


def builtin_of(failure: Failure) -> Exception | None:
    """Return the exception of Python that a failure on a tape was; None where it was none."""
    kind = BUILTINS.get(failure.kind)
    return kind(failure.message) if kind is not None else None
