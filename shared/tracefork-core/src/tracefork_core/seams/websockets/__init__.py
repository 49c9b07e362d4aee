"""The seam of websockets, for every library that has them.

`socket` makes exchanges of what a websocket carries, and says how; `waiting` is how it waits on an
event loop or in a thread. `messages` is how the tape holds messages, `rejoining` what a fork sends
again. `client` patches the package `websockets`, whose connections are `connections` and whose
objects `family` converts. The websockets of aiohttp and of httpx2 are with their libraries.
"""
