"""Which server each path of the proxy stands for, and which variables point an SDK at it.

The first part of a path names an upstream server, and the rest is the path there:
`/openai/v1/responses` stands for `https://api.openai.com/v1/responses`. A variable that is set
already names the server itself, so a company's gateway stays the upstream.

The variables are those that the SDKs read: openai, anthropic, google-genai and botocore; langchain,
LiteLLM and ollama; cohere (`CO_API_URL`), groq and mistral.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple
from urllib.parse import SplitResult, urlsplit

from tracefork_core.errors import UsageError


class _Spelling(NamedTuple):
    """A variable that holds the base URL of an API, and the URL that its SDK uses without it."""

    variable: str
    route: str
    public: str


_OPENAI, _ANTHROPIC = "https://api.openai.com/v1", "https://api.anthropic.com"
_GEMINI = "https://generativelanguage.googleapis.com"
_SPELLINGS = (
    _Spelling("OPENAI_BASE_URL", "openai", _OPENAI),
    _Spelling("OPENAI_API_BASE", "openai", _OPENAI),
    _Spelling("ANTHROPIC_BASE_URL", "anthropic", _ANTHROPIC),
    _Spelling("ANTHROPIC_API_URL", "anthropic", _ANTHROPIC),
    _Spelling("ANTHROPIC_API_BASE", "anthropic", _ANTHROPIC),
    _Spelling("GOOGLE_GEMINI_BASE_URL", "gemini", _GEMINI),
    _Spelling("GEMINI_API_BASE", "gemini", f"{_GEMINI}/v1beta"),
    _Spelling("GOOGLE_VERTEX_BASE_URL", "vertex", "https://{google}aiplatform.googleapis.com"),
    _Spelling(
        "AWS_ENDPOINT_URL_BEDROCK_RUNTIME", "bedrock", "https://bedrock-runtime.{aws}.amazonaws.com"
    ),
    _Spelling("MISTRAL_BASE_URL", "mistral", "https://api.mistral.ai/v1"),
    _Spelling("MISTRAL_API_BASE", "mistral", "https://api.mistral.ai/v1"),
    _Spelling("GROQ_BASE_URL", "groq", "https://api.groq.com"),
    _Spelling("GROQ_API_BASE", "groq", "https://api.groq.com/openai/v1"),
    _Spelling("CO_API_URL", "cohere", "https://api.cohere.com"),
    _Spelling("DEEPSEEK_API_BASE", "deepseek", "https://api.deepseek.com"),
    _Spelling("OPENROUTER_API_BASE", "openrouter", "https://openrouter.ai/api/v1"),
    _Spelling("XAI_API_BASE", "xai", "https://api.x.ai/v1"),
    _Spelling("OLLAMA_HOST", "ollama", "http://127.0.0.1:11434"),
    _Spelling("OLLAMA_API_BASE", "ollama", "http://127.0.0.1:11434"),
)
_NO_DEFAULT = {
    "AZURE_OPENAI_ENDPOINT": "azure",
    "AZURE_API_BASE": "azure",
    "ANTHROPIC_BEDROCK_BASE_URL": "bedrock",
    "ANTHROPIC_VERTEX_BASE_URL": "vertex",
}
"""Variables whose API has another address for each customer: they are kept if they are set."""
_SCHEMES = frozenset({"http", "https"})


@dataclass(slots=True)
class Routes:
    """The upstream server of each first part of a path, and of all other paths if there is one.

    `variables` hold, for each variable, the path of the proxy that it is set to.
    """

    origins: dict[str, str] = field(default_factory=dict)
    other: str | None = None
    variables: dict[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, environment: Mapping[str, str], upstreams: Iterable[str] = ()) -> Routes:
        """Return the routes for a program with this environment.

        Args:
            environment: the variables of the program; one that is set names the upstream server.
            upstreams: "NAME=URL" for the path /NAME, or a URL for every path without a name.

        Raises:
            UsageError: an upstream is not a URL.
        """
        routes, given = cls(), dict(map(_named, upstreams))
        routes.other = given.pop("", None)
        routes.origins.update(given)
        for variable, route, public in _SPELLINGS:
            url = environment.get(variable) or _public(public, environment)
            routes._add(variable, route, url, is_given=route in given)
        for variable, route in _NO_DEFAULT.items():
            if own := environment.get(variable):
                routes._add(variable, route, own, is_given=route in given)
        return routes

    def url(self, target: str) -> str | None:
        """Return the upstream URL of a path with its query; None if no server stands for it."""
        name, slash, rest = target.removeprefix("/").partition("/")
        if slash and (origin := self.origins.get(name)) is not None:
            return f"{origin}/{rest}"
        return None if self.other is None else f"{self.other}{target}"

    def environment(self, address: str) -> dict[str, str]:
        """Return the variables that point a program at a proxy at `address`."""
        return {name: f"{address}{path}" for name, path in self.variables.items()}

    def _add(self, variable: str, route: str, url: str, *, is_given: bool) -> None:
        parts = _parts(url if "://" in url else f"http://{url}")  # As OLLAMA_HOST may be spelled.
        if parts is None:
            raise UsageError(f"tracefork: {variable} is not an http or https URL (got {url!r}).")
        origin, name, number = _origin(parts), route, 1
        while not is_given and self.origins.get(name, origin) != origin:
            number += 1
            name = f"{route}-{number}"
        self.origins.setdefault(name, origin)
        self.variables[variable] = f"/{name}{parts.path.rstrip('/')}"


def _named(upstream: str) -> tuple[str, str]:
    name, equals, url = upstream.partition("=")
    if not equals or "/" in name:
        name, url = "", upstream
    parts = _parts(url)
    if parts is None:
        raise UsageError(
            f"tracefork: --upstream must be a URL, or NAME=URL (got {upstream!r}). For example: "
            "--upstream openai=https://gateway.example.com"
        )
    return name, _origin(parts) + parts.path.rstrip("/")


def _parts(url: str) -> SplitResult | None:
    try:
        parts = urlsplit(url.strip())
        is_url = parts.scheme in _SCHEMES and bool(parts.hostname) and parts.port != 0
    except ValueError:  # The port is not a number, or the address of IPv6 is broken.
        return None
    return parts if is_url else None


def _origin(parts: SplitResult) -> str:
    return f"{parts.scheme}://{parts.netloc}"


def _public(url: str, environment: Mapping[str, str]) -> str:
    location = environment.get("GOOGLE_CLOUD_LOCATION", "global")
    region = environment.get("AWS_REGION") or environment.get("AWS_DEFAULT_REGION") or "us-east-1"
    return url.format(google="" if location == "global" else f"{location}-", aws=region)
