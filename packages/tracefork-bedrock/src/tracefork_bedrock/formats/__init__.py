"""The wire formats of Amazon Bedrock: how its exchanges read, and how forks answer and change them.

`event_stream` reads and writes the frames of streams.

This folder imports nothing of botocore: `tracefork show` loads it.
"""
