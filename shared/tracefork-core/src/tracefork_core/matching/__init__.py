"""Find the recorded exchange that answers a request.

`comparable` is the part of a request that is compared, `matchers` leave parts out on request, and
`answer_pool` finds the recorded answer by content and lane.
"""
