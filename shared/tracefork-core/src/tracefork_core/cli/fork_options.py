"""What options say about what a fork changes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

from tracefork_core.errors import UsageError

if TYPE_CHECKING:
    from tracefork_core.session.interventions import Edit, Intervention


def read_intervention(
    text: str | None,
    replace: Path | None,
    model: str | None,
    temperature: float | None,
    system: str | None,
    prompt: str | None,
    fail: str | None,
    *,
    drop: bool,
) -> Intervention | None:
    """Return what is to be changed; None asks once more.

    Raises:
        UsageError: two things were asked for that exclude one another, or a file cannot be read.
    """
    from tracefork_core.session.interventions import Drop, Fail, Replace

    edit = read_edit(model, temperature, system, prompt)
    found: list[Intervention] = [] if edit is None else [edit]
    if text is not None:
        found.append(Replace(text))
    if replace is not None:
        found.append(_of_file(replace))
    if fail is not None:
        code = int(fail) if fail.isascii() and fail.isdecimal() else None
        found.append(Fail(status=code) if code is not None else Fail(kind=fail))
    if drop:
        found.append(Drop())
    if len(found) > 1:
        raise UsageError(
            "tracefork: one change at a time: --text, --replace, --fail, --drop, or an edit of the "
            "question (--model, --temperature, --system, --prompt)."
        )
    return found[0] if found else None


def read_edit(
    model: str | None, temperature: float | None, system: str | None, prompt: str | None
) -> Edit | None:
    """Return how the question is to be changed, None where it is not."""
    from tracefork_core.session.interventions import Edit

    edit = Edit(model=model, temperature=temperature, system=system, prompt=prompt)
    return None if edit == Edit() else edit


def _of_file(path: Path) -> Intervention:
    from tracefork_core.session.interventions import Replace

    try:
        data = path.read_bytes()
    except OSError as error:
        raise UsageError(f"tracefork: cannot read {path} (--replace): {error.strerror}.") from error
    if path.suffix.lower() != ".json":
        return Replace(body=data)
    try:
        return Replace(document=json.loads(data))
    except ValueError as error:
        raise UsageError(f"tracefork: {path} is no JSON: {error}.") from error
