"""The wire formats of Amazon Bedrock: how its exchanges read, and how forks answer and change them.

`wire_format` is the format that tracefork asks. It finds out what a URL is about (`paths`) and
takes an exchange out of its transport (`transport`): event streams are frames (`event_stream`), and
an error has a name (`errors`). What is inside has a form of its own (`dialects`): that of Converse
(`converse`, `converse_changes`) or, in InvokeModel, that of the model's maker. Claude's messages
and OpenAI's chat completions are known to core; `texts` has models that continue a text, `command`
Cohere's Command R, and `embeddings` embeddings and all others. `reading` is what these share.
`agents` has what is no model: agents, flows, knowledge bases, guardrails and runtimes.

This folder imports nothing of botocore: `tracefork show` loads it.
"""
