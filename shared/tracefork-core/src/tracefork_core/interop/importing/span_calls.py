"""What a span means: a model call, a call of a tool, or a step of the agent.

Each fact has several names, because conventions change and each program has its own: GenAI
conventions of today and of before 1.37 (messages as events), OpenInference, OpenLLMetry, Vercel's
AI SDK, Google's ADK, pydantic-ai. They are asked in that order, and the first that has a value
decides. `span_messages` does the same for the messages.
"""

from __future__ import annotations

from tracefork_core.interop import conventions
from tracefork_core.interop.importing.messages import decoded, parts_of
from tracefork_core.interop.importing.span_messages import bare, conversation, without_tools
from tracefork_core.interop.importing.span_values import below
from tracefork_core.interop.span import Span
from tracefork_core.providers.call import ModelCall, ModelError, ToolDefinition, ToolUse, Usage
from tracefork_core.providers.lenient import (
    Json,
    count,
    field,
    items,
    mapping,
    text,
    total,
)
from tracefork_core.providers.parts import parameters, tool_definitions

_MODEL_CALLS = {
    "chat": "chat",
    "completion": "text_completion",
    "text_completion": "text_completion",
    "generate_content": "generate_content",
    "call_llm": "chat",
    "LLM": "chat",
    "GENERATION": "chat",
    "embeddings": "embeddings",
    "EMBEDDING": "embeddings",
    "ai.generateText.doGenerate": "chat",
    "ai.streamText.doStream": "chat",
    "ai.generateObject.doGenerate": "chat",
    "ai.streamObject.doStream": "chat",
    "ai.embed.doEmbed": "embeddings",
    "ai.generateText": "chat",
    "ai.streamText": "chat",
}
_TOOLS = ("execute_tool", "TOOL", "tool", "ai.toolCall")
_PROVIDERS = {
    "az": "azure.ai.openai",
    "azure": "azure.ai.openai",
    "aws": "aws.bedrock",
    "bedrock": "aws.bedrock",
    "google-gla": "gcp.gemini",
    "gemini": "gcp.gemini",
    "google": "gcp.gemini",
    "google-vertex": "gcp.vertex_ai",
    "vertex_ai": "gcp.vertex_ai",
    "vertexai": "gcp.vertex_ai",
    "mistral": "mistral_ai",
    "mistralai": "mistral_ai",
    "xai": "x_ai",
    "openai.chat": "openai",
    "openai.responses": "openai",
}
"""What programs call providers, and the conventions today; `azure.ai.openai` stays as it is."""
_STEPS = {
    "invoke_agent": "agent",
    "create_agent": "agent",
    "AGENT": "agent",
    "agent": "agent",
    "invoke_workflow": "run",
    "workflow": "run",
    "task": "task",
    "retrieval": "retrieval",
    "RETRIEVER": "retrieval",
    "CHAIN": "node",
    "RERANKER": "node",
    "GUARDRAIL": "node",
    "EVALUATOR": "node",
}
_OPERATION = (
    "gen_ai.operation.name",
    "openinference.span.kind",
    "llm.request.type",
    "traceloop.span.kind",
    "ai.operationId",
    "langfuse.observation.type",
)
_TOOL_NAME = ("gen_ai.tool.name", "tool.name", "ai.toolCall.name", "traceloop.entity.name")
_TOOL_ARGUMENTS = (
    "gen_ai.tool.call.arguments",
    "gen_ai.tool.args",
    "tool_arguments",
    "gcp.vertex.agent.tool_call_args",
    "ai.toolCall.args",
    "traceloop.entity.input",
    "langfuse.observation.input",
    "tool.parameters",
    "input.value",
    "input",
)
_TOOL_RESULT = (
    "gen_ai.tool.call.result",
    "tool_response",
    "gcp.vertex.agent.tool_response",
    "ai.toolCall.result",
    "traceloop.entity.output",
    "langfuse.observation.output",
    "gen_ai.output",
    "output.value",
    "output",
)
_BEFORE_NAME = ("execute_tool ", "running tool: ", "tool ")


