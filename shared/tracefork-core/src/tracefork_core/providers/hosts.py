"""Name the provider behind a host, as OpenTelemetry's `gen_ai.provider.name` does."""

from __future__ import annotations

# Names that the conventions do not list (openrouter, together…) follow the same style.
_PROVIDERS = {
    "api.openai.com": "openai",
    "openai.azure.com": "azure.ai.openai",
    "cognitiveservices.azure.com": "azure.ai.openai",
    "services.ai.azure.com": "azure.ai.openai",
    "api.anthropic.com": "anthropic",
    "generativelanguage.googleapis.com": "gcp.gemini",
    "aiplatform.googleapis.com": "gcp.vertex_ai",
    "api.groq.com": "groq",
    "api.deepseek.com": "deepseek",
    "openrouter.ai": "openrouter",
    "api.mistral.ai": "mistral_ai",
    "api.together.xyz": "together",
    "api.together.ai": "together",
    "api.fireworks.ai": "fireworks",
    "api.x.ai": "x_ai",
    "api.perplexity.ai": "perplexity",
    "api.moonshot.ai": "moonshot_ai",
    "api.moonshot.cn": "moonshot_ai",
    "api.cohere.com": "cohere",
    "api.cohere.ai": "cohere",
    "api.cerebras.ai": "cerebras",
}
_AMAZON = (".amazonaws.com", ".amazonaws.com.cn", ".api.aws")


def provider_of(host: str) -> str | None:
    """Return the provider behind a host; None for a proxy, a local server or an unknown host."""
    host = host.lower().rstrip(".")
    # Vertex AI puts its region before the name with a hyphen: us-east5-aiplatform.googleapis.com
    if host.endswith("-aiplatform.googleapis.com"):
        return "gcp.vertex_ai"
    labels = host.split(".")
    # Amazon's hosts have the service first or, in a private network, behind the name of its entry:
    # bedrock-runtime.us-east-1.amazonaws.com, vpce-1.bedrock-runtime.us-east-1.vpce.amazonaws.com
    if host.endswith(_AMAZON) and any(label.startswith("bedrock") for label in labels[:2]):
        return "aws.bedrock"
    suffixes = (".".join(labels[start:]) for start in range(len(labels)))
    return next((_PROVIDERS[suffix] for suffix in suffixes if suffix in _PROVIDERS), None)
