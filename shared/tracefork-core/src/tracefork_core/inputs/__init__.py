"""Record what a run gets that is not on the wire, and give or compare it at replay.

`files` notes which files a session reads and writes, and compares those it reads at replay.
`side_effects` notes which files a tool changes. `sources` names the functions of a changed module
that differ. `leftovers` frees the names of temporary files that the recording left behind.
`standard_input` holds what is typed or piped, and `stdin_stream` puts it behind the functions of
Python that read it.
"""
