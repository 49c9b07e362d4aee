"""Compare two runs, or two questions to a model.

`diff` is the comparison. `reading` reads an exchange as it is compared, without what is
`incidental`: the clock of the run, and ids. `pairing` finds which exchanges stand in the same
place, by `alignment`. `judge` says how two of them differ, and a `finding` is one difference.
`context` compares what two questions told a model, and `words` compares two texts. `text_form` is
a run as text, which git compares. `assertions` are for tests.
"""
