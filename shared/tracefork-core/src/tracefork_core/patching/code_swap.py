"""Redirect a Python function to another one under every reference: replace its `__code__`.

To replace names misses the references that a program keeps elsewhere: a table of tools, a default
argument, a partial, a bound method, the closure of a decorator, the object that a framework makes
of a function. All of them hold the function object, and a call of it runs its `__code__`.

The new code takes the same parameters, so defaults, signature and the errors for wrong arguments
stay the function's own. It is of the same kind (a generator, a coroutine …), because callers ask
`inspect`. What it calls is one of its constants: it needs no name in the function's module. Its
file has a name in this folder, so it is no line of the user's for tracebacks and call sites.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any

_CALL = "__tracefork_call__"
"""The local variable that holds the other function."""
_FILE = str(Path(__file__).with_name("(redirected function)"))
"""The file of the new code. It does not exist, so a traceback shows no line of it."""

_BODIES = {
    "function": "return {call}",
    "coroutine": "return await {call}",
    "generator": "return (yield from {call})",
    # As PEP 380 defines `yield from`, which an async generator lacks.
    "async generator": """
        __tracefork_inner__ = {call}
        try:
            __tracefork_item__ = await __tracefork_inner__.__anext__()
            while True:
                try:
                    __tracefork_sent__ = yield __tracefork_item__
                except GeneratorExit:
                    raise
                except BaseException as __tracefork_error__:
                    __tracefork_item__ = await __tracefork_inner__.athrow(__tracefork_error__)
                else:
                    __tracefork_item__ = await __tracefork_inner__.asend(__tracefork_sent__)
        except StopAsyncIteration:
            return
        finally:
            await __tracefork_inner__.aclose()
""",
}


def copied(function: FunctionType) -> FunctionType:
    """Return another function that does the same."""
    copy = FunctionType(
        function.__code__,
        function.__globals__,
        function.__name__,
        function.__defaults__,
        function.__closure__,
    )
    copy.__kwdefaults__ = function.__kwdefaults__
    copy.__qualname__, copy.__module__ = function.__qualname__, function.__module__
    copy.__doc__, copy.__annotations__ = function.__doc__, function.__annotations__
    copy.__dict__.update(function.__dict__)
    return copy


def redirect(function: FunctionType, call: Callable[..., Any]) -> Callable[[], None]:
    """Let each call of a function call another one of its kind; return what undoes it.

    Calls that are running then are not affected, neither by this nor by its undoing.
    """
    original, wrapped = function.__code__, function.__dict__.get("__wrapped__")
    code = _code_like(original, call)
    # `inspect.getsource` follows this to the code of the user.
    function.__dict__["__wrapped__"] = call
    function.__code__ = code

    def undo() -> None:
        if function.__code__ is code:
            function.__code__ = original
            if wrapped is None:
                function.__dict__.pop("__wrapped__", None)
            else:
                function.__dict__["__wrapped__"] = wrapped

    return undo


def _code_like(code: CodeType, call: Callable[..., Any]) -> CodeType:
    """Return code with the parameters and the free variables of another, that calls `call`."""
    names = list(code.co_varnames)
    positional = names[: code.co_argcount]
    keyword = names[code.co_argcount : code.co_argcount + code.co_kwonlyargcount]
    rest = iter(names[code.co_argcount + code.co_kwonlyargcount :])
    star = next(rest) if code.co_flags & inspect.CO_VARARGS else None
    stars = next(rest) if code.co_flags & inspect.CO_VARKEYWORDS else None

    declared, passed = list(positional), list(positional)
    if code.co_posonlyargcount:
        declared.insert(code.co_posonlyargcount, "/")
    if star is not None or keyword:
        declared.append(f"*{star or ''}")
    passed += [f"*{star}"] if star is not None else []
    declared += keyword
    passed += [f"{name}={name}" for name in keyword]
    if stars is not None:
        declared.append(f"**{stars}")
        passed.append(f"**{stars}")

    kind, free = _kind(code), ", ".join(code.co_freevars)
    define = "async def" if kind in ("coroutine", "async generator") else "def"
    made_call = f"{_CALL}({', '.join(passed)})"
    lines = [
        f"def around({free}):",
        f"    {define} function({', '.join(declared)}):",
        # Only named, so that the code has as many free variables as the function's closure.
        f"        if False: ({free})" if free else "",
        f"        {_CALL} = {_CALL!r}",
        f"        {_BODIES[kind].format(call=made_call).strip()}",
    ]
    source = "\n".join(lines)
    around = _inner(compile(source, _FILE, "exec", dont_inherit=True))
    made = _inner(around)
    return made.replace(
        co_consts=tuple(call if const == _CALL else const for const in made.co_consts),
        co_name=code.co_name,
        co_qualname=code.co_qualname,
    )


def is_redirection(code: CodeType) -> bool:
    """Return whether code is what `redirect` makes."""
    return code.co_filename == _FILE


def _inner(code: CodeType) -> CodeType:
    return next(const for const in code.co_consts if type(const) is CodeType)


def _kind(code: CodeType) -> str:
    if code.co_flags & inspect.CO_ASYNC_GENERATOR:
        return "async generator"
    if code.co_flags & inspect.CO_COROUTINE:
        return "coroutine"
    return "generator" if code.co_flags & inspect.CO_GENERATOR else "function"
