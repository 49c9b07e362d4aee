"""Functions as exchanges: `tool` is the decorator, `framework_tools` the same for adapters.

`definition` is what is known of one tool, `calls` and `streams` are one call of it, `running` runs
it. `values` and `reading` turn Python values into JSON and back (`framework_values`: those of a
framework), `failures` the exceptions.
"""
