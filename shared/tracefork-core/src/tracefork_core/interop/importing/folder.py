"""Import all the files in a folder: each becomes a tape, or a line that says why not."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tracefork_core.errors import TraceforkError
from tracefork_core.interop.importing.recognise import KNOWN, import_file
from tracefork_core.tape.imported import GRADES, Grade

SUFFIXES = (".har", ".json", ".jsonl", ".ndjson", ".toml", ".yaml", ".yml")


@dataclass(frozen=True, slots=True)
class Result:
    """What became of one file: a tape with its grade, or a problem with the exit code for it."""

    source: str
    tape: str | None = None
    format: str | None = None
    grade: Grade | None = None
    exchanges: int = 0
    problem: str | None = None
    exit: int = 0

    @property
    def grade_words(self) -> str:
        """The grade in words; "not imported" without one."""
        return GRADES[self.grade] if self.grade else "not imported"


def import_folder(source: Path, target: Path) -> Iterator[Result]:
    """Import the files in a folder and in the folders in it, in the order of their names.

    The tapes lie in `target` as the files lie in `source`.
    """
    taken: set[Path] = set()
    for path in files_in(source, target):
        relative = path.relative_to(source)
        tape = target / relative.with_suffix(".tape")
        if tape in taken:
            tape = target / relative.with_name(f"{relative.name}.tape")
        taken.add(tape)
        yield _imported(path, relative, tape)


def files_in(source: Path, target: Path) -> list[Path]:
    """Return the files that may be recordings or traces; those in `target` are no source."""
    return sorted(
        path
        for path in source.rglob("*")
        if path.suffix.lower() in SUFFIXES and path.is_file() and not path.is_relative_to(target)
    )


def _imported(path: Path, relative: Path, tape: Path) -> Result:
    try:
        tape.parent.mkdir(parents=True, exist_ok=True)
        receipt, run = import_file(path, tape)
    except TraceforkError as error:
        # The name of the file stands before it, and the known formats need no line for each file.
        problem = str(error).removeprefix("tracefork: ").removeprefix(f"{path} ")
        problem = problem.partition(KNOWN)[0]
        return Result(str(relative), problem=problem, exit=error.exit_code)
    except OSError as error:
        return Result(str(relative), problem=f"cannot write {tape}: {error.strerror}", exit=5)
    except Exception as error:  # noqa: BLE001 - one hostile file must not hide the others
        problem = f"{type(error).__name__}: {error}"
        return Result(str(relative), problem=problem, exit=TraceforkError.exit_code)
    return Result(str(relative), str(tape), run.format, run.grade, receipt.exchanges)
