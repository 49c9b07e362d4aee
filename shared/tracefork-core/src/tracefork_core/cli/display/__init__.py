"""What people read on the terminal: text, tables and cards.

`screen` prints on a `console` that escapes cannot pass, with `figures` and safe `text`; `progress`
shows how far long work is. A tape is shown as a `timeline` in `columns`, with
the `content` of each exchange and calls of tools as in `tool_call`, as a `transcript`, as a `page`
per exchange, `account`, `coverage`, `imported`, `secrets` and `checkpoint_tables`. `card` is the
divergence card. `diff_report` and `diff_markdown` compare two runs, `context_report` two
questions, both with `changed_words`. `blame_report`, `blame_parts`, `blame_progress` and
`bench_report` show those commands.
"""
