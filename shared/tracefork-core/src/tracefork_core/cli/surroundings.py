"""What is installed here, and how tracefork sees it."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, requires, version

from tracefork_core.adapters import Adapter, found_adapters
from tracefork_core.seams import AMBIENT

NO_SEAM = "no seam: counted while recording, refused at replay"
_TRANSPORTS = ("httpx", "httpx2", "aiohttp", "requests", "urllib3", "websockets", "botocore")
_SDKS = (
    "openai",
    "anthropic",
    "google-genai",
    "azure-ai-inference",
    "litellm",
    "boto3",
    "mistralai",
    "cohere",
    "groq",
    "ollama",
    "fireworks-ai",
    "openrouter",
)
_CARRIER = "azure-core"
"""What the SDKs of one vendor send through, which names the libraries."""
_BLIND = {
    "grpcio": "opens sockets in C: the guard does not see them",
    "uvloop": "resolves names and connects in C: the guard does not see it all",
    "curl-cffi": "opens sockets in C: the guard does not see them",
    "pycurl": "opens sockets in C: the guard does not see them",
    "psycopg": "libpq opens sockets in C: the guard does not see them",
    "psycopg2": "libpq opens sockets in C: the guard does not see them",
    "psycopg2-binary": "libpq opens sockets in C: the guard does not see them",
    "pyzmq": "opens sockets in C: the guard does not see them",
    "primp": "opens sockets in Rust: the guard does not see them",
    "hf-xet": "opens sockets in Rust: the guard does not see them",
}
_NAME = re.compile(r"^[A-Za-z0-9._-]+")
_FINAL = re.compile(r"\d+(\.\d+)*")
_CLAUSE = re.compile(r"([<>=!]=|[<>])\s*(\d+(?:\.\d+)*)")
_COMPARE: dict[str, Callable[[tuple[int, ...], tuple[int, ...]], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "==": operator.eq,
    "!=": operator.ne,
}


@dataclass(frozen=True, slots=True)
class Library:
    """An installed library and what becomes of what it sends."""

    name: str
    version: str
    seen: str


@dataclass(frozen=True, slots=True)
class FoundAdapter:
    """An installed adapter. `supported` is None where that cannot be told."""

    name: str
    distribution: str
    version: str | None
    framework: str | None
    framework_version: str | None
    range: str | None
    supported: bool | None
    seams: tuple[str, ...]
    problem: str | None = None


def transports() -> list[Library]:
    """Return the installed HTTP libraries, each with whether it has a seam."""
    return [Library(name, found, _seen(name)) for name, found in _installed(_TRANSPORTS)]


def sdks() -> list[Library]:
    """Return the installed model SDKs, each with the libraries its metadata says it sends with."""
    return [Library(name, found, _way(name)) for name, found in _installed(_SDKS)]


def blind_spots() -> list[Library]:
    """Return what is installed and could get past the guard."""
    return [Library(name, found, _BLIND[name]) for name, found in _installed(_BLIND)]


def adapters() -> list[FoundAdapter]:
    """Return the installed adapters, broken ones with the error that importing them raised."""
    return [
        _describe(adapter, point.dist.version if point.dist else None)
        if isinstance(adapter, Adapter)
        else _broken(point.name, adapter)
        for point, adapter in found_adapters()
    ]


def _installed(names: tuple[str, ...] | dict[str, str]) -> Iterator[tuple[str, str]]:
    for name in names:
        if (found := _version(name)) is not None:
            yield name, found


def _version(distribution: str) -> str | None:
    try:
        return version(distribution)
    except PackageNotFoundError:
        return None


def _seen(transport: str) -> str:
    seamed = any(instrument.library == transport for instrument in AMBIENT)
    return "seam" if seamed else NO_SEAM


def _way(sdk: str) -> str:
    needed: list[str] = []
    optional: list[str] = []
    asked = requires(sdk) or []
    if any(_plain(requirement) == _CARRIER for requirement in asked) and _version(_CARRIER):
        asked = [*asked, *(requires(_CARRIER) or ())]
    for requirement in asked:
        name = _plain(requirement)
        if name in _TRANSPORTS and _version(name):
            (optional if "extra ==" in requirement else needed).append(name)
    words = f"through {_ways(needed)}" if needed else "how it sends, its metadata does not say"
    if others := [name for name in optional if name not in needed]:
        words += f"; optional: {_ways(others)}"
    return words


def _ways(names: list[str]) -> str:
    words = {name: "seam" if _seen(name) == "seam" else "no seam" for name in names}
    return ", ".join(f"{name} ({word})" for name, word in words.items())


def _plain(requirement: str) -> str:
    """Return the name in a requirement, normalised."""
    found = _NAME.match(requirement)
    return re.sub(r"[-_.]+", "-", found[0]).lower() if found else ""


def _describe(adapter: Adapter, own_version: str | None) -> FoundAdapter:
    supported = _range(adapter)
    found = _version(adapter.framework)
    return FoundAdapter(
        adapter.name,
        adapter.distribution,
        own_version,
        adapter.framework,
        found,
        supported,
        _is_within(found, supported),
        adapter.seams,
    )


def _broken(name: str, problem: object) -> FoundAdapter:
    text = f"{type(problem).__name__}: {problem}"
    return FoundAdapter(name, name, None, None, None, None, None, (), text)


def _range(adapter: Adapter) -> str | None:
    """Return which versions the adapter's own metadata asks for, as in `<2,>=1.2`."""
    if _version(adapter.distribution) is None:
        return None
    wanted = _plain(adapter.framework)
    for requirement in requires(adapter.distribution) or ():
        if _plain(requirement) == wanted:
            rest = requirement.partition(";")[0][len(wanted) :]
            return re.sub(r"\[.*?\]", "", rest).strip(" ()") or None
    return None


def _is_within(found: str | None, wanted: str | None) -> bool | None:
    """Compare final versions by their numbers; None where more than that is asked for."""
    if found is None or wanted is None:
        return None
    if not _FINAL.fullmatch(found):
        return None
    for clause in wanted.split(","):
        if not (parts := _CLAUSE.fullmatch(clause.strip())):
            return None
        if not _COMPARE[parts[1]](_release(found), _release(parts[2])):
            return False
    return True


def _release(version: str) -> tuple[int, ...]:
    """Return the numbers of a final version without the zeros behind, so that 2 equals 2.0."""
    numbers = [int(number) for number in version.split(".")]
    while numbers and not numbers[-1]:
        numbers.pop()
    return tuple(numbers)
