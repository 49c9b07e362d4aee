"""What a URL of Bedrock asks for: which operation, and of which model, agent or knowledge base.

The path alone decides, not the library that sends it: the SDK of Anthropic and LiteLLM ask through
httpx for the same paths as boto3. A gateway may have a prefix before them.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from urllib.parse import quote, unquote, urlsplit

_MODEL = re.compile(
    r"/model/(?P<id>[^/]+(?:/[^/]+)*)/"
    r"(?P<verb>converse|converse-stream|invoke|invoke-with-response-stream|count-tokens)"
)
_VERBS = {
    "converse": "Converse",
    "converse-stream": "ConverseStream",
    "invoke": "InvokeModel",
    "invoke-with-response-stream": "InvokeModelWithResponseStream",
    "count-tokens": "CountTokens",
}
STREAMS = ("ConverseStream", "InvokeModelWithResponseStream")
"""The operations on models whose answers are event streams."""

_OTHERS = {
    r"/agents/(?P<id>[^/]+)/agentAliases/[^/]+/sessions/[^/]+/text": "InvokeAgent",
    r"/flows/(?P<id>[^/]+)/aliases/[^/]+": "InvokeFlow",
    r"/knowledgebases/(?P<id>[^/]+)/retrieve": "Retrieve",
    r"/retrieveAndGenerate": "RetrieveAndGenerate",
    r"/retrieveAndGenerateStream": "RetrieveAndGenerateStream",
    r"/agenticRetrieveStream": "AgenticRetrieveStream",
    r"/guardrail/(?P<id>[^/]+)/version/[^/]+/apply": "ApplyGuardrail",
    r"/runtimes/(?P<id>[^/]+)/invocations": "InvokeAgentRuntime",
    r"/runtimes/(?P<id>[^/]+)/commands": "InvokeAgentRuntimeCommand",
    r"/code-interpreters/(?P<id>[^/]+)/tools/invoke": "InvokeCodeInterpreter",
    r"/memories/(?P<id>[^/]+)/retrieve": "RetrieveMemoryRecords",
    r"/harnesses/invoke": "InvokeHarness",
}
_ON_HOSTS_OF_AMAZON = {
    r"/agents/(?P<id>[^/]+)": "InvokeInlineAgent",
    r"/memories/(?P<id>[^/]+)/events": "CreateEvent",
    r"/rerank": "Rerank",
    r"/generateQuery": "GenerateQuery",
    r"/optimize-prompt": "OptimizePrompt",
    r"/async-invoke": "StartAsyncInvoke",
}
"""Paths that another server may have too."""


@dataclass(frozen=True, slots=True)
class Path:
    """What a URL asks for.

    Attributes:
        operation: its name in the service's API.
        id: the model, agent or knowledge base; empty if the URL names none.
        host: the host that is asked.
        start: where the id begins in the URL's path, as it is written there.
        end: where it ends.
    """

    operation: str
    id: str
    host: str
    start: int = 0
    end: int = 0

    @property
    def is_model(self) -> bool:
        """Whether a model is asked, directly."""
        return self.operation in _VERBS.values()

    @property
    def is_of_amazon(self) -> bool:
        """Whether the host is one of Amazon's for Bedrock."""
        return is_host_of_amazon(self.host)

    @property
    def name(self) -> str:
        """The id, short enough for a line: of an ARN, what names the model.

        The ARN of a foundation model or of a profile across regions ends with the model's id. That
        of a user's own profile ends with a random id, before which stands what it is.
        """
        if not self.id.startswith("arn:"):
            return self.id
        kind, _, last = self.id.split(":", 5)[-1].partition("/")
        return last if kind in ("foundation-model", "inference-profile") else f"{kind}/{last}"


def is_host_of_amazon(host: str) -> bool:
    """Return whether a host is one of Amazon's for Bedrock, in any region or network."""
    return "bedrock" in host and host.endswith((".amazonaws.com", ".amazonaws.com.cn", ".api.aws"))


@lru_cache(maxsize=1024)
def path_of(method: str, url: str) -> Path | None:
    """Return what a request asks of Bedrock; None if it asks for something else."""
    if method.upper() != "POST":
        return None
    try:
        parts = urlsplit(url)
        host = (parts.hostname or "").lower()
    except ValueError:
        return None
    if parts.scheme not in ("http", "https"):
        return None
    path = parts.path.rstrip("/")
    if match := re.search(_MODEL.pattern + "$", path):
        name = unquote(match["id"])
        return Path(_VERBS[match["verb"]], name, host, *match.span("id"))
    tables = [_OTHERS, _ON_HOSTS_OF_AMAZON] if is_host_of_amazon(host) else [_OTHERS]
    for pattern, operation in (line for table in tables for line in table.items()):
        if match := re.search(f"{pattern}$", path):
            name = match.groupdict().get("id", "")
            return Path(operation, unquote(name), host)
    return None


def with_model(url: str, path: Path, model: str) -> str:
    """Return the URL of the same operation on another model."""
    parts = urlsplit(url)
    written = parts.path[: path.start] + quote(model, safe="-._~") + parts.path[path.end :]
    return parts._replace(path=written).geturl()
