"""Load a script or a module and run it as `__main__`, as Python would."""

from __future__ import annotations

import builtins
import importlib.util
import io
import sys
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from pathlib import Path
from types import CodeType, ModuleType

from tracefork_core.errors import UsageError
from tracefork_core.seams.tools.tool_names import expect_main


class NoAgentError(UsageError):
    """The agent does not exist, which was found only inside the session; nothing was run."""


def run_script(path: str) -> None:
    """Run a file, or the `__main__` of a folder or an archive."""
    _run(*_script(path))


def script_module(path: str) -> str:
    """Return the name under which other modules can import a script."""
    return Path(path).resolve().stem


def main_in(path: str) -> ModuleSpec | None:
    """Return the `__main__` of a folder or an archive (`zipapp`); None for any other file."""
    return PathFinder.find_spec("__main__", [str(Path(path).absolute())])


def run_module(name: str) -> None:
    """Run a module, or the `__main__` of a package.

    Raises:
        NoAgentError: there is no such module, or it has no code.
    """
    _run(*_module(name))


def _script(target: str) -> tuple[CodeType, ModuleType]:
    from tracefork_core.seams.tools.named_tools import main_code

    if (spec := main_in(target)) is not None:
        return _main_of(spec, "__main__", script_module(target))
    path = str(Path(target).absolute())
    with io.open_code(path) as file:
        source = file.read()
    code = main_code(source, path, script_module(target))
    code = code or compile(source, path, "exec", dont_inherit=True)
    main = ModuleType("__main__")
    main.__dict__.update(
        __file__=path, __cached__=None, __loader__=SourceFileLoader("__main__", path)
    )
    return code, main


def _module(name: str) -> tuple[CodeType, ModuleType]:
    spec = _spec(name)
    if spec is not None and spec.submodule_search_locations is not None:
        name = f"{name}.__main__"
        spec = _spec(name)
    code, main = _main_of(spec, name, name)
    sys.argv[0] = main.__file__ or name
    return code, main


def _main_of(spec: ModuleSpec | None, name: str, module: str) -> tuple[CodeType, ModuleType]:
    from tracefork_core.seams.tools.named_tools import main_code

    code = _code_of(spec, name)
    assert spec is not None
    get_source = getattr(spec.loader, "get_source", None)
    if get_source is not None and (source := get_source(name)) is not None:
        code = main_code(source, code.co_filename, module) or code
    main = ModuleType("__main__")
    main.__dict__.update(
        __file__=spec.origin,
        __cached__=spec.cached,
        __loader__=spec.loader,
        __package__=spec.parent,
        __spec__=spec,
    )
    return code, main


def _spec(name: str) -> ModuleSpec | None:
    try:
        return importlib.util.find_spec(name)
    except ModuleNotFoundError as error:
        if error.name is None or not name.startswith(error.name):
            raise
        return None  # A parent in the dotted name is missing, or is not a package.


def _code_of(spec: ModuleSpec | None, name: str) -> CodeType:
    get_code = getattr(spec.loader, "get_code", None) if spec else None
    code = get_code(name) if get_code else None
    if not isinstance(code, CodeType):
        raise NoAgentError(
            f"tracefork: no module named {name} that can be run, in {Path.cwd()} or installed."
        )
    return code


def _run(code: CodeType, main: ModuleType) -> None:
    """Run code as `__main__`, and leave it there: threads and exit handlers may look it up."""
    main.__dict__["__builtins__"] = builtins
    main.__dict__.setdefault("__annotations__", {})
    sys.modules["__main__"] = main
    expect_main(None)  # It is there now.
    exec(code, main.__dict__)  # noqa: S102 - it is the user's own command
