"""What a child process and its parent send to each other.

`messages` in `frames`, `refusals` for errors, and the `invitation` that a child starts with.
"""
