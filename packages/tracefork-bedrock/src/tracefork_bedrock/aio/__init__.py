"""aiobotocore: the same seam for its clients, with their own responses.

`sending` makes an exchange of each attempt, `bodies` are what aiobotocore reads, and `surroundings`
keeps a replay from looking for credentials. Without this, the seam of aiohttp would record them:
with their signatures, and below the place where a fork signs what it changes.
"""
