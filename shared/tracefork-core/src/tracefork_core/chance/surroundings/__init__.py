"""What the agent reads of its environment: variables, working directory, host name.

`noted` records and compares it, `reads` hooks the functions that read it.
"""
