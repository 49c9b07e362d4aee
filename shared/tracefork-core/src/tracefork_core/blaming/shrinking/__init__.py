"""Find the smallest run that still fails.

`shrink` is the call. `ddmin` decides what to leave out next. `turns` leaves model calls out of a
run, and `question` leaves messages, tools and lines out of one call. `attempts` forks the run, has
the oracle grade it, and limits the live calls. `result` is what a shrinking comes to.
"""
