"""The pytest plugin: a test with a tape is recorded once, and replayed from then on.

`plugin` is what pytest loads: its options, the mark and the fixture. It imports nothing of the rest
until a test uses the mark or the fixture, so other suites pay nothing. `running` opens and closes
the tapes, `options` reads a mark, `places` names the files, and `taped` says what becomes of them.
`handle` is what the fixture gives a test. `cassettes` replays tests of pytest-recording.
`shared_fixtures` gives the fixtures of a module or a session tapes of their own, `keys` stands in
for keys that are not set, and `repeated` runs a test until its pass rate is known. `outcome`
collects what is told at the end, from all workers, and `summary` prints it; `changes` says what
differs between two tapes.
"""
