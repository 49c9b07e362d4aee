"""Which step doomed a run: forks are tried, and what they come to is weighed.

`blame` is the call. The `engine` asks for forks, a `probe` each, and weighs what they come to, in
phases: `replaying`, `localise` (`search`, `curve`), `scan`, `certify`, `peel`, `repair`,
`controls`, `sharing`. It holds on to an `inquiry`, with a `book` of counts; `settings` are its
measures, `intervals` its statistics. `bisect` is another search, for runs whose ends are certain.

Its probes are carried out: `hearing` hears it, within a `budget` and at a `pacing`; `pool` says
where, `trying` does it, `journal` keeps it. Ends are graded by `oracles` or a `judge` (`library`,
`tickets`), whose `noise` is measured. `units` and `parts` are what is ranked, `taken` and
`estimate` what it costs. What comes out: `result`, `report`, `document`, `sentence`.
"""
