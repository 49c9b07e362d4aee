"""Which libraries are installed, and how tracefork captures what they send.

Only metadata is read: a broken installation must not stop `tracefork doctor`, and importing every
SDK would take seconds.
"""

from __future__ import annotations

import operator
import re
import shlex
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from importlib.metadata import (
    EntryPoint,
    PackageNotFoundError,
    entry_points,
    requires,
    version,
)
from typing import TYPE_CHECKING

from tracefork_core.cli.display.figures import UNKNOWN
from tracefork_core.egress.native import NATIVE
from tracefork_core.seams import AMBIENT, GROUP

if TYPE_CHECKING:
    from tracefork_core.adapters import Adapter

NO_SEAM = "no seam: counted while recording, refused at replay"
_SEAMS_OF_ADAPTERS = {"botocore": "tracefork-bedrock"}
"""HTTP libraries that an adapter captures, as far as it says so: see its seams."""
UNREADABLE = "metadata is unreadable: pip install --force-reinstall {}"
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
"""A package that Azure's SDKs send through; its own metadata names the HTTP libraries."""
ADAPTERS = {
    "agent-framework-core": "tracefork-agent-framework",
    "autogen-agentchat": "tracefork-autogen",
    "boto3": "tracefork-bedrock",
    "crewai": "tracefork-crewai",
    "google-adk": "tracefork-google-adk",
    "langgraph": "tracefork-langgraph",
    "mcp": "tracefork-mcp",
    "openai-agents": "tracefork-openai-agents",
    "pydantic-ai-slim": "tracefork-pydantic-ai",
}
"""The adapter package for each framework that has one."""
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
    """An installed library, and whether tracefork captures what it sends."""

    name: str
    version: str
    seen: str


@dataclass(frozen=True, slots=True)
class FoundAdapter:
    """An installed adapter, or an installed framework whose adapter is missing.

    Attributes:
        supported: whether the framework's version is in the adapter's range; None if unknown.
        problem: what is wrong with the adapter, if anything.
        remedy: the command that fixes the problem.
    """

    name: str
    distribution: str
    version: str | None
    framework: str | None
    framework_version: str | None
    range: str | None
    supported: bool | None
    seams: tuple[str, ...]
    problem: str | None = None
    remedy: str | None = None


def transports() -> list[Library]:
    """Return the installed HTTP libraries, and whether each is captured."""
    return _installed(_TRANSPORTS, _seen)


def sdks() -> list[Library]:
    """Return the installed model SDKs, each with the HTTP libraries that its metadata names."""
    return _installed(_SDKS, _way)


def blind_spots() -> list[Library]:
    """Return the installed libraries that could bypass the guard."""
    return _installed(NATIVE, NATIVE.__getitem__)


def adapters() -> list[FoundAdapter]:
    """Return the installed adapters, broken ones included, and frameworks without their adapter."""
    from tracefork_core.adapters.adapter import found_adapters

    found = [_adapter(point, adapter) for point, adapter in found_adapters()]
    known = {_plain(adapter.distribution) for adapter in found}
    for framework, package in ADAPTERS.items():
        if package not in known and (here := _version(framework)) is not None:
            problem = f"{framework} {here} is installed, its adapter is not"
            found.append(_broken(framework, package, problem, f"pip install {package}", here))
    return found


def _installed(names: Iterable[str], say: Callable[[str], str]) -> list[Library]:
    versions = {name: found for name in names if (found := _version(name)) is not None}
    return [
        Library(name, found, say(name) if found != UNKNOWN else UNREADABLE.format(name))
        for name, found in versions.items()
    ]


def _version(name: str) -> str | None:
    """Return the version of a distribution: None if it is missing, `UNKNOWN` if it is broken."""
    try:
        return version(name) or UNKNOWN
    except PackageNotFoundError:
        return None
    except Exception:  # noqa: BLE001 - the metadata may be anything
        return UNKNOWN


def _requires(name: str) -> list[str]:
    """Return the requirements of a distribution; none if they cannot be read."""
    try:
        return requires(name) or []
    except Exception:  # noqa: BLE001 - as above
        return []


