"""Functions as exchanges: `tool` is the decorator, `framework_tools` the same for adapters.

What tools of a framework change besides returning a result is in `changes`.
`definition` describes one tool, `calls` and `streams` make one call of it. `values` converts Python
values to JSON and back, `failures` exceptions. `named_tools` makes functions tools by name:
`tool_names` reads the names, `function_search` finds the functions, `redirected_tools` redirects
them. `verifying` runs verifiers again in a replay, one in a container as `verifier_child`.
"""
