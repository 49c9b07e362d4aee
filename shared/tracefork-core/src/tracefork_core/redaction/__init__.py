"""Find and mask secrets on existing tapes (`tracefork scan`, `tracefork redact`).

`redaction` masks a tape on its way into another file, or only notes where its secrets are;
`event_texts` knows which texts of an event are data and which are its format.
"""
