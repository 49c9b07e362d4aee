"""The terminal view: `tracefork tui`.

`first_frame` paints the first rows before Textual is loaded, which takes longer than reading them.
`app` is the view, with what each key does from `keys`. It has two widgets: `row_list` shows rows
that are made only when they are on the screen (`rows`, with the words of `marks`), and `pane` shows
lines. The lines come from `pages`: a `transcript`, a difference, a `blame`, the branches. Most are
what another command prints, `captured`. `open_run` is one tape and all that is known about it.
What takes long runs in the `background`: `search` looks for a text, marks are found, runs opened.
`terminal` refuses what cannot show a screen.
"""
