"""Which libraries have other versions here than when a tape was recorded."""

from __future__ import annotations

import platform
import sys

from tracefork_core.tape import Tape
from tracefork_core.tape.environment import packages

_TOLD = 12


def other_versions(tape: Tape) -> list[str]:
    """Return in a line what of this process has another version than it had; often nothing.

    Only what is imported: another version of what nobody uses makes no difference. What the agent
    imports comes before what that imports in turn.
    """
    if tape.environment is None:
        return []
    then, now = tape.environment.packages, packages()
    loaded = {name: place for place, name in enumerate(sys.modules)}
    found: dict[str, int] = {}
    for name, version in now.items():
        place = min((loaded[module] for module in _modules(name) if module in loaded), default=None)
        if place is not None and then.get(name, version) != version:
            found[name] = place
    names = sorted(found, key=found.__getitem__)
    told = [f"{name} {then[name]} → {now[name]}" for name in names[:_TOLD]]
    if len(names) > _TOLD:
        told.append(f"{len(names) - _TOLD} more")
    if _minor(tape.environment.python) != _minor(platform.python_version()):
        told.insert(0, f"python {tape.environment.python} → {platform.python_version()}")
    return [f"other versions than when this was recorded: {', '.join(told)}"] if told else []


def _modules(distribution: str) -> tuple[str, str]:
    """Return what the modules of a distribution are mostly called: google-genai is google.genai."""
    return distribution.replace("-", "_"), distribution.replace("-", ".")


def _minor(version: str) -> str:
    return ".".join(version.split(".")[:2])
