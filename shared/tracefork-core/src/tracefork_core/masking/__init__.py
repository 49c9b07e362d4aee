"""Find the secrets in what goes onto a tape, and replace each by a placeholder.

What is a secret: `names` knows variables, headers and parameters by their names, `patterns` tokens
by their look, and `masks` holds what the user asks for. `spellings` are the forms that a value can
take in a text, and `redactor` finds them all. `masking` masks for a session, and `body` masks a
response while it arrives.
"""
