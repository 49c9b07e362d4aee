"""Connections that no seam makes: refused at replay, counted while recording.

`guard` watches them with an audit hook, `aftermath` those after the session. `target` tells what a
connection reaches. `native` names modules that connect out of its
sight. `programs` names the programs that a process starts, and collects what child
processes report.
"""
