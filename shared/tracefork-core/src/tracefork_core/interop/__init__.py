"""Speak with other tools: their recordings and traces come in, ours go out.

`importing` turns the files of other tools into tapes, and `exporting` tapes into theirs. `span` is
what both have of a trace, and `conventions` the versions of the names in it.
"""