def call_of(span: Span) -> ModelCall | ToolUse | None:
    """Return what a span asked a model or a tool for; None if it is a step around such spans."""
    operation = operation_of(span)
    if span.text(conventions.STEP_KIND):  # A step of an exported tape, whose calls stand inside it.
        return None
    if operation in _TOOLS or (operation not in _MODEL_CALLS and span.text(*_TOOL_NAME[:2])):
        return _tool_use(span)
    if operation in _MODEL_CALLS:
        return _model_call(span, _MODEL_CALLS[operation])
    return None


def operation_of(span: Span) -> str:
    """Return the word of its conventions for what a span is; "" if it has none."""
    named = (span.text(name) for name in _OPERATION)
    known = [name for name in named if name is not None]
    fitting = (name for name in known if name in _MODEL_CALLS or name in _TOOLS or name in _STEPS)
    return next(fitting, known[0] if known else "")


def step_of(span: Span) -> tuple[str, str]:
    """Return the kind and the name of the step that a span is."""
    known = span.text(conventions.STEP_KIND)
    kind = known or _STEPS.get(operation_of(span), "node")
    if known is None and kind == "node" and span.parent is None:
        kind = "run"
    name = span.text("gen_ai.agent.name", "agent.name", "gen_ai.workflow.name", "graph.node.id")
    own = span.name.removeprefix(f"{operation_of(span)} ") if known else span.name
    return kind, (name if kind == "agent" else None) or own or kind


def _model_call(span: Span, operation: str) -> ModelCall:
    asked, answered = conversation(span)
    asked, offered = without_tools(asked)
    model = span.text(
        "gen_ai.request.model", "llm.model_name", "ai.model.id", "embedding.model_name"
    )
    return ModelCall(
        operation=operation,
        api=span.text(conventions.API) or "trace",
        provider=_provider(span, model),
        request_model=model or span.text("llm.request.model_name", "gen_ai.response.model"),
        response_model=span.text(
            "gen_ai.response.model", "llm.response.model_name", "ai.response.model"
        ),
        response_id=span.text("gen_ai.response.id", "ai.response.id"),
        stream=span.get("gen_ai.request.stream", "llm.is_streaming") is True,
        system=parts_of(span.get("gen_ai.system_instructions")),
        input=asked,
        output=answered,
        tools=_tools(span) or offered,
        parameters=_parameters(span),
        usage=_usage(span),
        finish_reasons=_reasons(span),
        error=_error(span),
    )


def _provider(span: Span, model: str | None) -> str | None:
    """Return the provider under its name in the conventions of today."""
    named = span.text(
        "gen_ai.provider.name", "gen_ai.system", "llm.provider", "llm.system", "ai.model.provider"
    )
    if named is None and model is not None and "/" in model:
        named = model.partition("/")[0]  # LiteLLM names a model "mistral/mistral-small".
        return _PROVIDERS.get(named, named) if named in _PROVIDERS or named == "openai" else None
    if named is None:
        return None
    name = named.lower()
    return _PROVIDERS.get(name, name)


def _tools(span: Span) -> tuple[ToolDefinition, ...]:
    listed = decoded(span.get("gen_ai.tool.definitions", "ai.prompt.tools", "llm.tools"))
    if not isinstance(listed, list):
        numbered = (
            below(span.attributes, "llm.tools"),
            below(span.attributes, "llm.request.functions"),
        )
        listed = next((each for each in numbered if isinstance(each, list)), [])
    return tool_definitions([_offered(decoded(tool)) for tool in items(listed)])


def _offered(tool: Json) -> Json:
    """Return a definition with the names that OpenAI has for its fields."""
    known = mapping(bare(tool))
    inner = mapping(decoded(field(known, "json_schema"))) or known
    schema = decoded(field(inner, "parameters", "input_schema", "inputSchema"))
    return inner if "function" in inner or schema is None else {**inner, "parameters": schema}


