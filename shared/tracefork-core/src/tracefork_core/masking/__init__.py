"""Find the secrets in what goes onto a tape, and replace each by a placeholder.

What is a secret: `names` knows variables, headers and parameters by their names, `patterns` tokens
by their look, and `masks` holds what the user asks for. `spellings` are the forms that a value can
take in a text. `redactor` finds them all, also in what is encoded: `runs` are the parts of a text
in which something can be, and base64 in them; `escapes` decodes one layer of escapes and maps it
back. `masking` masks for a session, `body` masks a response while it arrives, `agreeing` makes its
headers agree, and `frames` the frames of an AWS event stream.
"""