def _seen(transport: str) -> str:
    if any(instrument.library.partition(".")[0] == transport for instrument in AMBIENT):
        return "seam"
    adapter = _SEAMS_OF_ADAPTERS.get(transport)
    if adapter is not None and _version(adapter) is not None:
        return f"seam of {adapter}"
    return NO_SEAM


def _way(sdk: str) -> str:
    needed: list[str] = []
    optional: list[str] = []
    asked = _requires(sdk)
    if any(_plain(requirement) == _CARRIER for requirement in asked):
        asked = [*asked, *_requires(_CARRIER)]
    for requirement in asked:
        name = _plain(requirement)
        if name in _TRANSPORTS and _version(name):
            (optional if "extra ==" in requirement else needed).append(name)
    words = f"through {_ways(needed)}" if needed else "its metadata names no HTTP library"
    if others := [name for name in optional if name not in needed]:
        words += f"; optional: {_ways(others)}"
    return words


def _ways(names: list[str]) -> str:
    words = {name: "no seam" if (seen := _seen(name)) == NO_SEAM else seen for name in names}
    return ", ".join(f"{name} ({word})" for name, word in words.items())


def _plain(requirement: str) -> str:
    """Return the normalised name of a requirement."""
    found = _NAME.match(requirement)
    return re.sub(r"[-_.]+", "-", found[0]).lower() if found else ""


def _adapter(point: EntryPoint, adapter: object) -> FoundAdapter:
    package = point.dist.name if point.dist else point.name
    again = f"pip install --force-reinstall {package}"
    if isinstance(adapter, BaseException):
        return _broken(point.name, package, f"{type(adapter).__name__}: {adapter}", again)
    from tracefork_core.adapters.adapter import Adapter

    if not isinstance(adapter, Adapter):
        return _broken(point.name, package, f"{point.value} is not an Adapter", again)
    if error := _instrument_error(point):
        problem = f"its instrument is broken: {type(error).__name__}: {error}"
        return _broken(adapter.name, package, problem, again)
    return _describe(adapter)


def _instrument_error(adapter: EntryPoint) -> BaseException | None:
    """Return the error that loading the instrument of an adapter's distribution raised, if any."""
    for point in entry_points(group=GROUP):
        if point.dist and adapter.dist and point.dist.name == adapter.dist.name:
            try:
                point.load()
            except (Exception, SystemExit) as error:  # noqa: BLE001 - reported, with a remedy
                return error
    return None


def _describe(adapter: Adapter) -> FoundAdapter:
    wanted = _range(adapter)
    found = _version(adapter.framework)
    supported = _is_within(found, wanted)
    problem = remedy = None
    if found == UNKNOWN:
        problem = f"the metadata of {adapter.framework} is unreadable"
        remedy = f"pip install --force-reinstall {adapter.framework}"
    elif found is None or supported is False:
        problem = f"{adapter.framework} {found or ''}".strip()
        problem += " is not supported" if found else " is not installed"
        remedy = f"pip install {shlex.quote(adapter.framework + (wanted or ''))}"
    return FoundAdapter(
        adapter.name,
        adapter.distribution,
        _version(adapter.distribution),
        adapter.framework,
        found,
        wanted,
        supported,
        adapter.seams,
        problem,
        remedy,
    )


def _broken(
    name: str, package: str, problem: str, remedy: str, framework_version: str | None = None
) -> FoundAdapter:
    """Return an adapter of which only the problem is known."""
    framework = name if framework_version else None
    return FoundAdapter(
        name, package, None, framework, framework_version, None, None, (), problem, remedy
    )


def _range(adapter: Adapter) -> str | None:
    """Return the framework versions that the adapter's metadata asks for, like `<2,>=1.2`."""
    wanted = _plain(adapter.framework)
    for requirement in _requires(adapter.distribution):
        if _plain(requirement) == wanted:
            rest = requirement.partition(";")[0][len(wanted) :]
            return re.sub(r"\[.*?\]", "", rest).strip(" ()") or None
    return None


def _is_within(found: str | None, wanted: str | None) -> bool | None:
    """Compare final versions by their numbers; return None for any other version or clause."""
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
    """Return the numbers of a final version without trailing zeros, so that 2 equals 2.0."""
    numbers = [int(number) for number in version.split(".")]
    while numbers and not numbers[-1]:
        numbers.pop()
    return tuple(numbers)