def _parameters(span: Span) -> dict[str, Json]:
    prefix = "gen_ai.request."
    named = {
        name.removeprefix(prefix): value
        for name, value in span.attributes.items()
        if name.startswith(prefix) and name != "gen_ai.request.model"
    }
    invocation = mapping(decoded(span.get("llm.invocation_parameters", "model_parameters")))
    known = ("model", "messages", "tools", "stream", "input", "instructions")
    return parameters(invocation, known) | {
        name: value for name, value in named.items() if name != "stream"
    }


def _usage(span: Span) -> Usage | None:
    def number(*names: str) -> int | None:
        value = span.get(*names)
        return count(int(value)) if isinstance(value, str) and value.isdigit() else count(value)

    asked = number(
        "gen_ai.usage.input_tokens",
        "gen_ai.usage.prompt_tokens",
        "llm.token_count.prompt",
        "ai.usage.promptTokens",
        "ai.usage.inputTokens",
        "llm.usage.prompt_tokens",
    )
    answered = number(
        "gen_ai.usage.output_tokens",
        "gen_ai.usage.completion_tokens",
        "llm.token_count.completion",
        "ai.usage.completionTokens",
        "ai.usage.outputTokens",
    )
    if total(asked, answered) is None:
        return None
    return Usage(
        input_tokens=asked,
        output_tokens=answered,
        cache_read_input_tokens=number(
            "gen_ai.usage.cache_read.input_tokens",
            "gen_ai.usage.cache_read_input_tokens",
            "llm.token_count.prompt_details.cache_read",
            "ai.usage.cachedInputTokens",
        ),
        cache_creation_input_tokens=number(
            "gen_ai.usage.cache_creation.input_tokens",
            "gen_ai.usage.cache_write.input_tokens",
            "gen_ai.usage.cache_creation_input_tokens",
            "llm.token_count.prompt_details.cache_write",
        ),
        reasoning_output_tokens=number(
            "gen_ai.usage.reasoning.output_tokens",
            "gen_ai.usage.reasoning_tokens",
            "gen_ai.usage.details.reasoning_tokens",
            "llm.token_count.completion_details.reasoning",
            "ai.usage.reasoningTokens",
        ),
    )


def _reasons(span: Span) -> tuple[str, ...]:
    value = decoded(
        span.get(
            "gen_ai.response.finish_reasons",
            "llm.finish_reason",
            "ai.response.finishReason",
            "gen_ai.completion.0.finish_reason",
        )
    )
    if isinstance(value, str):
        return (value,)
    if reasons := tuple(reason for reason in items(value) if isinstance(reason, str)):
        return reasons
    noted = (mapping(decoded(each)) for each in items(decoded(span.get("gen_ai.output.messages"))))
    return tuple(reason for each in noted if (reason := text(each.get("finish_reason"))))


def _error(span: Span) -> ModelError | None:
    if span.error is None and span.text("error.type") is None:
        return None
    kind = span.text("error.type") or _exception(span) or "error"
    return ModelError(kind, span.error)


def _exception(span: Span) -> str | None:
    noted = (text(event.attributes.get("exception.type")) for event in span.events)
    return next((kind for kind in noted if kind), None)


def _tool_use(span: Span) -> ToolUse:
    name = span.text(*_TOOL_NAME)
    if name is None:
        name = span.name
        for start in _BEFORE_NAME:
            name = name.removeprefix(start)
    return ToolUse(
        name=name,
        arguments=_arguments(decoded(span.get(*_TOOL_ARGUMENTS))),
        result=decoded(span.get(*_TOOL_RESULT)),
        is_error=span.error is not None,
    )


def _arguments(value: Json) -> Json:
    """Return the arguments; OpenLLMetry and LangChain wrap them as `{"input_str": "{…}"}`."""
    wrapped = mapping(value)
    inner = decoded(field(wrapped, "input_str", "inputs")) if "input_str" in wrapped else None
    return inner if isinstance(inner, dict) else value
