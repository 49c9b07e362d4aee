"""Functions as exchanges: `tool` is the decorator, `framework_tools` the same for adapters.

`definition` is what is known of one tool, `calls` and `streams` are one call of it. `values` turns
Python values into JSON and back, `failures` the exceptions.
"""
