"""Tapes that were made before: find the secrets on them, and mask them.

`redaction` masks as a recording would have, knowing where texts are in an event (`event_texts`);
`secret_scan` runs the same over all that the files of a tape hold, and writes nothing.
"""
