"""`tracefork ci`: a folder of tapes that must replay, and what a team reads about them.

`manifest` names the tapes with the commands that replay them. `recording` adds tapes, `checking`
replays them all in `workers`, each a `worker` process without a network (`namespace`), and returns
one of three verdicts per tape (`verdict`). `rates` runs agents live again, and blames what fails.
`baseline` compares with another folder or a commit, `text_files` writes tapes as text for reviews.
`gate_report`, `recorded_report` and `changes_report` print for people, `annotations` for GitHub,
`junit` for CI servers, and `summary` in Markdown.
"""
