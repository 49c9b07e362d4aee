"""Speak with other tools: their recordings and traces come in, ours go out.

`importing` turns the files of other tools into tapes.
"""
