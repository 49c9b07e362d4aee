"""Find the recorded exchange that answers a request.

An `attempt` is one request with all its forms. `comparable` is the part that is compared,
`matchers` leave parts out on request, and `answer_pool` finds the recorded answer by content and
lane. `lane_pairs` tells whether a lane is the recorded one. `kept_parts` compares with a tape that
was imported only what it has.
"""
