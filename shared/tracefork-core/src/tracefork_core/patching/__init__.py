"""Patch libraries for the length of a session, and undo it. The ground floor of core.

`instrument` patches one library, now or when it is imported (`on_import`). `bound_names` also
replaces names that other modules imported with `from … import …`. `real_clock` reads the time from
a clock that no patch touches.
"""
