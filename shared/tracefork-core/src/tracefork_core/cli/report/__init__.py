"""`tracefork report`: one HTML file that shows a run, its branches and its blame.

`document` is the data of a page, as `page/src/data.d.ts` describes it. `run_data` fills in one run:
`conversation` numbers what was said, `bodies` are what was sent, both in `blocks`; `timeline` has
one row per exchange, `edges` which needed which; `evidence` is what blame found, `branch_strip` how
a run differs from another, `recording` the facts. `family` says which tapes are on a page, and
`assembly` makes the whole document. `packing` compresses, `page` puts it all into one text whose
script and style are in `built` (source: `page/` beside `src/`), `page_file` writes it.
"""
