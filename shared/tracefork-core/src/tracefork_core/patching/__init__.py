"""Patch libraries for the length of a session, and undo it. The ground floor of core.

`patch` replaces attributes and puts them back, for one session or for several at once.
`instrument` patches one library, now or when it is imported (`on_import`). `bound_names` also
replaces names that other modules imported with `from … import …`. `code_swap` redirects a function
under all its references, `module_body` looks at a module between its statements. `real_clock`
reads the time from clocks that no patch by name touches.
"""
