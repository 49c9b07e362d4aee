"""`tracefork view`: the page of the report, live, in a browser on the same machine.

`serving` starts the server and prints the address. `door` refuses requests without its token.
`routes` are what the server answers, some of it as `events`. `growing` reads a tape that may still
be recorded, and tells a viewer what is new since its last look. `shelf` holds the tapes that are
looked at, each once for all viewers; `followed` are those of one viewer, and `folder` is the list.
With `--allow-run`, `running` answers too: `offers` are the commands that the page may start, and
`jobs` runs them.
"""
